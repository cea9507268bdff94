//! The bodies in buffers, and the tasks that move and observe them. Knows no units.

use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity_example_kernels::gravity::{
    CREW, Position, Velocity, drift, energies, kick, kick_fast, kick_in_groups,
};
use celerity_kernel::Kernel as Compiled;

use crate::Kernel;
use crate::orbits::Orbits;
use crate::units::{Number, State};

/// What host tasks gather on the root node.
#[derive(Debug)]
pub(crate) struct Gathered<T> {
    pub(crate) places: Vec<Position<T>>,
    pub(crate) velocities: Vec<Velocity<T>>,
    /// The system's energy before and after, times G.
    pub(crate) energies: Vec<f64>,
}

/// Shared between the program and its host tasks.
#[derive(Debug)]
pub(crate) struct Observer<T> {
    pub(crate) gathered: Mutex<Gathered<T>>,
    pub(crate) orbits: Option<Orbits>,
}

impl<T> Observer<T> {
    /// Has seen nothing yet.
    pub(crate) fn new(orbits: Option<Orbits>) -> Self {
        let (places, velocities) = (Vec::new(), Vec::new());
        Self { gathered: Mutex::new(Gathered { places, velocities, energies: Vec::new() }), orbits }
    }
}

/// The buffers of a running simulation.
pub(crate) struct System<T: Number> {
    places: Buffer<Position<T>, 1>,
    velocities: Buffer<Velocity<T>, 1>,
    count: usize,
    softening: T,
    kernel: Kernel,
}

impl<T: Number> System<T>
where
    kick<T>: Compiled,
    kick_in_groups<T>: Compiled,
    kick_fast<T>: Compiled,
    drift<T>: Compiled,
    energies<T>: Compiled,
{
    /// The bodies as they are at the start.
    pub(crate) fn new(
        queue: &Queue,
        state: State<T>,
        softening: T,
        kernel: Kernel,
    ) -> celerity::Result<Self> {
        let (places, velocities) = state;
        Ok(Self {
            count: places.len(),
            places: queue.buffer_from([places.len()], places)?.named("places"),
            velocities: queue.buffer_from([velocities.len()], velocities)?.named("velocities"),
            softening,
            kernel,
        })
    }

    /// Changes the velocities in a time.
    pub(crate) fn kick(&self, queue: &Queue, dt: T) -> celerity::Result<()> {
        let (task, softening) = (queue.task("kick"), self.softening);
        let (own, all) = (self.places.read(one_to_one()), self.places.read(all()));
        let velocities = self.velocities.read_write(one_to_one());
        match self.kernel {
            Kernel::Row => {
                task.launch(self.count, (velocities, own, all), kick::new(softening, dt))?
            }
            Kernel::Group => {
                let kick = kick_in_groups::new(softening, dt);
                task.launch(nd_range(self.count, CREW), (velocities, all), kick)?
            }
            Kernel::Fast => {
                let kick = kick_fast::new(softening, dt);
                task.launch(nd_range(self.count, CREW), (velocities, all), kick)?
            }
        };
        Ok(())
    }

    /// Changes the places in a time.
    pub(crate) fn drift(&self, queue: &Queue, dt: T) -> celerity::Result<()> {
        let accesses = (self.places.read_write(one_to_one()), self.velocities.read(one_to_one()));
        queue.task("drift").launch([self.count], accesses, drift::new(dt))?;
        Ok(())
    }

    /// Adds the system's energy to what is gathered.
    pub(crate) fn measure_energy(
        &self,
        queue: &Queue,
        observer: &Arc<Observer<T>>,
    ) -> celerity::Result<()> {
        let contributions = queue.buffer::<T, 1>([self.count]).named("energies");
        let accesses = (
            contributions.write(one_to_one()),
            self.places.read(one_to_one()),
            self.velocities.read(one_to_one()),
            self.places.read(all()),
        );
        let energies = energies::new(self.softening);
        queue.task("energies").launch([self.count], accesses, energies)?;
        let observer = Arc::clone(observer);
        queue.host_task("sum_energies").once(contributions.read(all()), move |energies| {
            let energy = energies.iter().map(|&energy| energy.into()).sum();
            observer.gathered.lock().expect("no host task panics").energies.push(energy);
        })?;
        Ok(())
    }

    /// Records where the bodies are, if the picture wants it.
    pub(crate) fn observe(
        &self,
        queue: &Queue,
        observer: &Arc<Observer<T>>,
        steps_done: u64,
    ) -> celerity::Result<()> {
        if observer.orbits.as_ref().is_some_and(|orbits| orbits.wants(steps_done)) {
            let observer = Arc::clone(observer);
            queue.host_task("observe").once(self.places.read(all()), move |places| {
                observer.orbits.iter().for_each(|orbits| orbits.record(places.as_slice()));
            })?;
        }
        Ok(())
    }

    /// Records the state.
    pub(crate) fn gather(
        &self,
        queue: &Queue,
        observer: &Arc<Observer<T>>,
    ) -> celerity::Result<()> {
        let observer = Arc::clone(observer);
        queue.host_task("gather").once(
            (self.places.read(all()), self.velocities.read(all())),
            move |(places, velocities)| {
                let mut gathered = observer.gathered.lock().expect("no host task panics");
                gathered.places = places.as_slice().to_vec();
                gathered.velocities = velocities.as_slice().to_vec();
            },
        )?;
        Ok(())
    }
}
