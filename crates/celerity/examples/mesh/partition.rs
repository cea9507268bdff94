//! A mesh in parts: recursive coordinate bisection, the rows that buffers have for a part, and which
//! parts a part needs.

use std::ops::Range;
use std::sync::Arc;

use celerity::CustomMapper;
use celerity::prelude::*;

/// What a step needs of each triangle: those beside it, and how much flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) beside: [Option<u32>; 3],
    pub(crate) conductances: [f32; 3],
}

/// A mesh in parts. A part has two rows: its border, which other parts need, and the rest.
#[derive(Debug)]
pub(crate) struct Parts {
    /// How many there are.
    pub(crate) rows: usize,
    /// Of no places if nobody needs anything of another part.
    pub(crate) border: Cells,
    pub(crate) inner: Cells,
    /// Where each triangle is.
    pub(crate) places: Vec<Place>,
    /// For each part the parts whose borders it needs, and itself, from the first to the last.
    needed: Arc<[Range<usize>]>,
}

/// Where a triangle is: its part, and its place in one of the part's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) part: usize,
    pub(crate) is_border: bool,
    pub(crate) at: usize,
}

/// Rows of equal length, one for each part; places that no triangle has are at the end of each.
#[derive(Debug)]
pub(crate) struct Cells {
    /// Places of a row.
    pub(crate) slots: usize,
    /// What is beside the three sides of each triangle, side by side, row by row: the place of an inner triangle of
    /// the same part, or, from the end of its row on, a place in a border, of so many [`bits`](Parts::bits), below the
    /// number of its part.
    pub(crate) beside: [Vec<u32>; 3],
    /// How much of the difference in temperature flows through each side in a step, likewise; 0 where nothing
    /// is beside it.
    pub(crate) conductances: [Vec<f32>; 3],
}

impl Cells {
    /// So many rows, of so many places at least.
    fn new(rows: usize, places: usize) -> Self {
        let slots = places.next_multiple_of(LINE);
        let places = rows * slots;
        let (beside, conductances) =
            ([(); 3].map(|()| vec![0; places]), [(); 3].map(|()| vec![0.0; places]));
        Self { slots, beside, conductances }
    }
}

/// Rows have a multiple of so many places, so that each begins with a line of a GPU's cache.
const LINE: usize = 32;

impl Parts {
    /// Cuts a mesh into so many parts; some are empty if there are fewer triangles.
    pub(crate) fn new(cells: &[Cell], centres: &[[f32; 3]], parts: usize) -> Self {
        let mut order: Vec<u32> = (0..cells.len() as u32).collect();
        let mut members = Vec::new();
        bisect(&mut order, centres, parts, &mut members);
        let places = places(cells, &members);
        // Of the longest row.
        let most = |is_border: bool| {
            let mut lengths = vec![0; parts];
            let places = places.iter().filter(|place| place.is_border == is_border);
            places.for_each(|place| lengths[place.part] += 1);
            lengths.into_iter().max().unwrap_or(0)
        };
        let mut border = Cells::new(parts, most(true));
        // At least one place, which places without a triangle have beside them.
        let mut inner = Cells::new(parts, most(false).max(1));
        let (bits, inner_slots) = (Self::bits(border.slots), inner.slots);
        let number = |Place { part, is_border, at }: Place| match is_border {
            true => inner_slots + (part << bits) + at,
            false => at,
        };
        let mut needed: Vec<_> = (0..parts).map(|part| part..part + 1).collect();
        for (cell, &place) in cells.iter().zip(&places) {
            let zone = if place.is_border { &mut border } else { &mut inner };
            let slot = place.part * zone.slots + place.at;
            for side in 0..3 {
                let other = cell.beside[side].map_or(place, |other| places[other as usize]);
                let range = &mut needed[place.part];
                *range = range.start.min(other.part)..range.end.max(other.part + 1);
                zone.beside[side][slot] = number(other) as u32;
                zone.conductances[side][slot] = cell.conductances[side];
            }
        }
        Self { rows: parts, border, inner, places, needed: needed.into() }
    }

    /// How many bits the places of a border have, of which there are so many.
    pub(crate) fn bits(border_slots: usize) -> u32 {
        border_slots.next_power_of_two().ilog2()
    }

    /// The borders that parts need, from the first to the last. Each interval has its own part, so
    /// those of neighbours meet, and two chunks need together what their union needs.
    pub(crate) fn borders_of_neighbours(&self) -> CustomMapper<2, 2> {
        let needed = Arc::clone(&self.needed);
        mapper("borders of neighbours", move |parts: Chunk<2>, [_, slots]: [usize; 2]| {
            let of_chunk = &needed[parts.offset[0]..parts.offset[0] + parts.range[0]];
            let first = of_chunk.iter().map(|range| range.start).min().unwrap_or(0);
            let end = of_chunk.iter().map(|range| range.end).max().unwrap_or(first);
            Subrange::new([first, 0], [end - first, slots])
        })
    }

    /// The borders that parts have themselves.
    pub(crate) fn own_borders() -> CustomMapper<2, 2> {
        mapper("own borders", |parts: Chunk<2>, [_, slots]: [usize; 2]| {
            Subrange::new([parts.offset[0], 0], [parts.range[0], slots])
        })
    }
}

/// Cuts triangles in two where they reach farthest, so that each half has its share of the parts, and
/// goes on with both.
fn bisect(order: &mut [u32], centres: &[[f32; 3]], parts: usize, members: &mut Vec<Vec<u32>>) {
    if parts == 1 {
        order.sort_unstable();
        members.push(order.to_vec());
        return;
    }
    let extent = |axis: usize| {
        let coordinates = order.iter().map(|&triangle| centres[triangle as usize][axis]);
        let (least, most) = coordinates
            .fold((f32::MAX, f32::MIN), |(least, most), at| (at.min(least), at.max(most)));
        most - least
    };
    let axis = (0..3).max_by(|&a, &b| extent(a).total_cmp(&extent(b))).unwrap_or(0);
    let below = parts / 2;
    let cut = order.len() * below / parts;
    if cut > 0 {
        // Ties by number, so that every node cuts alike.
        order.select_nth_unstable_by(cut, |&a, &b| {
            let [x, y] = [a, b].map(|triangle| centres[triangle as usize][axis]);
            x.total_cmp(&y).then(a.cmp(&b))
        });
    }
    let (low, high) = order.split_at_mut(cut);
    bisect(low, centres, below, members);
    bisect(high, centres, parts - below, members);
}

/// Where the triangles of each part are: in the border those that have a triangle of another part beside them, and in the
/// other row the others, of which those that have one of the border beside them come first, as a kernel looks further for
/// these. In their order otherwise.
fn places(cells: &[Cell], members: &[Vec<u32>]) -> Vec<Place> {
    let mut parts = vec![0; cells.len()];
    for (part, members) in members.iter().enumerate() {
        members.iter().for_each(|&triangle| parts[triangle as usize] = part);
    }
    let beside = |triangle: usize| cells[triangle].beside.into_iter().flatten();
    let of_another =
        |triangle: usize| beside(triangle).any(|other| parts[other as usize] != parts[triangle]);
    let is_border: Vec<bool> = (0..cells.len()).map(of_another).collect();
    let is_near = |triangle: usize| beside(triangle).any(|other| is_border[other as usize]);
    let mut places = vec![Place { part: 0, is_border: false, at: 0 }; cells.len()];
    for (part, members) in members.iter().enumerate() {
        let triangles = members.iter().map(|&triangle| triangle as usize);
        let (border, inner): (Vec<_>, Vec<_>) =
            triangles.partition(|&triangle| is_border[triangle]);
        let (near, far): (Vec<_>, Vec<_>) =
            inner.into_iter().partition(|&triangle| is_near(triangle));
        for (at, &triangle) in border.iter().enumerate() {
            places[triangle] = Place { part, is_border: true, at };
        }
        for (at, &triangle) in near.iter().chain(&far).enumerate() {
            places[triangle] = Place { part, is_border: false, at };
        }
    }
    places
}
