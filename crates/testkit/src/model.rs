//! Brute-force models of the graph layers: who wrote this element last?
//!
//! They walk elements one by one and use regions as containers only, so they
//! share neither algebra nor tracking structures with the generators that they
//! judge. Each model's doc is the contract of its layer.

pub mod cdag;
pub mod idag;
pub mod tdag;

mod chunks;
mod exchange;
mod ledger;
mod machine;
mod objects;
mod parcels;

use std::collections::BTreeSet;

use celerity_tdag::GraphId;

use crate::queries::Dag;
use crate::violation::Violation;

/// Ids are dense and from 0, edges point backwards, no edge comes twice.
fn check_shape<I: GraphId>(dag: &Dag, ids: impl Iterator<Item = I>) -> Result<(), Violation> {
    for (position, id) in ids.enumerate() {
        let malformed =
            |what: String| Err(Violation::Malformed { node: dag.describe(position), what });
        if id.index() != position as u64 {
            return malformed(format!("has id {id} at position {position} of the stream"));
        }
        let mut seen = BTreeSet::new();
        for (on, _) in dag.edges(position) {
            if on >= position {
                return malformed(format!("waits for {}, which is not earlier", dag.id(on)));
            }
            if !seen.insert(on) {
                return malformed(format!("waits for {} twice", dag.id(on)));
            }
        }
    }
    Ok(())
}

/// Every synchronisation point waits for all earlier nodes; every later node
/// waits for the last of those that separate (epochs).
fn check_synchronization(
    dag: &Dag,
    synchronizes: impl Fn(usize) -> bool,
    separates: impl Fn(usize) -> bool,
) -> Result<(), Violation> {
    let reach = dag.reachability();
    let unordered = |later: usize, earlier: usize| Violation::NotSynchronized {
        later: dag.describe(later),
        earlier: dag.describe(earlier),
    };
    let mut last_epoch = None;
    for node in 0..dag.len() {
        if let Some(epoch) = last_epoch.filter(|&epoch| !reach.waits_for(node, epoch)) {
            return Err(unordered(node, epoch));
        }
        let missed = || (0..node).find(|&earlier| !reach.waits_for(node, earlier));
        if let Some(missed) = synchronizes(node).then(missed).flatten() {
            return Err(unordered(node, missed));
        }
        if separates(node) {
            last_epoch = Some(node);
        }
    }
    Ok(())
}
