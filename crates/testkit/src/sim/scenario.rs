//! From one number to a whole simulation: program, configuration, schedule. And
//! back from a failure to a smaller program that fails as well.

use std::fmt;

use celerity_idag::{DeviceMemory, Lookahead};
use celerity_tdag::Count;

use super::{FailedRun, SimulationReport, simulate};
use crate::check::Configuration;
use crate::forwards::Forwards;
use crate::program::{Program, Sizes, seeded};
use crate::random::Random;
use crate::shrink::shrink;

/// A program, what it runs on, and the seed that decides all else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The program.
    pub program: Program,
    /// Up to 8 nodes with up to 4 devices each.
    pub configuration: Configuration,
    /// Of the simulation.
    pub seed: u64,
}

impl Scenario {
    /// The scenario that belongs to a seed: the same on every machine.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5ce7_a210_5ce7_a210);
        let (buffers, ops) = (random.between(1, 4), random.between(1, 24));
        let objects = if seed.is_multiple_of(3) { 3 } else { 0 };
        let sizes = Sizes { buffers, ops, objects, ..Sizes::default() };
        let configuration = Configuration {
            horizon_step: random.between(1, 6) as u64,
            horizon_max_parallelism: random.between(2, 12) as u64,
            lookahead: [Lookahead::None, Lookahead::Auto, Lookahead::Infinite]
                [random.between(0, 2)],
            ..Configuration::new(random.between(1, 8), random.between(1, 4))
        };
        let program = seeded(sizes, random.next());
        let device_memory =
            [DeviceMemory::Own, DeviceMemory::Own, DeviceMemory::Host][random.between(0, 2)];
        // Two of three runs exchange data by collectives: any that may be, or those that are found.
        let forwards = [Forwards::None, Forwards::Random, Forwards::Always];
        let forwards = forwards[usize::try_from(seed / 4 % 3).expect("one of three")];
        let configuration = Configuration { device_memory, forwards, ..configuration };
        Self { program, configuration, seed }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn simulate(&self) -> Result<SimulationReport, Box<FailedRun>> {
        simulate(&self.program, &self.configuration, self.seed)
    }

    /// Makes the program smaller as long as the simulation fails, in whatever
    /// way. `None` if it does not fail.
    #[must_use]
    pub fn shrink(self) -> Option<(Self, Box<FailedRun>)> {
        self.simulate().err()?;
        let with = |program: &Program| Self { program: program.clone(), ..self.clone() };
        let program =
            shrink(&self.program, SHRINK_ATTEMPTS, |smaller| with(smaller).simulate().is_err());
        let smallest = with(&program);
        let failure = smallest.simulate().err()?;
        Some((smallest, failure))
    }
}

/// A simulation takes milliseconds, so this is a matter of seconds.
const SHRINK_ATTEMPTS: usize = 2000;

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { nodes, devices, device_memory, .. } = self.configuration;
        let (nodes, devices) = (Count(nodes, "node"), Count(devices, "device"));
        write!(f, "seed {}: {nodes} × {devices}", self.seed)?;
        if device_memory == DeviceMemory::Host { f.write_str(" in host memory") } else { Ok(()) }
    }
}
