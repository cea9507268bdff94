//! The bookkeeping of a single node's edges, as the original measures that of its
//! intrusive graph. Knows no graphs.
//!
//! Two departures. A node here holds its predecessors alone, the original's its
//! successors, too. And no edge is ever removed: where the original removes them
//! one by one, a node's edges are given up together.

use std::hint::black_box;

use celerity_tdag::{Dependencies, DependencyKind, TaskId};

/// One case: so many predecessors of one node.
#[derive(Clone, Debug)]
pub struct DependencyCase {
    /// Criterion's group.
    pub group: String,
    /// Criterion's function.
    pub function: &'static str,
    operation: Operation,
    nodes: u64,
    /// The edges that are looked up.
    edges: Dependencies<TaskId>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Create,
    CreateAndAdd,
    AddAndRemove,
    Check,
}

impl DependencyCase {
    /// All cases, in the order in which they are measured.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let operations = [
            ("creating nodes", Operation::Create),
            ("creating and adding dependencies", Operation::CreateAndAdd),
            ("adding and removing dependencies", Operation::AddAndRemove),
            ("checking for dependencies", Operation::Check),
        ];
        let of = |nodes| {
            operations.map(|(function, operation)| Self {
                group: format!(
                    "benchmark intrusive graph dependency handling with N nodes - {nodes}"
                ),
                function,
                operation,
                nodes,
                edges: edges(nodes),
            })
        };
        [1, 10, 100].into_iter().flat_map(of).collect()
    }

    /// Runs the case once; returns the number of edges that are there in the end.
    #[must_use]
    pub fn run(&self) -> usize {
        match self.operation {
            Operation::Create => create(self.nodes).map(|node| node.len()).sum(),
            Operation::CreateAndAdd => {
                let others: usize = create(self.nodes).map(|node| node.len()).sum();
                others + edges(self.nodes).len()
            }
            Operation::AddAndRemove => edges(self.nodes).len(),
            Operation::Check => {
                let ids = (0..self.nodes).map(TaskId::from_index);
                ids.filter(|&id| self.edges.kind_of(black_box(id)).is_some()).count()
            }
        }
    }
}

fn create(nodes: u64) -> impl Iterator<Item = Dependencies<TaskId>> {
    (0..nodes).map(|_| black_box(Dependencies::default()))
}

fn edges(nodes: u64) -> Dependencies<TaskId> {
    let mut edges = Dependencies::default();
    (0..nodes).for_each(|on| edges.add(black_box(TaskId::from_index(on)), DependencyKind::True));
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_edges_are_left_as_were_added() {
        for case in DependencyCase::all() {
            let expected = match case.operation {
                Operation::Create => 0,
                _ => case.nodes as usize,
            };
            assert_eq!(case.run(), expected, "{}/{}", case.group, case.function);
        }
    }
}
