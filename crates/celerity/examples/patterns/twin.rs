//! The same five programs by plain loops.

use celerity_example_kernels::patterns::{far_from, mixed};

use crate::{Pattern, beginning};

/// The elements after so many steps. O(elements · steps).
pub(crate) fn after(pattern: Pattern, size: usize, steps: u32) -> Vec<u32> {
    let count = size.pow(pattern.dims());
    let mut elements: Vec<u32> = (0..count).map(beginning).collect();
    for _ in 0..steps {
        elements = match pattern {
            Pattern::AllGather => mixed_from_afar(0, &elements),
            Pattern::BareAllGather => unreachable!("it has no results"),
            Pattern::GatherScatter => {
                let gathered = mixed_from_afar(1, &elements);
                gathered.iter().map(|&element| mixed(2, element)).collect()
            }
            Pattern::GatherBroadcast => mixed_from_afar(0, &mixed_from_afar(1, &elements)),
            Pattern::AllToAll => {
                let turned = |at: usize| mixed(3, elements[at % size * size + at / size]);
                (0..count).map(turned).collect()
            }
            Pattern::Stencil => (0..count).map(|at| around(&elements, size, at)).collect(),
        };
    }
    elements
}

fn mixed_from_afar(start: u32, elements: &[u32]) -> Vec<u32> {
    let mix = |at: usize| {
        let others = far_from(at, elements.len());
        others.iter().fold(start, |hash, &other| mixed(hash, elements[other]))
    };
    (0..elements.len()).map(mix).collect()
}

/// What an element becomes from those beside it, of which the nearest stands for one beyond an edge.
fn around(elements: &[u32], size: usize, at: usize) -> u32 {
    let (y, x) = (at / size, at % size);
    let last = size - 1;
    let beside =
        [(y.saturating_sub(1), x), (y, x.saturating_sub(1)), (y, x), (y, (x + 1).min(last))];
    let beside = beside.into_iter().chain([((y + 1).min(last), x)]);
    beside.fold(4, |hash, (y, x)| mixed(hash, elements[y * size + x]))
}
