//! Whole programs with nodes as processes, against the sequential twin: the corpus
//! and random ones. What a program is, and what it computes, is the testkit's.

use std::env;
use std::iter;

use celerity_cdag::NodeId;
use celerity_executor::{Network, Run};
use celerity_mpi::{MpiNetwork, MpiOptions};
use celerity_testkit::campaign::Campaign;
use celerity_testkit::check::{Configuration, check_process};
use celerity_testkit::corpus;
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::Program;

use crate::world::World;

/// Steps of the corpus's loops.
const STEPS: usize = 6;

/// Random programs on networks that let few sets of nodes have communicators.
const FEW_SETS: usize = 20;

/// `CLUSTER_PROGRAMS` random programs (200 by default) from the seed `CLUSTER_SEED`, then every program of the
/// corpus on one to three devices per node.
pub(crate) fn run(world: &World) {
    let join = |options| MpiNetwork::join(options).expect("a cluster comes up");
    let network = join(MpiOptions::default());
    let (programs, seed) = (number("CLUSTER_PROGRAMS", 200), number("CLUSTER_SEED", 1));
    let nodes = world.size..=world.size;
    let campaign = Campaign { programs, seed, nodes, devices: 1..=3, run_every: 1 };
    let mut passed = 0;
    // The first ones have more sets of members than there may be. Sets count for the whole process, so all the
    // others come later.
    let few_sets = join(MpiOptions { max_member_sets: 3, ..MpiOptions::default() });
    let networks = iter::repeat_n(&few_sets, FEW_SETS).chain(iter::repeat(&network));
    for (seed, network) in (seed..seed + programs).zip(networks) {
        let (program, configuration) = campaign.case(seed);
        check(&format!("CLUSTER_SEED={seed}"), &program, &configuration, network);
        passed += 1;
    }
    for (name, program) in corpus::all(STEPS) {
        for devices in 1..=3 {
            let forwards = Forwards::Always;
            let configuration =
                Configuration { forwards, ..Configuration::new(world.size, devices) };
            check(name, &program, &configuration, &network);
            passed += 1;
        }
    }
    if world.rank == 0 {
        println!("{programs} random programs from seed {seed}");
    }
    world.count(passed);
}

fn check(name: &str, program: &Program, configuration: &Configuration, network: &MpiNetwork) {
    let node = NodeId::from_index(network.local().start as u64);
    let on_network = network.clone();
    let verdict =
        check_process(program, configuration, node, |config| Run::new(config).on(on_network));
    if let Err(failure) = verdict {
        panic!("{name}: {failure}");
    }
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect(variable))
}
