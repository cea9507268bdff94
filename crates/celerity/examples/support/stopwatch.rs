//! How long the steps of an example take, and how people and scripts are told.
//! Knows nothing of what is computed.

#[path = "checksum.rs"]
mod checksum;

use std::time::{Duration, Instant};

use celerity::prelude::*;

use checksum::checksum;

/// What is measured, as options of a program.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Leaves the first steps out of the time, if there are more: what is done once,
    /// such as allocating memory, is then done.
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    warm_up: u64,
    /// Adds a checksum of the final numbers to the line that begins with RESULT.
    #[arg(long)]
    pub(crate) checksum: bool,
}

impl Measure {
    /// Of so many steps, those whose time is taken.
    fn timed(self, steps: u64) -> u64 {
        if self.warm_up < steps { steps - self.warm_up } else { steps }
    }
}

/// Runs from its start, or from the end of the first steps.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    measure: Measure,
}

impl Stopwatch {
    pub(crate) fn start(measure: Measure) -> Self {
        Self { started: Instant::now(), measure }
    }

    /// To be called before a step, which is the one of this `number`, from 0.
    ///
    /// # Errors
    /// As [`Queue::barrier`].
    pub(crate) fn before_step(&mut self, queue: &Queue, number: u64) -> celerity::Result<()> {
        if number > 0 && number == self.measure.warm_up {
            queue.barrier()?;
            self.started = Instant::now();
        }
        Ok(())
    }

    /// How long it has taken until everything is done that was submitted.
    ///
    /// # Errors
    /// As [`Queue::barrier`].
    pub(crate) fn stop(self, queue: &Queue) -> celerity::Result<Duration> {
        queue.barrier()?;
        Ok(self.started.elapsed())
    }
}

/// One measurement: what a program has done in which time.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) program: &'a str,
    /// Devices of all nodes.
    pub(crate) devices: usize,
    /// What the program's sizes come down to: cells of a side, bodies, and so on.
    pub(crate) size: usize,
    /// All steps.
    pub(crate) steps: u64,
    /// Of the steps whose time was taken.
    pub(crate) elapsed: Duration,
    /// What a step does, in `unit`.
    pub(crate) work: f64,
    pub(crate) unit: &'a str,
}

impl Measured<'_> {
    /// How much was done in a second, in the measurement's unit.
    pub(crate) fn rate(&self, measure: Measure) -> f64 {
        self.work * measure.timed(self.steps) as f64 / self.elapsed.as_secs_f64()
    }

    /// Prints the line that scripts read. `bytes` are the final numbers, part by part, of
    /// which it has a checksum if one is asked for.
    pub(crate) fn print(&self, measure: Measure, bytes: &[&[u8]]) {
        let checksum = match measure.checksum {
            true => format!(" checksum={:016x}", checksum(bytes)),
            false => String::new(),
        };
        println!(
            "RESULT {program} gpus={devices} size={size} steps={steps} seconds={seconds:.6} \
             rate={rate:.6e} unit={unit}/s{checksum}",
            program = self.program,
            devices = self.devices,
            size = self.size,
            steps = measure.timed(self.steps),
            seconds = self.elapsed.as_secs_f64(),
            rate = self.rate(measure),
            unit = self.unit,
        );
    }
}

/// So many things: `1 step`, `2 steps`.
pub(crate) fn counted(count: impl Into<u64>, thing: &str) -> String {
    let count = count.into();
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// What a program ran on: `2 nodes × 1 device`.
pub(crate) fn cluster(nodes: usize, devices: usize) -> String {
    format!("{} × {}", counted(nodes as u64, "node"), counted(devices as u64, "device"))
}
