//! The numbers that test programs compute with: any stale, torn or missing
//! input changes every later output with near certainty.

use celerity_regions::Coord3;
use celerity_tdag::AccessMode;

/// A hash under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixer(u64);

impl Mixer {
    /// Starts from the statement that is being executed, and its item.
    #[must_use]
    pub fn for_item(op: usize, item: Coord3) -> Self {
        item.iter().fold(Self(0).with(op as u64), |mixer, &coordinate| mixer.with(coordinate))
    }

    /// Takes in one more word. Order matters.
    #[must_use]
    pub fn with(self, word: u64) -> Self {
        // The finaliser of splitmix64 over a running sum: every input bit
        // reaches every output bit, at three multiplications per word.
        let mut bits = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word ^ 0x5851_f42d);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(bits ^ (bits >> 31))
    }

    /// A number below `bound`, which is not 0: a random choice.
    #[must_use]
    pub fn below(self, bound: usize) -> usize {
        usize::try_from(self.0 % bound as u64).expect("smaller than a usize")
    }

    /// The word that an item writes to one element through one access.
    #[must_use]
    pub fn written(self, access: usize, slot: usize, word: usize) -> u64 {
        self.with(access as u64).with(slot as u64).with(word as u64).0
    }
}

/// Whether an item's hash takes in what it reads in this mode. What items update together it must
/// not: it depends on who came first. There each adds its word to what it finds, so that all orders
/// come to the same, and a stale element, or an item that was lost, to something else.
#[must_use]
pub fn mixes(mode: AccessMode) -> bool {
    mode.reads() && mode != AccessMode::Update
}

/// Word `word` of an element's initial contents.
#[must_use]
pub fn initial(buffer: u64, slot: usize, word: usize) -> u64 {
    Mixer(buffer).written(0, slot, word)
}

/// The initial contents of a whole buffer.
#[must_use]
pub fn initial_contents(buffer: u64, elements: usize, words: usize) -> Vec<u64> {
    let slots = (0..elements).flat_map(|slot| (0..words).map(move |word| (slot, word)));
    slots.map(|(slot, word)| initial(buffer, slot, word)).collect()
}
