//! An abstract cluster: executes all nodes' graphs step by step in a random
//! order that respects the edges. Knows nothing of what a step does.

use crate::hash::Mixer;
use crate::queries::Dag;
use crate::violation::Violation;

/// What the steps of all nodes do.
pub(super) trait Machine {
    /// Whether a step whose predecessors are done can be taken: false while it
    /// waits for another node.
    fn is_ready(&self, node: usize, step: usize) -> bool;

    /// The predecessors of a step are done: what it does in the background may begin.
    fn enable(&mut self, _node: usize, _step: usize) {}

    /// Takes a step.
    fn execute(&mut self, node: usize, step: usize) -> Result<(), Violation>;
}

/// Takes every step of every graph once. O(steps · steps that wait).
pub(super) fn execute_all(
    dags: &[Dag],
    seed: u64,
    machine: &mut impl Machine,
) -> Result<(), Violation> {
    let mut pending = Pending::new(dags);
    pending.enabled.iter().for_each(|&(node, step)| machine.enable(node, step));
    let mut random = Mixer::for_item(0, [seed, 0, 0]);
    while !pending.enabled.is_empty() {
        random = random.with(0);
        let start = random.below(pending.enabled.len());
        let candidates = (start..pending.enabled.len()).chain(0..start);
        let ready = candidates.into_iter().find(|&candidate| {
            let (node, step) = pending.enabled[candidate];
            machine.is_ready(node, step)
        });
        let Some(chosen) = ready else { return Err(deadlock(dags, &pending.enabled)) };
        let (node, step) = pending.enabled.swap_remove(chosen);
        machine.execute(node, step)?;
        for next in pending.finish(node, step) {
            machine.enable(node, next);
        }
    }
    Ok(())
}

struct Pending {
    /// Steps whose predecessors are done.
    enabled: Vec<(usize, usize)>,
    /// By node and step: predecessors that are not done.
    blockers: Vec<Vec<usize>>,
    successors: Vec<Vec<Vec<usize>>>,
}

impl Pending {
    fn new(dags: &[Dag]) -> Self {
        let edges = |dag: &Dag| (0..dag.len()).map(|step| dag.edges(step).count()).collect();
        let blockers: Vec<Vec<usize>> = dags.iter().map(edges).collect();
        let successors = dags.iter().map(successors).collect();
        let steps = blockers.iter().enumerate();
        let enabled = steps.flat_map(|(node, blockers)| {
            let free = blockers.iter().enumerate().filter(|&(_, &blockers)| blockers == 0);
            free.map(move |(step, _)| (node, step))
        });
        Self { enabled: enabled.collect(), blockers, successors }
    }

    /// Returns the steps of the node that may be taken from now on.
    fn finish(&mut self, node: usize, step: usize) -> Vec<usize> {
        let (blockers, successors) = (&mut self.blockers[node], &self.successors[node][step]);
        successors.iter().for_each(|&next| blockers[next] -= 1);
        let free = successors.iter().copied().filter(|&next| blockers[next] == 0);
        let free: Vec<usize> = free.collect();
        self.enabled.extend(free.iter().map(|&next| (node, next)));
        free
    }
}

fn successors(dag: &Dag) -> Vec<Vec<usize>> {
    let mut successors = vec![Vec::new(); dag.len()];
    for step in 0..dag.len() {
        dag.edges(step).for_each(|(on, _)| successors[on].push(step));
    }
    successors
}

fn deadlock(dags: &[Dag], enabled: &[(usize, usize)]) -> Violation {
    let waiting = dags.iter().enumerate().filter_map(|(node, dag)| {
        let first = enabled.iter().filter(|&&(of, _)| of == node).map(|&(_, step)| step).min();
        first.map(|step| dag.describe(step))
    });
    Violation::Deadlock { waiting: waiting.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node's second step waits for the other node's steps below `after`.
    struct Rendezvous {
        done: Vec<(usize, usize)>,
        after: usize,
    }

    impl Machine for Rendezvous {
        fn is_ready(&self, node: usize, step: usize) -> bool {
            step == 0 || (0..self.after).all(|step| self.done.contains(&(1 - node, step)))
        }

        fn execute(&mut self, node: usize, step: usize) -> Result<(), Violation> {
            self.done.push((node, step));
            Ok(())
        }
    }

    fn two_chains() -> [Dag; 2] {
        ["N0", "N1"].map(|node| {
            let mut dag = Dag::default();
            for step in 0..3 {
                dag.push(&format!("{node} C{step}"), "step");
            }
            (1..3).for_each(|step| dag.connect(step, step - 1, None));
            dag
        })
    }

    #[test]
    fn every_step_is_taken_once_and_after_its_predecessors() {
        for seed in 0..20 {
            let mut machine = Rendezvous { done: Vec::new(), after: 1 };
            execute_all(&two_chains(), seed, &mut machine).unwrap();
            for node in 0..2 {
                let steps = machine.done.iter().filter(|&&(of, _)| of == node);
                assert_eq!(steps.map(|&(_, step)| step).collect::<Vec<_>>(), [0, 1, 2]);
            }
        }
    }

    #[test]
    fn a_deadlock_names_one_step_per_node() {
        let mut machine = Rendezvous { done: Vec::new(), after: 2 };
        let violation = execute_all(&two_chains(), 3, &mut machine).unwrap_err();
        assert_eq!(violation.to_string(), "no progress: N0 C1 (step), N1 C1 (step) wait");
    }
}
