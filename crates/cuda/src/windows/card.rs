//! What a process tells others of its windows, as bytes: a sign that it has written into them, and a handle
//! for each.

use std::hash::{BuildHasher, RandomState};

use crate::driver::MemoryHandle;

/// A process's windows, as it describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// What stands at the start of each window, so that who opens one knows that it is the right one.
    pub(super) sign: u64,
    pub(super) handles: Vec<MemoryHandle>,
}

impl Card {
    /// A card with a sign that others hardly have.
    pub(super) fn new(handles: Vec<MemoryHandle>) -> Self {
        Self { sign: RandomState::new().hash_one(&handles), handles }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.sign.to_le_bytes().to_vec();
        bytes.extend(self.handles.iter().flatten());
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (sign, rest) = bytes.split_first_chunk()?;
        let (handles, rest) = rest.as_chunks();
        (rest.is_empty() && !handles.is_empty())
            .then(|| Self { sign: u64::from_le_bytes(*sign), handles: handles.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_arrive_as_they_were() {
        let card = Card::new(vec![[3; 64], [7; 64]]);
        let bytes = card.write();
        assert_eq!(Card::read(&bytes), Some(card));
        for len in [0, 7, 8, 9, 71, 135] {
            assert_eq!(Card::read(&bytes[..len]), None, "{len}");
        }
    }
}
