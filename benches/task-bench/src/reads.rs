//! Which places a place reads, step by step, as tables: the suite is asked once per way of depending, not
//! once per point.

use std::ops::Range;

use crate::graph::{Formula, Graph};

/// Who depends on whom in a graph.
pub(crate) struct Reads {
    /// By set, by place.
    sets: Vec<Vec<Vec<Range<usize>>>>,
    width: usize,
}

/// Who depends on whom in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) set: usize,
    /// The places that have a point in this step.
    pub(crate) active: Range<usize>,
    /// Those that had one in the step before.
    pub(crate) before: Range<usize>,
}

impl Reads {
    pub(crate) fn new(graph: &impl Graph) -> Self {
        let of_set = |set| (0..graph.width()).map(|place| graph.dependencies(set, place)).collect();
        Self { sets: (0..graph.sets()).map(of_set).collect(), width: graph.width() }
    }

    /// The ranges of places that have a point in the step before and that `place` reads, in the suite's order.
    pub(crate) fn of(&self, step: &Step, place: usize) -> impl Iterator<Item = Range<usize>> {
        let is_there = step.active.contains(&place);
        let parts = if is_there { self.sets[step.set][place].as_slice() } else { &[] };
        let before = step.before.clone();
        let clip =
            move |part: &Range<usize>| part.start.max(before.start)..part.end.min(before.end);
        parts.iter().map(clip).filter(|part| !part.is_empty())
    }

    /// What says whom places depend on in a step: the graph's formula where every place has a point, the
    /// tables elsewhere.
    pub(crate) fn formula(&self, graph: &impl Graph, step: &Step) -> Formula {
        let all = 0..self.width;
        match graph.formula() {
            _ if step.before.is_empty() => Formula::Nothing,
            formula if step.active == all && step.before == all => formula,
            Formula::Nothing => Formula::Nothing,
            _ => Formula::Table,
        }
    }
}

impl Step {
    pub(crate) fn new(graph: &impl Graph, step: usize) -> Self {
        let before = step.checked_sub(1).map_or(0..0, |before| graph.active(before));
        Self { set: graph.set_at(step), active: graph.active(step), before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::{Shape, Twin};

    #[test]
    fn formulas_say_what_tables_say() {
        for shape in Shape::ALL {
            for (width, steps) in [(1, 1), (3, 4), (8, 12)] {
                let twin = Twin::new(shape, width, steps, 16);
                let reads = Reads::new(&twin);
                for step in (0..steps).map(|step| Step::new(&twin, step)) {
                    let formula = reads.formula(&twin, &step);
                    for place in 0..width {
                        let read: Vec<usize> = reads.of(&step, place).flatten().collect();
                        let expected: Vec<usize> = match formula {
                            Formula::Nothing => vec![],
                            Formula::Around(by) => {
                                (place.saturating_sub(by)..(place + by + 1).min(width)).collect()
                            }
                            Formula::Before => (place.saturating_sub(1)..=place).collect(),
                            Formula::All => (0..width).collect(),
                            Formula::Table => read.clone(),
                        };
                        assert_eq!(read, expected, "{shape:?} {step:?} {place}");
                        assert!(read.iter().all(|place| step.before.contains(place)));
                    }
                }
            }
        }
    }
}
