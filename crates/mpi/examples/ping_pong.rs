//! What the communicator costs beside plain MPI: messages of growing size back
//! and forth between two processes, once each way, in one run; and barriers.
//!
//! `mpirun -n 2 ping_pong [repetitions]` prints a table: half of a round trip in
//! microseconds, the fastest of so many repetitions (default 200), so that other work
//! on the machine matters little. Each makes 32 round trips, fewer if they
//! are large.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{BasePtr, CommEvent, Communicator, ElementArray, WirePayload};
use celerity_idag::{MemoryId, MessageId, Pilot};
use celerity_mpi::{MpiCommunicator, MpiOptions, start};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskId};
use mpi::ffi;

const SIZES: [usize; 10] =
    [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let end = start(&MpiOptions::default(), Arc::new(|| {})).expect("a cluster comes up");
    assert_eq!(end.nodes(), 2, "start it with `mpirun -n 2`");
    let first = end.node().slot() == 0;
    let announced = None;
    let mut pair =
        Pair { first, end, announced, messages: [0; 2], buffer: vec![0; SIZES[SIZES.len() - 1]] };
    if first {
        println!("{:>10} {:>12} {:>12} {:>8}", "bytes", "MPI [µs]", "ours [µs]", "ratio");
    }
    for size in SIZES {
        let rounds = ((1 << 19) / size.max(1 << 14)).max(2);
        pair.print(&size.to_string(), repetitions, 2 * rounds, |pair, ours| match ours {
            false => (0..rounds).for_each(|_| pair.plain(size)),
            true => (0..rounds).for_each(|_| pair.ours(size)),
        });
    }
    pair.print("barrier", repetitions, 32, |pair, ours| match ours {
        false => (0..32).for_each(|_| plain_barrier()),
        true => (0..32).for_each(|_| pair.barrier()),
    });
}

struct Pair {
    first: bool,
    end: MpiCommunicator,
    /// The sender of a pilot whose payload has not been received.
    announced: Option<NodeId>,
    /// Messages sent so far, by each node.
    messages: [u64; 2],
    buffer: Vec<u8>,
}

impl Pair {
    /// Measures both, taking turns, and prints a line: the time divided by how often
    /// that happens which it is for.
    fn print(
        &mut self,
        name: &str,
        repetitions: usize,
        divisor: usize,
        mut round: impl FnMut(&mut Self, bool),
    ) {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=repetitions {
            for (ours, times) in [false, true].into_iter().zip(&mut times) {
                let begin = Instant::now();
                round(self, ours);
                times.push(begin.elapsed().as_secs_f64() * 1e6 / divisor as f64);
            }
        }
        if self.first {
            let [plain, ours] = times.map(|times| times.into_iter().fold(f64::INFINITY, f64::min));
            println!("{name:>10} {plain:>12.2} {ours:>12.2} {:>8.2}", ours / plain);
        }
    }

    fn plain(&mut self, size: usize) {
        for turn in [true, false] {
            match turn == self.first {
                true => self.plain_send(size),
                false => self.plain_receive(size),
            }
        }
    }

    fn plain_send(&mut self, size: usize) {
        let (data, peer) = (self.buffer.as_mut_ptr().cast(), c_int::from(self.first));
        // SAFETY: the buffer is long enough, and the call blocks.
        unsafe {
            ffi::MPI_Send(data, len(size), ffi::RSMPI_UINT8_T, peer, 0, ffi::RSMPI_COMM_WORLD);
        }
    }

    fn plain_receive(&mut self, size: usize) {
        let (data, peer) = (self.buffer.as_mut_ptr().cast(), c_int::from(self.first));
        // SAFETY: as above.
        unsafe {
            let (byte, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Recv(data, len(size), byte, peer, 0, world, ffi::RSMPI_STATUS_IGNORE);
        }
    }

    fn ours(&mut self, size: usize) {
        for turn in [true, false] {
            let sender = usize::from(!turn);
            let message = MessageId::from_index(self.messages[sender]);
            self.messages[sender] += 1;
            match turn == self.first {
                true => self.our_send(size, message),
                false => self.our_receive(size, message),
            }
        }
    }

    fn our_send(&mut self, size: usize, message: MessageId) {
        let payload = self.payload(size, message);
        let to = NodeId::from_index(u64::from(self.first));
        let transfer =
            TransferId { consumer: TaskId::from_index(1), buffer: BufferId::from_index(0) };
        let region = payload.elements.into();
        let pilot = Pilot { to, message, transfer, region, from_device: false };
        self.end.send_pilot(&pilot, 0);
        // SAFETY: the buffer is left alone until the report, awaited next.
        unsafe { self.end.send(to, payload) };
        // The other side's next pilot may come before our payload counts as sent.
        let mut event = self.next_event();
        if let Some(from) = Self::pilot_of(&event) {
            self.announced = Some(from);
            event = self.next_event();
        }
        assert_eq!(event, CommEvent::Sent { message });
    }

    fn pilot_of(event: &CommEvent) -> Option<NodeId> {
        match event {
            CommEvent::Pilot { from, .. } => Some(*from),
            _ => None,
        }
    }

    fn our_receive(&mut self, size: usize, message: MessageId) {
        while self.announced.is_none() {
            let event = self.next_event();
            self.announced = Self::pilot_of(&event);
        }
        let from = self.announced.take().expect("just seen");
        let payload = self.payload(size, message);
        // SAFETY: as above.
        unsafe { self.end.receive(from, payload) };
        assert_eq!(self.next_event(), CommEvent::Received { from, message });
    }

    fn barrier(&mut self) {
        self.end.enter_barrier(TaskId::from_index(1));
        assert_eq!(self.next_event(), CommEvent::BarrierReached);
    }

    fn payload(&mut self, size: usize, message: MessageId) -> WirePayload {
        let extent = Box3::from_range([size]);
        let base = BasePtr::of_mut_slice(&mut self.buffer);
        WirePayload {
            at: MemoryId::HOST,
            message,
            memory: ElementArray { base, extent },
            elements: extent,
            elem_size: 1,
        }
    }

    fn next_event(&mut self) -> CommEvent {
        loop {
            if let Some(event) = self.end.poll() {
                return event;
            }
        }
    }
}

fn plain_barrier() {
    // SAFETY: MPI is initialised.
    unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
}

fn len(size: usize) -> c_int {
    c_int::try_from(size).expect("at most 16 MiB")
}
