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

/// A mesh in parts, as rows of equal length; places that no triangle has are at the end of each row.
#[derive(Debug)]
pub(crate) struct Parts {
    /// How many there are, each of which is a row.
    pub(crate) rows: usize,
    /// Places of a row.
    pub(crate) slots: usize,
    /// Places of what is packed of a part; 0 if nobody needs anything of another part.
    pub(crate) border_slots: usize,
    /// Where each triangle is: its part, and its place there.
    pub(crate) places: Vec<[usize; 2]>,
    /// What is beside the three sides of each triangle, side by side, row by row: the place of a triangle of
    /// the same part, or, from `slots` on, a place among all that is packed.
    pub(crate) beside: [Vec<u32>; 3],
    /// How much of the difference in temperature flows through each side in a step, likewise; 0 where nothing
    /// is beside it.
    pub(crate) conductances: [Vec<f32>; 3],
    /// What is packed, part by part: where the triangles are.
    pub(crate) packed: Vec<[u32; 2]>,
    /// For each part the parts whose borders it needs, and itself, from the first to the last.
    needed: Arc<[Range<usize>]>,
}

/// Rows have a multiple of so many places, so that each begins with a line of a GPU's cache.
const LINE: usize = 32;

impl Parts {
    /// Cuts a mesh into so many parts; some are empty if there are fewer triangles.
    pub(crate) fn new(cells: &[Cell], centres: &[[f32; 3]], parts: usize) -> Self {
        let mut order: Vec<u32> = (0..cells.len() as u32).collect();
        let mut members = Vec::new();
        bisect(&mut order, centres, parts, &mut members);
        let mut places = vec![[0; 2]; cells.len()];
        for (part, members) in members.iter().enumerate() {
            for (at, &triangle) in members.iter().enumerate() {
                places[triangle as usize] = [part, at];
            }
        }
        let slots = members.iter().map(Vec::len).max().unwrap_or(0).max(1).next_multiple_of(LINE);
        let borders = borders(cells, &places, &members);
        let border_slots = borders.iter().map(Vec::len).max().unwrap_or(0);
        let mut beside = [(); 3].map(|()| vec![0; parts * slots]);
        let mut conductances = [(); 3].map(|()| vec![0.0; parts * slots]);
        let mut needed: Vec<_> = (0..parts).map(|part| part..part + 1).collect();
        for (cell, &[part, at]) in cells.iter().zip(&places) {
            for side in 0..3 {
                let other = cell.beside[side].map(|other| places[other as usize]);
                let number = match other {
                    None => at,
                    Some([of, there]) if of == part => there,
                    Some([of, there]) => {
                        let range = &mut needed[part];
                        *range = range.start.min(of)..range.end.max(of + 1);
                        let place = borders[of].binary_search(&(there as u32));
                        let place = place.expect("what is beside another part is packed");
                        slots + of * border_slots + place
                    }
                };
                beside[side][part * slots + at] = number as u32;
                conductances[side][part * slots + at] = cell.conductances[side];
            }
        }
        let mut packed = Vec::with_capacity(parts * border_slots);
        for (part, border) in (0..).zip(&borders) {
            packed.extend(border.iter().map(|&at| [part, at]));
            packed.resize((part as usize + 1) * border_slots, [part, 0]);
        }
        let needed = needed.into();
        Self { rows: parts, slots, border_slots, places, beside, conductances, packed, needed }
    }

    /// The rows whose borders these are.
    pub(crate) fn rows_of_borders(&self) -> CustomMapper<1, 2> {
        let border_slots = self.border_slots;
        mapper("rows of borders", move |places: Chunk<1>, [_, slots]: [usize; 2]| {
            let first = places.offset[0] / border_slots;
            let end = (places.offset[0] + places.range[0]).div_ceil(border_slots);
            Subrange::new([first, 0], [end - first, slots])
        })
    }

    /// The borders that parts need, from the first to the last. Each interval has its own part, so
    /// those of neighbours meet, and two chunks need together what their union needs.
    pub(crate) fn borders_of_neighbours(&self) -> CustomMapper<2, 1> {
        let (needed, border_slots) = (Arc::clone(&self.needed), self.border_slots);
        mapper("borders of neighbours", move |parts: Chunk<2>, _| {
            let of_chunk = &needed[parts.offset[0]..parts.offset[0] + parts.range[0]];
            let first = of_chunk.iter().map(|range| range.start).min().unwrap_or(0);
            let end = of_chunk.iter().map(|range| range.end).max().unwrap_or(first);
            Subrange::new([first * border_slots], [(end - first) * border_slots])
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

/// For each part the places, ascending, that have a triangle of another part beside them.
fn borders(cells: &[Cell], places: &[[usize; 2]], members: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let is_border = |triangle: u32, part: usize| {
        let beside = cells[triangle as usize].beside.into_iter().flatten();
        beside.into_iter().any(|other| places[other as usize][0] != part)
    };
    let of_part = |(part, members): (usize, &Vec<u32>)| {
        let members = (0..).zip(members);
        members.filter(|&(_, &triangle)| is_border(triangle, part)).map(|(at, _)| at).collect()
    };
    members.iter().enumerate().map(of_part).collect()
}
