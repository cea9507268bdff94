//! How fast the checker is, beside the generators that it watches:
//! `cargo run --release -p celerity-checker --example throughput [PROGRAMS]`.

use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_checker::{Depth, NodeCheckerConfig, check_schedule};
use celerity_idag::DeviceMemory;
use celerity_testkit::check::{Configuration, events};
use celerity_testkit::corpus;
use celerity_testkit::program::{Program, Sizes, seeded};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};

#[derive(Default)]
struct Sums {
    programs: usize,
    instructions: usize,
    generation: Duration,
    full: Duration,
    cheap: Duration,
}

impl Sums {
    fn measure(&mut self, program: &Program, configuration: &Configuration) {
        let Configuration { nodes, devices, .. } = *configuration;
        let lawful = "programs of the test kit are lawful";
        let start = Instant::now();
        let tasks = TaskTrace::of(program, configuration.task_graph()).expect(lawful);
        let commands = CommandTrace::of_all(&tasks, nodes).expect(lawful);
        let instructions = InstructionTrace::of_all(&tasks, &commands, devices).expect(lawful);
        self.generation += start.elapsed();
        let pairs = || commands.iter().zip(&instructions);
        let whole: Vec<_> = pairs().map(|(cdag, idag)| events(&tasks, cdag, idag)).collect();
        for (depth, spent) in [(Depth::Full, &mut self.full), (Depth::Cheap, &mut self.cheap)] {
            let config = NodeCheckerConfig {
                nodes,
                local: NodeId::from_index(0),
                devices,
                device_memory: DeviceMemory::Own,
                device_wires: false,
                device_collectives: false,
                depth,
                eager_allocation: false,
            };
            let events = whole.clone();
            let start = Instant::now();
            if let Err(finding) = check_schedule(config, events) {
                panic!("{finding}");
            }
            *spent += start.elapsed();
        }
        self.programs += 1;
        self.instructions += instructions.iter().map(|node| node.instructions.len()).sum::<usize>();
    }

    fn report(&self, name: &str) {
        let per_second = |count: usize, spent: Duration| count as f64 / spent.as_secs_f64();
        println!(
            "{name}: {} programs, {} instructions; full {:.0} programs/s, {:.0} instructions/s, \
             {:.2} of generation; cheap {:.0} instructions/s, {:.2} of generation",
            self.programs,
            self.instructions,
            per_second(self.programs, self.full),
            per_second(self.instructions, self.full),
            self.full.as_secs_f64() / self.generation.as_secs_f64(),
            per_second(self.instructions, self.cheap),
            self.cheap.as_secs_f64() / self.generation.as_secs_f64(),
        );
    }
}

fn main() {
    let programs = std::env::args()
        .nth(1)
        .map_or(2000, |count| count.parse().expect("the argument is a number of programs"));
    let mut random = Sums::default();
    for seed in 0..programs {
        let (nodes, devices) = (1 + seed as usize % 8, 1 + seed as usize / 8 % 4);
        random.measure(&seeded(Sizes::default(), seed), &Configuration::new(nodes, devices));
    }
    random.report("random programs");
    let mut wave_sim = Sums::default();
    wave_sim.measure(&corpus::wave_sim([16, 16], 200), &Configuration::new(4, 4));
    wave_sim.report("wave_sim, 200 steps, 4 nodes of 4 devices");
    let mut nbody = Sums::default();
    nbody.measure(&corpus::nbody(32, 100), &Configuration::new(4, 4));
    nbody.report("nbody, 100 steps, 4 nodes of 4 devices");
}
