//! Fibers: functions that run side by side on one thread, each on a stack of its own, and
//! wait for each other at barriers. Knows nothing of kernels.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;

use celerity_kernel::GroupBarrier;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::overflow::{Name, Stacks, limit, watched};

/// Bytes of a stack. Only what is used takes memory: as a rule one page.
pub(super) const STACK: usize = 256 << 10;

/// The most stacks that a thread keeps for later.
const KEPT: usize = 1024;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// The barrier at which a fiber waits, in the user's source.
type Barrier = &'static Location<'static>;

/// One function, as far as it has come.
struct Fiber {
    /// The lowest address of its stack.
    limit: usize,
    routine: Coroutine<(), Barrier, (), DefaultStack>,
}

/// Fibers of one call have not all come to the same barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Divergence {
    /// Some wait, others have ended.
    #[error(
        "{waiting} of its {fibers} items {} at the barrier at {barrier}, the others have ended",
        if *waiting == 1 { "waits" } else { "wait" }
    )]
    Ended { waiting: usize, fibers: usize, barrier: Barrier },
    /// They wait at different barriers.
    #[error(
        "of its {fibers} items, some wait at the barrier at {one}, others at the one at {other}"
    )]
    Apart { fibers: usize, one: Barrier, other: Barrier },
}

/// Calls `body` for each number below `fibers`, side by side: where one waits, the
/// others go on. All must wait equally often, and at the same barriers. On each switch,
/// O(1). If a stack overflows, `name` tells whose it was, and the process ends.
///
/// # Errors
/// If they do not. Those that wait are unwound from there.
///
/// # Panics
/// With what `body` panics with, after the others have been unwound; and if the
/// system has no memory for a stack.
pub(crate) fn side_by_side(
    fibers: usize,
    name: Name<'_>,
    body: &dyn Fn(usize, &dyn GroupBarrier),
) -> Result<(), Divergence> {
    // SAFETY: fibers borrow it, and none outlives this call: they are dropped, and
    // thereby unwound, before it returns or unwinds.
    let body: &'static dyn Fn(usize, &dyn GroupBarrier) = unsafe { std::mem::transmute(body) };
    let boards: Rc<[Cell<u64>]> = (0..2 * fibers).map(|_| Cell::new(0)).collect();
    watched(name, |stacks| {
        // The first is at its barrier, or over, before the next begins, which gets its stack if it is over.
        let spawned = (0..fibers).map(|number| spawn(number, fibers, body, &boards));
        let mut waiting = Vec::new();
        let mut step = Step { fibers, stacks, waiting: 0, barrier: None };
        for (number, mut fiber) in spawned.enumerate() {
            match step.resume(number, &mut fiber)? {
                true => waiting.push(fiber),
                false => keep(fiber.routine.into_stack()),
            }
        }
        // Those that wait are all or none, so each stays in its place.
        while step.all_wait()? {
            step = Step { fibers, stacks, waiting: 0, barrier: None };
            for (number, fiber) in waiting.iter_mut().enumerate() {
                step.resume(number, fiber)?;
            }
        }
        waiting.into_iter().for_each(|fiber| keep(fiber.routine.into_stack()));
        Ok(())
    })
}

/// From one barrier to the next, for all fibers.
struct Step<'s> {
    fibers: usize,
    stacks: &'s Stacks<'s>,
    /// How many have come to the next barrier, and which that is.
    waiting: usize,
    barrier: Option<Barrier>,
}

impl Step<'_> {
    /// Lets a fiber run, and says whether it waits; if not, it has ended.
    fn resume(&mut self, number: usize, fiber: &mut Fiber) -> Result<bool, Divergence> {
        self.stacks.go_to(fiber.limit, number);
        let CoroutineResult::Yield(other) = fiber.routine.resume(()) else { return Ok(false) };
        self.waiting += 1;
        let one: Barrier = *self.barrier.get_or_insert(other);
        // The same barrier, or a copy of it that another crate has.
        match std::ptr::eq(one, other) || one == other {
            true => Ok(true),
            false => Err(Divergence::Apart { fibers: self.fibers, one, other }),
        }
    }

    /// Whether all wait; if none does, all have ended.
    fn all_wait(&self) -> Result<bool, Divergence> {
        let Self { fibers, waiting, .. } = *self;
        match self.barrier {
            Some(barrier) if waiting < fibers => {
                Err(Divergence::Ended { waiting, fibers, barrier })
            }
            barrier => Ok(barrier.is_some()),
        }
    }
}

fn spawn(
    number: usize,
    fibers: usize,
    body: &'static dyn Fn(usize, &dyn GroupBarrier),
    boards: &Rc<[Cell<u64>]>,
) -> Fiber {
    let (boards, stack) = (boards.clone(), stack());
    let limit = limit(&stack);
    let routine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), Barrier>, ()| {
        body(number, &Yield { yielder, boards, fibers, is_second: Cell::new(false) });
    });
    Fiber { limit, routine }
}

/// The way of a fiber back to the others, and the boards that they share.
struct Yield<'y> {
    yielder: &'y Yielder<(), Barrier>,
    /// One behind the other.
    boards: Rc<[Cell<u64>]>,
    fibers: usize,
    /// Whether the second one is next: for all fibers alike, as they come to the same exchanges.
    is_second: Cell<bool>,
}

impl GroupBarrier for Yield<'_> {
    fn wait(&self, at: Barrier) {
        self.yielder.suspend(at);
    }

    fn board(&self) -> &[Cell<u64>] {
        let (first, second) = self.boards.split_at(self.fibers);
        if self.is_second.replace(!self.is_second.get()) { second } else { first }
    }
}

fn stack() -> DefaultStack {
    let kept = STACKS.with_borrow_mut(Vec::pop);
    kept.unwrap_or_else(|| {
        DefaultStack::new(STACK).unwrap_or_else(|error| {
            panic!("no stack for an item of a group: {error}; take smaller groups")
        })
    })
}

fn keep(stack: DefaultStack) {
    STACKS.with_borrow_mut(|kept| {
        if kept.len() < KEPT {
            kept.push(stack);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const NOBODY: Name<'_> = &|_, _| Ok(());

    /// Where a test waits, however often it is called.
    #[track_caller]
    fn wait(meeting: &dyn GroupBarrier) {
        meeting.wait(Location::caller());
    }

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let log = RefCell::new(Vec::new());
        let walk = |number: usize, meeting: &dyn GroupBarrier| {
            for step in 0..3 {
                log.borrow_mut().push((step, number));
                wait(meeting);
            }
        };
        side_by_side(4, NOBODY, &walk).unwrap();
        let expected: Vec<_> =
            (0..3).flat_map(|step| (0..4).map(move |number| (step, number))).collect();
        assert_eq!(log.into_inner(), expected);
    }

    #[test]
    fn those_who_end_early_are_missed() {
        let error = side_by_side(5, NOBODY, &|number, meeting| {
            if number != 2 {
                wait(meeting);
            }
        });
        let Err(Divergence::Ended { waiting: 4, fibers: 5, barrier }) = error else {
            panic!("{error:?}")
        };
        assert!(barrier.file().ends_with("fibers.rs"));
    }

    #[test]
    fn two_places_are_not_one() {
        let error = side_by_side(2, NOBODY, &|number, meeting| match number {
            0 => wait(meeting),
            _ => wait(meeting),
        });
        let Err(Divergence::Apart { fibers: 2, one, other }) = error else { panic!("{error:?}") };
        assert_eq!(one.line() + 1, other.line());
    }

    #[test]
    fn a_panic_unwinds_those_who_wait() {
        struct Unwound<'c>(&'c Cell<usize>);
        impl Drop for Unwound<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let unwound = Cell::new(0);
        let panicking = || {
            side_by_side(6, NOBODY, &|number, meeting| {
                let _guard = Unwound(&unwound);
                wait(meeting);
                assert!(number != 3, "three is wrong");
                wait(meeting);
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"three is wrong"));
        assert_eq!(unwound.get(), 6);
    }
}
