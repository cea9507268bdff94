//! Programs that are not the same on all nodes: found, and named, with nothing
//! but what nodes tell each other.

use celerity_executor::{CheckLevel, ClusterConfig, NodeFrontend, RunError};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::{Outcome, ProgramError, buffer_from, cluster, fence, kernel, run, writes};

fn line(elements: usize) -> Box3 {
    Box3::from_range([elements])
}

/// With the schedule checker, which leaves it to the nodes, and without.
fn clusters(nodes: usize) -> [ClusterConfig; 3] {
    [CheckLevel::Off, CheckLevel::Cheap, CheckLevel::Full]
        .map(|check| ClusterConfig { check, ..cluster(nodes, 2) })
}

fn error_of<R: std::fmt::Debug>(outcome: Outcome<R>) -> String {
    match outcome {
        Err(ProgramError::Run(error @ RunError::Diverged { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn step(node: &NodeFrontend, name: &str, items: usize) -> Outcome<()> {
    let data = buffer_from(node, line(items), vec![0; items]);
    kernel(node, name, line(items), vec![writes(data, Mapper::OneToOne)], |_, _| {})?;
    Ok(())
}

#[test]
fn a_fence_that_only_one_node_asks_for_is_named() {
    for cluster in (2..=4).flat_map(clusters) {
        let outcome = run(&cluster, |node| {
            let data = buffer_from(node, line(8), vec![7; 8]);
            step(node, "step", 8)?;
            if node.node().index() == 0 {
                fence(node, data, line(8))?;
            }
            Ok(())
        });
        let text = error_of(outcome);
        assert!(text.contains("N0 has submitted T2 \"") || text.contains("N0 T2 \""), "{text}");
    }
}

/// Creates a buffer of which the last node has another last element, and reads it.
fn last_differs(node: &NodeFrontend, elements: usize) -> Outcome<Vec<u64>> {
    let _same = buffer_from(node, line(9), vec![1; 9]);
    let mut contents = vec![7; elements];
    contents[elements - 1] += u64::from(node.node().index() + 1 == node.nodes() as u64);
    let data = buffer_from(node, line(elements), contents);
    node.rename_buffer(data, "table");
    let snapshot = fence(node, data, line(elements))?.wait(node);
    // What comes of it is known by then, also if the fence was faster.
    node.barrier()?;
    Ok(snapshot?)
}

#[test]
fn contents_that_one_node_has_other_ones_of_are_named() {
    for cluster in (2..=4).flat_map(clusters) {
        let nodes = cluster.nodes;
        match run(&cluster, |node| last_differs(node, 8)) {
            Err(ProgramError::Run(error @ RunError::ContentsDiffer { .. })) => {
                let text = error.to_string();
                assert!(text.contains("buffer \"table\" starts with other"), "{text}");
                assert!(text.contains(&format!("N{}", nodes - 1)), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn contents_of_large_buffers_are_compared_where_schedules_are_checked() {
    let elements = 1 << 20;
    for cluster in clusters(2) {
        let outcome = run(&cluster, move |node| last_differs(node, elements).map(|_| ()));
        let is_compared = cluster.check != CheckLevel::Off;
        match (is_compared, outcome) {
            (false, Ok(())) => {}
            (true, Err(ProgramError::Run(RunError::ContentsDiffer { .. }))) => {}
            (_, other) => panic!("{:?}: {other:?}", cluster.check),
        }
    }
}

#[test]
fn a_barrier_that_only_one_node_enters_is_named() {
    for cluster in clusters(2) {
        let outcome = run(&cluster, |node| match node.node().index() {
            0 => Ok(node.barrier()?),
            _ => step(node, "step", 8),
        });
        // Unless both have entered a barrier by then, and each barrier is another's.
        let text = match outcome {
            Err(ProgramError::Run(RunError::Communication { error, .. })) => error.to_string(),
            outcome => error_of(outcome),
        };
        assert!(text.contains("T1") && text.contains("N0") && text.contains("N1"), "{text}");
        assert!(text.contains("submit the same tasks"), "{text}");
    }
}

#[test]
fn different_index_spaces_are_named_before_anything_is_exchanged() {
    for cluster in clusters(3) {
        let outcome = run(&cluster, |node| {
            step(node, "same", 8)?;
            step(node, "other", 8 + usize::from(node.node().index() == 1))?;
            (0..200).try_for_each(|_| step(node, "later", 8))
        });
        let text = error_of(outcome);
        assert!(text.contains("T2 \"other\""), "{text}");
        assert!(text.contains("N1"), "{text}");
    }
}

#[test]
fn a_barrier_and_the_end_have_names_of_their_own() {
    for cluster in clusters(2) {
        let outcome = run(&cluster, |node| match node.node().index() {
            0 => Ok(node.barrier()?),
            _ => Ok(()),
        });
        let text = error_of(outcome);
        assert!(text.contains("T1 \"barrier\""), "{text}");
        assert!(text.contains("T1 \"end of the program\""), "{text}");
    }
}

#[test]
fn tasks_of_one_name_that_differ_are_said_to_have_it() {
    for cluster in clusters(2) {
        let outcome = run(&cluster, |node| {
            if node.node().index() == 1 {
                let _ = buffer_from(node, line(3), vec![0; 3]);
            }
            step(node, "step", 8)
        });
        let text = error_of(outcome);
        assert!(text.contains("both submitted T1 \"step\""), "{text}");
        assert!(text.contains("after other buffers or host objects were created"), "{text}");
    }
}
