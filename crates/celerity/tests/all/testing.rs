//! What users test their programs with.

use celerity::prelude::*;
use celerity::testing::{TestCluster, TestFailure, on_every_cluster};

/// Each element becomes the sum of its neighbours, as `mapper` tells what is read.
fn sums(
    queue: &Queue,
    mapper: impl Fn(Chunk<1>, [usize; 1]) -> Subrange<1> + Send + Sync + 'static,
) -> celerity::Result<Vec<u32>> {
    let (u, v) = (queue.buffer::<u32, 1>(20).named("u"), queue.buffer::<u32, 1>(20).named("v"));
    queue.task("fill").parallel_for(20, u.write(one_to_one()), |item, u| *u = item[0] as u32)?;
    let accesses = (v.write(one_to_one()), u.read(celerity::mapper("around", mapper)));
    queue.task("sum").parallel_for(20, accesses, |item, (v, u)| {
        let at = item[0];
        *v = u[at.saturating_sub(1)] + u[at] + u[(at + 1).min(19)];
    })?;
    Ok(queue.fence(&v)?.wait()?.into_vec())
}

/// The chunk, and so many elements behind it.
fn and_behind(chunk: Chunk<1>, behind: usize) -> Subrange<1> {
    let begin = chunk.offset[0].saturating_sub(1);
    let end = (chunk.offset[0] + chunk.range[0] + behind).min(20);
    Subrange { offset: [begin], range: [end - begin] }
}

#[test]
fn what_is_right_has_one_result() {
    let result = on_every_cluster(|queue| sums(queue, |chunk, _| and_behind(chunk, 1))).unwrap();
    let twin = (0..20_u32).map(|at| at.saturating_sub(1) + at + (at + 1).min(19));
    assert_eq!(result, twin.collect::<Vec<_>>());
}

#[test]
fn a_mapper_that_forgets_a_neighbour_fails_where_chunks_end() {
    let failure =
        on_every_cluster(|queue| sums(queue, |chunk, _| and_behind(chunk, 0))).unwrap_err();
    let said = format!("{failure:?}");
    let TestFailure::Failed { cluster, .. } = failure else { panic!("{said}") };
    let second = TestCluster::all().nth(1).unwrap();
    assert_eq!(cluster, second, "one device has no neighbour: {said}");
    assert!(said.starts_with(&format!("on {second}: ")) && said.contains("sum"), "{said}");
}

#[test]
fn a_result_that_depends_on_the_cluster_is_shown() {
    let failure = on_every_cluster(|queue| Ok((queue.nodes(), "long".repeat(100)))).unwrap_err();
    let said = failure.to_string();
    assert_eq!(format!("{failure:?}"), said);
    assert!(said.starts_with("on CELERITY_NODES=2 CELERITY_DEVICES=1 "), "{said}");
    assert!(said.contains("the result is\n  (2, \"longlong"), "{said}");
    assert!(said.contains("and on CELERITY_NODES=1 CELERITY_DEVICES=1 "), "{said}");
    assert!(said.contains("\n  (1, \"longlong") && said.len() < 500, "{said}");
}
