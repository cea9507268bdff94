//! Fibers: functions that run side by side on one thread, each on a stack of its own, and
//! wait for each other at barriers. Knows nothing of kernels.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use celerity_kernel::GroupBarrier;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::meeting::{Arrivals, Barrier, Divergence, board, boards};
use super::overflow::{Stacks, limit, watched};

/// Bytes of a stack. Only what is used takes memory: as a rule one page.
pub(super) const STACK: usize = 256 << 10;

/// The most stacks that a thread keeps for later.
const KEPT: usize = 1024;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// One function, as far as it has come.
struct Fiber {
    /// The lowest address of its stack.
    limit: usize,
    /// Gives the barrier at which it waits, or nothing if it is done with a round.
    routine: Coroutine<(), Option<Barrier>, (), DefaultStack>,
}

/// What fibers are for: rounds, in each of which all of them do something and meet.
pub(crate) trait FiberRounds {
    /// Before the first fiber begins with a round.
    fn begin(&self, round: usize);

    /// What a fiber does in the round that has begun last.
    fn run(&self, number: usize, meeting: &dyn GroupBarrier);

    /// Whose stack has overflowed, as [`Name`](super::overflow::Name) says it.
    fn name(&self, number: usize, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// Runs `fibers` fibers side by side for so many rounds: where one waits, the
/// others go on, and no round begins before all are done with the one before. In each, all must wait
/// equally often, and at the same barriers. On each switch, O(1). If a stack overflows, the process ends.
///
/// # Errors
/// If they do not. Those that wait are unwound from there.
///
/// # Panics
/// With what a round panics with, after the others have been unwound; and if the
/// system has no memory for a stack.
pub(crate) fn side_by_side(
    fibers: usize,
    rounds: usize,
    all: &dyn FiberRounds,
) -> Result<(), Divergence> {
    if rounds == 0 {
        return Ok(());
    }
    // SAFETY: fibers borrow it, and none outlives this call: they are dropped, and
    // thereby unwound, before it returns or unwinds.
    let all: &'static dyn FiberRounds = unsafe { std::mem::transmute(all) };
    let boards = boards(fibers);
    watched(&|number, out| all.name(number, out), |stacks| {
        let mut running: Vec<Fiber> =
            (0..fibers).map(|number| spawn(number, rounds, all, &boards)).collect();
        for round in 0..rounds {
            all.begin(round);
            while step(stacks, &mut running)? {}
        }
        running.into_iter().for_each(|fiber| keep(fiber.routine.into_stack()));
        Ok(())
    })
}

/// Lets each fiber run until it waits or is done with its round, and says whether they wait: all do, or none.
fn step(stacks: &Stacks<'_>, running: &mut [Fiber]) -> Result<bool, Divergence> {
    let mut arrivals = Arrivals::of(running.len());
    for (number, fiber) in running.iter_mut().enumerate() {
        stacks.go_to(fiber.limit, number);
        if let CoroutineResult::Yield(Some(barrier)) = fiber.routine.resume(()) {
            arrivals.note(barrier)?;
        }
    }
    arrivals.all_wait()
}

fn spawn(
    number: usize,
    rounds: usize,
    all: &'static dyn FiberRounds,
    boards: &Rc<[Cell<u64>]>,
) -> Fiber {
    let (boards, stack) = (boards.clone(), stack());
    let limit = limit(&stack);
    let routine =
        Coroutine::with_stack(stack, move |yielder: &Yielder<(), Option<Barrier>>, ()| {
            let meeting = Yield { yielder, boards, is_second: Cell::new(false) };
            for round in 0..rounds {
                all.run(number, &meeting);
                // Behind the last one it ends.
                if round + 1 < rounds {
                    yielder.suspend(None);
                }
            }
        });
    Fiber { limit, routine }
}

/// The way of a fiber back to the others, and the boards that they share.
struct Yield<'y> {
    yielder: &'y Yielder<(), Option<Barrier>>,
    /// One behind the other.
    boards: Rc<[Cell<u64>]>,
    /// Whether the second one is next: for all fibers alike, as they come to the same exchanges.
    is_second: Cell<bool>,
}

impl GroupBarrier for Yield<'_> {
    fn wait(&self, at: Barrier) {
        self.yielder.suspend(Some(at));
    }

    /// A fiber is left where it waits, be it in a future.
    fn come(&self, at: Barrier) {
        self.wait(at);
    }

    fn board(&self) -> &[Cell<u64>] {
        board(&self.boards, self.is_second.replace(!self.is_second.get()))
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
    use std::panic::{AssertUnwindSafe, Location, catch_unwind};

    use super::*;

    /// What fibers do in a round, by its number.
    struct Walk<W>(Cell<usize>, W);

    impl<W: Fn(usize, usize, &dyn GroupBarrier)> FiberRounds for Walk<W> {
        fn begin(&self, round: usize) {
            self.0.set(round);
        }

        fn run(&self, number: usize, meeting: &dyn GroupBarrier) {
            (self.1)(self.0.get(), number, meeting);
        }

        fn name(&self, _: usize, _: &mut dyn fmt::Write) -> fmt::Result {
            Ok(())
        }
    }

    fn walk(
        fibers: usize,
        rounds: usize,
        walk: impl Fn(usize, usize, &dyn GroupBarrier),
    ) -> Result<(), Divergence> {
        side_by_side(fibers, rounds, &Walk(Cell::new(0), walk))
    }

    /// One round.
    fn once(fibers: usize, run: impl Fn(usize, &dyn GroupBarrier)) -> Result<(), Divergence> {
        walk(fibers, 1, |_, number, meeting| run(number, meeting))
    }

    /// Where a test waits, however often it is called.
    #[track_caller]
    fn wait(meeting: &dyn GroupBarrier) {
        meeting.wait(Location::caller());
    }

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let log = RefCell::new(Vec::new());
        let steps = |number: usize, meeting: &dyn GroupBarrier| {
            for step in 0..3 {
                log.borrow_mut().push((step, number));
                wait(meeting);
            }
        };
        once(4, steps).unwrap();
        let expected: Vec<_> =
            (0..3).flat_map(|step| (0..4).map(move |number| (step, number))).collect();
        assert_eq!(log.into_inner(), expected);
    }

    #[test]
    fn those_who_end_early_are_missed() {
        let error = once(5, |number, meeting| {
            if number != 2 {
                wait(meeting);
            }
        });
        let Err(Divergence::Ended { waiting: 4, items: 5, barrier }) = error else {
            panic!("{error:?}")
        };
        assert!(barrier.file().ends_with("fibers.rs"));
    }

    #[test]
    fn two_places_are_not_one() {
        let error = once(2, |number, meeting| match number {
            0 => wait(meeting),
            _ => wait(meeting),
        });
        let Err(Divergence::Apart { items: 2, one, other }) = error else { panic!("{error:?}") };
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
            once(6, |number, meeting| {
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

    #[test]
    fn a_round_begins_when_all_are_done_with_the_one_before() {
        /// What has happened, and the round.
        struct Logged(RefCell<Vec<String>>, Cell<usize>);
        impl FiberRounds for Logged {
            fn begin(&self, round: usize) {
                self.1.set(round);
                self.0.borrow_mut().push(format!("{round}:"));
            }

            fn run(&self, number: usize, meeting: &dyn GroupBarrier) {
                self.0.borrow_mut().push(format!("{number}"));
                for _ in 0..self.1.get() {
                    wait(meeting);
                    self.0.borrow_mut().push(format!("{number}'"));
                }
            }

            fn name(&self, _: usize, _: &mut dyn fmt::Write) -> fmt::Result {
                Ok(())
            }
        }
        let log = Logged(RefCell::default(), Cell::new(0));
        side_by_side(3, 3, &log).unwrap();
        let expected = "0: 0 1 2 1: 0 1 2 0' 1' 2' 2: 0 1 2 0' 1' 2' 0' 1' 2'";
        assert_eq!(log.0.into_inner().join(" "), expected);
        walk(3, 0, |_, _, _| panic!("there is no round")).unwrap();
    }

    #[test]
    fn those_who_are_done_early_are_missed_in_later_rounds_too() {
        let error = walk(3, 4, |round, number, meeting| {
            if round < 2 || number == 1 {
                wait(meeting);
            }
        });
        assert!(matches!(error, Err(Divergence::Ended { waiting: 1, items: 3, .. })), "{error:?}");
    }

    #[test]
    fn what_was_passed_stays_until_all_have_looked() {
        let seen = RefCell::new(Vec::new());
        let passing = |round: usize, number: usize, meeting: &dyn GroupBarrier| {
            for step in 0..3 {
                let board = meeting.board();
                board[number].set((100 * round + 10 * step + number) as u64);
                wait(meeting);
                seen.borrow_mut()
                    .push((number, board[..2].iter().map(Cell::get).collect::<Vec<_>>()));
            }
        };
        walk(2, 2, passing).unwrap();
        for (number, of) in [0, 1].map(|number| (number, seen.borrow().clone())) {
            let seen: Vec<_> = of.into_iter().filter(|(who, _)| *who == number).collect();
            let expected = [0, 10, 20, 100, 110, 120].map(|first| (number, vec![first, first + 1]));
            assert_eq!(seen, expected);
        }
    }
}
