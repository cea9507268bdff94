//! Checks of a cluster of processes: run by a launcher, each process is a node.
//!
//! `mpirun -n 4 cluster`; without a launcher, a cluster of one. `CLUSTER_ROLE` selects
//! something else than the checks: `programs`, `large`, or a fault: `kill`, `stop`, `pause`,
//! `give-up`, `found-kill` or `found-stop`.
//! `N0` prints a summary as Rust's own test runner does.
#![allow(unsafe_code)]

mod exchanges;
mod faults;
mod founding;
mod large;
mod messages;
mod programs;
mod world;

use celerity_mpi::MpiOptions;
use celerity_testkit::conformance;

use world::World;

fn main() {
    let world = World::new();
    match std::env::var("CLUSTER_ROLE").as_deref() {
        Err(_) => check(&world),
        Ok("programs") => programs::run(&world),
        Ok("large") => large::run(&world),
        Ok("pause") => faults::pause(&world),
        Ok("give-up") => faults::give_up(&world),
        Ok(fault @ ("found-kill" | "found-stop")) => founding::run(&world, fault),
        Ok(fault) => faults::run(&world, fault),
    }
}

fn check(world: &World) {
    let mut passed = Vec::new();
    conformance::check_node(
        || world.connect(&MpiOptions::default()),
        || world.meet(),
        |name| passed.push(name.to_owned()),
    );
    for (name, check) in messages::CHECKS.iter().chain(exchanges::CHECKS) {
        check(world);
        world.meet();
        passed.push((*name).to_owned());
    }
    world.report(&passed);
}
