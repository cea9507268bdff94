//! Two ways to do the same, which take turns: how long each has taken, and how that
//! compares. Knows nothing of what they do.

use std::time::Duration;

/// The times of both ways in each turn: by hand, and ours.
pub(crate) struct Turns(Vec<[Duration; 2]>);

/// Lets both ways take so many turns, at least one. Also returns what they came to in the
/// last one.
pub(crate) fn turns<R>(
    repetitions: usize,
    mut by_hand: impl FnMut() -> (Duration, R),
    mut ours: impl FnMut() -> celerity::Result<(Duration, R)>,
) -> celerity::Result<(Turns, [R; 2])> {
    let mut turn = || -> celerity::Result<_> {
        let ((hand, expected), (ours, result)) = (by_hand(), ours()?);
        Ok(([hand, ours], [expected, result]))
    };
    let (first, mut results) = turn()?;
    let mut times = vec![first];
    for _ in 1..repetitions {
        let (time, latest) = turn()?;
        times.push(time);
        results = latest;
    }
    Ok((Turns(times), results))
}

impl Turns {
    /// The least time of each.
    pub(crate) fn least(&self) -> [Duration; 2] {
        let least = |way: usize| self.0.iter().map(|turn| turn[way]).min();
        [0, 1].map(|way| least(way).expect("there is a turn"))
    }

    /// The median of how much faster ours is than by hand in the same turn.
    pub(crate) fn median_ratio(&self) -> f64 {
        let ratio = |[hand, ours]: &[Duration; 2]| hand.as_secs_f64() / ours.as_secs_f64();
        let mut ratios: Vec<_> = self.0.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }

    /// A row of a table of what each of `steps` steps takes.
    pub(crate) fn print_steps(&self, name: &str, processes: usize, steps: usize) {
        let [hand, ours] = self.least().map(|time| time.as_secs_f64() * 1e6 / steps as f64);
        let ratio = ours / hand;
        println!("| {name} | {processes} | {hand:.1} | {ours:.1} | {ratio:.2} |");
    }

    /// A row of a table of whole programs that do so much `work` per measure, in the unit that their
    /// name tells.
    pub(crate) fn print_program(&self, name: &str, processes: usize, work: f64) {
        let [hand, ours] = self.least().map(|time| work / time.as_secs_f64());
        let (least, median) = (ours / hand, self.median_ratio());
        println!("| {name} | {processes} | {hand:.0} | {ours:.0} | {least:.3} | {median:.3} |");
    }
}
