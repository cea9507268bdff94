//! Checks of a cluster of processes: run by a launcher, each process is a node.
//!
//! `mpirun -n 4 cluster`; without a launcher, a cluster of one. `N0` prints a
//! summary as Rust's own test runner does.
#![allow(unsafe_code)]

mod faults;
mod messages;
mod world;

use celerity_executor::conformance;
use celerity_mpi::MpiOptions;

use world::World;

fn main() {
    let world = World::new();
    if let Some(role) = std::env::var_os("CLUSTER_FAULT") {
        return faults::run(&world, &role.to_string_lossy());
    }
    let mut passed = Vec::new();
    conformance::check_node(
        || world.connect(&MpiOptions::default()),
        || world.meet(),
        |name| passed.push(name.to_owned()),
    );
    for (name, check) in messages::CHECKS {
        check(&world);
        world.meet();
        passed.push((*name).to_owned());
    }
    world.report(&passed);
}
