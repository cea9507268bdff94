//! What tests of whole programs put into buffers, how they look at them, and where they run.

use std::fmt::Debug;
use std::sync::Mutex;

use celerity::prelude::*;
use celerity::{CheckLevel, Element, Result};

/// Clusters of so many nodes with so many devices each.
pub(crate) fn clusters<const N: usize>(clusters: [[usize; 2]; N]) -> impl Iterator<Item = Config> {
    clusters.into_iter().map(|[nodes, devices]| Config::default().nodes(nodes).devices(devices))
}

/// What a program returns on a cluster, which is the same on all nodes. All of its schedule is
/// checked.
pub(crate) fn on_all_nodes<R: PartialEq + Debug + Send>(
    cluster: Config,
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> R {
    let cluster = cluster.check(CheckLevel::Full);
    let of_nodes = Mutex::new(Vec::new());
    let run = cluster.run(|queue| {
        let result = program(queue)?;
        of_nodes.lock().unwrap().push(result);
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("on {cluster:?}: {error}"));
    let mut of_nodes = of_nodes.into_inner().unwrap();
    assert!(of_nodes.windows(2).all(|pair| pair[0] == pair[1]), "{of_nodes:?} on {cluster:?}");
    of_nodes.swap_remove(0)
}

/// What a program returns on all nodes of all of these clusters, which is the same.
pub(crate) fn everywhere<R: PartialEq + Debug + Send>(
    clusters: impl IntoIterator<Item = Config>,
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> R {
    let mut clusters = clusters.into_iter();
    let first = on_all_nodes(clusters.next().expect("there are clusters"), &program);
    for cluster in clusters {
        let other = on_all_nodes(cluster.clone(), &program);
        assert_eq!(other, first, "{cluster:?}");
    }
    first
}

/// A buffer's contents now.
pub(crate) fn contents<T: Element, const D: usize>(
    queue: &Queue,
    buffer: &Buffer<T, D>,
) -> Result<Vec<T>> {
    Ok(queue.fence(buffer)?.wait()?.into_vec())
}

/// Numbers whose sum depends on the order.
pub(crate) fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 10_007) as f32 * 1e-3 - 4.0).collect()
}

/// The one element of a buffer now.
pub(crate) fn scalar<T: Element>(queue: &Queue, buffer: &Buffer<T, 0>) -> Result<T> {
    Ok(queue.fence(buffer)?.wait()?[[]])
}

/// Some values that no two neighbouring elements share.
pub(crate) fn values(count: usize) -> Vec<i64> {
    (0..count as i64).map(|i| (i * 7919 + 13) % 1009).collect()
}

pub(crate) fn indices([h, w]: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    (0..h).flat_map(move |y| (0..w).map(move |x| [y, x]))
}
