//! The same computation by hand and through Celerity, in turns: what it has cost, as a row of a
//! table. Knows nothing of what is computed.

use std::time::Duration;

use celerity::Queue;

use crate::spent::{Spent, Stopwatch};

/// A row of a table.
pub(crate) struct Case {
    pub(crate) name: String,
    /// How many of what the table counts a step goes through.
    count: usize,
    /// Steps of a turn.
    steps: usize,
    /// What so many steps take by hand, and through Celerity.
    turn: Box<dyn Fn(usize) -> [Spent; 2]>,
}

/// A case that runs `by_hand` and `ours` for so many steps, and compares what comes out.
pub(crate) fn case<R: PartialEq>(
    name: impl Into<String>,
    (count, steps): (usize, usize),
    by_hand: impl Fn(usize) -> (Spent, R) + 'static,
    ours: impl Fn(usize) -> celerity::Result<(Spent, R)> + 'static,
) -> Case {
    let name = name.into();
    let told = name.clone();
    let turn = move |steps| {
        let (hand, expected) = by_hand(steps);
        let (time, found) = ours(steps).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert!(found == expected, "{told}: what is made by hand is something else");
        [hand, time]
    };
    Case { name, count, steps, turn: Box::new(turn) }
}

/// What `steps` calls take, after one that does not count.
pub(crate) fn timed_by_hand(steps: usize, mut step: impl FnMut()) -> Spent {
    step();
    let watch = Stopwatch::start();
    (0..steps).for_each(|_| step());
    watch.read()
}

/// What it takes that `steps` calls have submitted, after one that does not count.
pub(crate) fn timed(
    queue: &Queue,
    steps: usize,
    mut step: impl FnMut() -> celerity::Result<()>,
) -> celerity::Result<Spent> {
    step()?;
    queue.barrier()?;
    let watch = Stopwatch::start();
    (0..steps).try_for_each(|_| step())?;
    queue.barrier()?;
    Ok(watch.read())
}

impl Case {
    /// Prints the case's row, of so many turns: least CPU times, their ratio, and the medians of the turns' ratios, of
    /// CPU time and by the clock.
    pub(crate) fn print(&self, turns: usize) {
        let times: Vec<_> = (0..turns).map(|_| (self.turn)(self.steps)).collect();
        let per_count = |way: usize| {
            let least = times.iter().map(|turn| turn[way].cpu).min().unwrap_or_default();
            least.as_secs_f64() * 1e9 / (self.count * self.steps) as f64
        };
        let median = |of: fn(Spent) -> Duration| {
            let ratio =
                |[hand, ours]: &[Spent; 2]| of(*ours).as_secs_f64() / of(*hand).as_secs_f64();
            let mut ratios: Vec<_> = times.iter().map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let (hand, ours) = (per_count(0), per_count(1));
        let (cpu, clock) = (median(|spent| spent.cpu), median(|spent| spent.clock));
        let name = &self.name;
        println!("| {name} | {hand:.3} | {ours:.3} | {:.2} | {cpu:.2} | {clock:.2} |", ours / hand);
    }
}
