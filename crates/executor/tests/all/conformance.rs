//! The network within a process does what every network must.

use std::sync::Arc;

use celerity_executor::{CpuPool, Waker, local_cluster};
use celerity_testkit::conformance;

#[test]
fn the_network_within_a_process_conforms() {
    let pool = CpuPool::new(2).unwrap();
    conformance::check(|nodes| {
        local_cluster((0..nodes).map(|_| Arc::new(|| {}) as Waker).collect(), &pool)
    });
}
