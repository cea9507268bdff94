//! What programs by hand have in common: equal shares, ranks, a result at the root, and how it is
//! compared with ours. Knows nothing of what they compute.

use std::time::Duration;

use bytemuck::NoUninit;
use mpi::topology::{Communicator, Process, SimpleCommunicator};
use mpi::traits::{CommunicatorCollectives, Equivalence, Root};

use crate::turns::turns;
use crate::{PROGRAM_WINDOWS, is_root, place, shortest};

/// Lets a program take turns by hand and through Celerity, compares what it has computed bit for
/// bit, and prints a row of a table: its name with the unit of its work, and how much of that a
/// measure does.
pub(crate) fn compare<T: NoUninit>(
    world: &SimpleCommunicator,
    repetitions: usize,
    (name, work): (&str, f64),
    by_hand: impl FnMut() -> (Duration, Vec<T>),
    ours: impl FnMut() -> celerity::Result<(Duration, Vec<T>)>,
) -> celerity::Result<()> {
    let (turns, [expected, found]) = turns(repetitions, by_hand, ours)?;
    if is_root(world) {
        let [expected, found] = [&expected, &found].map(|all| bytemuck::cast_slice::<T, u8>(all));
        assert!(!found.is_empty() && found == expected, "{name}: the results differ");
        turns.print_program(name, place(world).1, work);
    }
    Ok(())
}

/// How many of `count` each of so many processes has.
pub(crate) fn share(count: usize, processes: usize) -> usize {
    assert_eq!(count % processes, 0, "equal shares");
    count / processes
}

/// The least time of a program by hand, which ends when all processes have.
pub(crate) fn timed(world: &SimpleCommunicator, mut measured: impl FnMut()) -> Duration {
    let time = shortest(PROGRAM_WINDOWS, || {
        measured();
        world.barrier();
        Ok(())
    });
    time.expect("nothing is refused")
}

pub(crate) fn at_rank(world: &SimpleCommunicator, rank: usize) -> Process<'_> {
    world.process_at_rank(i32::try_from(rank).expect("MPI counts in 32 bits"))
}

/// All shares, of one length, at the root; nothing elsewhere.
pub(crate) fn gathered<T>(world: &SimpleCommunicator, own: &[T]) -> Vec<T>
where
    T: Equivalence + Clone + Default,
{
    if !is_root(world) {
        world.process_at_rank(0).gather_into(own);
        return Vec::new();
    }
    let mut all = vec![T::default(); own.len() * place(world).1];
    world.this_process().gather_into_root(own, &mut all[..]);
    all
}
