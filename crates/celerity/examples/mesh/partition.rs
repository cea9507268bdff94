//! A mesh in parts: recursive coordinate bisection, the rows that buffers have for a part, and which
//! parts a part needs.

use std::ops::Range;
use std::sync::Arc;

use celerity::CustomMapper;
use celerity::prelude::*;
use celerity_example_kernels::mesh::Element;

/// What a step needs of each triangle: those beside it, and how much flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) beside: [Option<u32>; 3],
    pub(crate) conductances: [f32; 3],
}

/// A mesh in parts, as rows of equal length; places that no triangle has are at the end of each row.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Places of a row.
    pub(crate) slots: usize,
    /// Places of what is packed, at least one.
    pub(crate) border_slots: usize,
    /// Where each triangle is: its part, and its place there.
    pub(crate) places: Vec<[usize; 2]>,
    /// Row by row.
    pub(crate) elements: Vec<Element>,
    /// What is packed, row by row: places in the part.
    pub(crate) packed: Vec<u32>,
    /// For each part the parts whose borders it needs, and itself, from the first to the last.
    needed: Arc<[Range<usize>]>,
}

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
        let slots = members.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let borders = borders(cells, &places, &members);
        let border_slots = borders.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let mut elements = vec![Element::default(); parts * slots];
        let mut needed: Vec<_> = (0..parts).map(|part| part..part + 1).collect();
        for (cell, &[part, at]) in cells.iter().zip(&places) {
            let beside = cell.beside.map(|other| match other.map(|other| places[other as usize]) {
                None => [part, 0],
                Some([of, at]) if of == part => [of, at],
                Some([of, at]) => {
                    let range = &mut needed[part];
                    *range = range.start.min(of)..range.end.max(of + 1);
                    let place = borders[of].binary_search(&(at as u32));
                    [of, place.expect("what is beside another part is packed")]
                }
            });
            let beside = beside.map(|place| place.map(|index| index as u32));
            elements[part * slots + at] = Element { beside, conductances: cell.conductances };
        }
        let row = |border: &Vec<u32>| {
            let mut row = border.clone();
            row.resize(border_slots, 0);
            row
        };
        let packed = borders.iter().flat_map(row).collect();
        Self { slots, border_slots, places, elements, packed, needed: needed.into() }
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
