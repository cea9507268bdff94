//! Chance: the same seed gives the same numbers on every machine.

use std::time::Duration;

/// A stream of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("smaller than a usize")
    }

    /// A number from `least` to `most`, both possible.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True once in so many times, on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// How long something takes.
    pub(crate) fn delay(&mut self, span: DelayRange) -> Duration {
        let magnitude = 1_u64 << self.below(span.magnitude as usize + 1);
        Duration::from_nanos(magnitude + self.next() % magnitude)
    }
}

/// A range of durations. All orders of magnitude are equally likely, so that
/// things are now simultaneous, now far apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayRange {
    /// The longest is below 2^(magnitude + 1) nanoseconds.
    magnitude: u32,
}

impl DelayRange {
    /// Durations of up to 2^`magnitude` nanoseconds, or twice that.
    pub(crate) fn up_to(magnitude: usize) -> Self {
        Self { magnitude: u32::try_from(magnitude).expect("spans are short") }
    }

    /// No delay of this span is longer.
    pub(crate) fn longest(self) -> Duration {
        Duration::from_nanos(2 << self.magnitude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_cover_all_magnitudes_and_stay_in_their_span() {
        let (mut random, span) = (Random::new(7), DelayRange::up_to(12));
        let delays: Vec<_> = (0..1000).map(|_| random.delay(span)).collect();
        assert!(delays.iter().all(|&delay| delay < span.longest()));
        for magnitude in 0..=12 {
            let nanos = 1_u128 << magnitude;
            assert!(delays.iter().any(|delay| (nanos..2 * nanos).contains(&delay.as_nanos())));
        }
    }

    #[test]
    fn a_seed_is_a_sequence() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next())
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
