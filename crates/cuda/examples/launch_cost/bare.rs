//! Kernels on a stream, with nothing of ours but the binding.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use celerity_cuda::{
    Driver, DriverError, Event, Function, Gpu, Image, LaunchSize, NvidiaDriver, Stream,
};

use crate::empty::{ENTRY, PTX};
use crate::median;

pub(crate) fn open() -> Result<Arc<NvidiaDriver>, String> {
    NvidiaDriver::new().map(Arc::new).map_err(|error| error.to_string())
}

/// Launches in several ways, and prints what each takes. Returns µs per kernel of the
/// runtime's kernel with nothing else on the stream.
pub(crate) fn all(
    driver: &Arc<NvidiaDriver>,
    launches: u32,
    samples: usize,
) -> Result<f64, String> {
    let measure = || -> Result<f64, DriverError> {
        let bare = Bare::new(driver)?;
        let nothing = bare.sample(launches, samples, bare.nothing, &[], u32::MAX)?;
        println!("  bare stream, no parameters: {nothing:.2} µs per kernel");
        let alone = bare.sample(launches, samples, bare.empty, &[0; 16], u32::MAX)?;
        println!("  bare stream, two parameters: {alone:.2} µs");
        for batch in [1, 4, 16, 64] {
            let time = bare.sample(launches, samples, bare.empty, &[0; 16], batch)?;
            println!("  with an event for every {batch}: {time:.2} µs");
        }
        let asked = bare.asked(launches, samples)?;
        println!("  with another thread that asks for an event without a break: {asked:.2} µs");
        Ok(alone)
    };
    measure().map_err(|error| error.to_string())
}

struct Bare<'d> {
    driver: &'d Arc<NvidiaDriver>,
    gpu: Gpu,
    stream: Stream,
    event: Event,
    /// What the runtime launches.
    empty: Function,
    /// The same without parameters.
    nothing: Function,
}

impl<'d> Bare<'d> {
    fn new(driver: &'d Arc<NvidiaDriver>) -> Result<Self, DriverError> {
        let gpu = Gpu::from_slot(0);
        driver.adopt_thread(gpu)?;
        let (stream, event) = (driver.create_stream(gpu)?, driver.create_event(gpu, false)?);
        let module = driver.load(gpu, Image::Ptx(PTX))?;
        let (empty, nothing) =
            (driver.function(module, ENTRY)?, driver.function(module, "nothing")?);
        Ok(Self { driver, gpu, stream, event, empty, nothing })
    }

    /// µs per kernel, with an event behind every `batch` of them.
    fn sample(
        &self,
        launches: u32,
        samples: usize,
        function: Function,
        parameters: &[u8],
        batch: u32,
    ) -> Result<f64, DriverError> {
        let size = LaunchSize { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 };
        let mut times = Vec::new();
        for _ in 0..samples {
            self.driver.synchronize(self.stream)?;
            let start = Instant::now();
            for index in 1..=launches {
                // SAFETY: these are the kernel's parameters, and it touches no memory.
                unsafe { self.driver.launch(self.stream, function, size, parameters)? };
                if index % batch == 0 {
                    self.driver.record(self.event, self.stream)?;
                }
            }
            self.driver.synchronize(self.stream)?;
            times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(launches));
        }
        Ok(median(times))
    }

    /// As one with events, while another thread asks whether the last has happened.
    fn asked(&self, launches: u32, samples: usize) -> Result<f64, DriverError> {
        let (driver, gpu, event) = (self.driver.clone(), self.gpu, self.event);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // What fails here fails on the other thread, too.
                drop(driver.adopt_thread(gpu));
                while !over.load(Ordering::Relaxed) {
                    drop(driver.query(event));
                }
            });
            let time = self.sample(launches, samples, self.empty, &[0; 16], 16);
            over.store(true, Ordering::Relaxed);
            time
        })
    }
}

impl Drop for Bare<'_> {
    fn drop(&mut self) {
        // SAFETY: this is their last use.
        unsafe {
            self.driver.destroy_event(self.event);
            self.driver.destroy_stream(self.stream);
        }
    }
}
