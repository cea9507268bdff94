//! The memories of a simulated cluster: really allocated, poisoned when given
//! back, and kept until the end of the run. So whoever uses memory too long
//! reads nonsense that changes the result, and is caught, but harms nobody.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use celerity_executor::{BasePtr, ElementArray, copy_elements};
use celerity_regions::Box3;

/// What memory that is not valid holds.
const POISON: u8 = 0xa5;

/// All memory that has been handed out, by address. Blocks are whole words.
#[derive(Debug, Default)]
pub(in crate::sim) struct Memory {
    blocks: BTreeMap<BasePtr, Block>,
}

#[derive(Debug)]
struct Block {
    /// Owns the words; everybody, also this module, goes by the base.
    words: Vec<u64>,
    live: bool,
}

impl Memory {
    /// So many bytes, zeroed.
    ///
    /// # Panics
    /// If more than a word's alignment is asked for: no program here does.
    pub(in crate::sim) fn allocate(&mut self, bytes: u64, alignment: u64) -> BasePtr {
        assert!(alignment <= 8, "simulated memory is aligned to words, not to {alignment} bytes");
        let words = usize::try_from(bytes.div_ceil(8)).expect("programs here are small");
        self.adopt(vec![0; words.max(1)])
    }

    /// Takes over memory with contents.
    pub(in crate::sim) fn adopt(&mut self, mut words: Vec<u64>) -> BasePtr {
        let base = BasePtr::of_mut_slice(bytemuck::cast_slice_mut(&mut words));
        self.blocks.insert(base, Block { words, live: true });
        base
    }

    /// Poisons a block; it stays where it is. `false` if it is not live.
    pub(in crate::sim) fn give_back(&mut self, base: BasePtr) -> bool {
        let Some(block) = self.blocks.get_mut(&base).filter(|block| block.live) else {
            return false;
        };
        block.live = false;
        // SAFETY: the block is live in the Rust sense until `self` is dropped,
        // and nothing runs at the same time: a simulation has one thread.
        unsafe { base.as_ptr().write_bytes(POISON, block.words.len() * 8) };
        true
    }

    /// Whether the block at `base` has been given back. Memory that was never
    /// handed out here has not.
    pub(in crate::sim) fn is_gone(&self, base: BasePtr) -> bool {
        self.blocks.get(&base).is_some_and(|block| !block.live)
    }

    /// A copy of the block at `base`.
    pub(in crate::sim) fn snapshot(&self, base: BasePtr) -> Option<Vec<u64>> {
        let length = self.blocks.get(&base)?.words.len();
        let first = base.as_ptr().cast::<u64>();
        // SAFETY: the block has so many words, all initialised, and nothing
        // runs at the same time.
        Some(unsafe { std::slice::from_raw_parts(first, length) }.to_vec())
    }

    /// Writes to the block at `base` those words in which `after` differs from
    /// `before`.
    pub(in crate::sim) fn write_changes(&mut self, base: BasePtr, before: &[u64], after: &[u64]) {
        let length = self.blocks.get(&base).map_or(0, |block| block.words.len());
        assert_eq!((before.len(), after.len()), (length, length), "snapshots are whole blocks");
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            if before != after {
                // SAFETY: `index` is below the block's length, and nothing
                // runs at the same time.
                unsafe { base.as_ptr().cast::<u64>().add(index).write(*after) };
            }
        }
    }
}

/// Elements on their way from one memory to another.
#[derive(Debug)]
pub(in crate::sim) struct Staged {
    bytes: Vec<u8>,
    elements: Box3,
    elem_size: u64,
}

impl Staged {
    /// Poison, to be written where data is going to arrive.
    pub(in crate::sim) fn poison(elements: Box3, elem_size: u64) -> Self {
        let bytes = usize::try_from(elements.volume() * elem_size).expect("payloads are small");
        Self { bytes: vec![POISON; bytes], elements, elem_size }
    }

    /// Takes elements out of an array.
    ///
    /// # Safety
    /// As for [`copy_elements`].
    pub(in crate::sim) unsafe fn read(
        source: ElementArray,
        elements: Box3,
        elem_size: u64,
    ) -> Self {
        let mut staged = Self::poison(elements, elem_size);
        let array = staged.array();
        // SAFETY: passed on; the staging array is ours and has room.
        unsafe { copy_elements(source, array, &elements, elem_size) };
        staged
    }

    /// Puts them into another array.
    ///
    /// # Safety
    /// As for [`copy_elements`].
    pub(in crate::sim) unsafe fn write(mut self, target: ElementArray) {
        let (array, elements, elem_size) = (self.array(), self.elements, self.elem_size);
        // SAFETY: passed on; the staging array is ours and has been filled.
        unsafe { copy_elements(array, target, &elements, elem_size) };
    }

    fn array(&mut self) -> ElementArray {
        let base = BasePtr::of_mut_slice(&mut self.bytes);
        ElementArray { base, extent: self.elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_given_back_is_poison_and_known_to_be() {
        let mut memory = Memory::default();
        let base = memory.allocate(20, 8);
        assert_eq!(memory.snapshot(base), Some(vec![0; 3]));
        memory.write_changes(base, &[0; 3], &[1, 0, 2]);
        assert_eq!(memory.snapshot(base), Some(vec![1, 0, 2]));
        assert!(memory.give_back(base) && memory.is_gone(base));
        assert_eq!(memory.snapshot(base), Some(vec![u64::from_ne_bytes([POISON; 8]); 3]));
        assert!(!memory.give_back(base), "once is enough");
    }
}
