//! The accumulators of a tile that is reduced into an array: in the block's shared memory, or in
//! global memory where there are too many. Threads combine into them in single steps.
#![allow(unsafe_code)]

use core::arch::asm;
use core::marker::PhantomData;
use core::mem::transmute_copy;

use super::Operator;
use crate::abi::AccessBlock;
use crate::atomic::steps::{IntegerSteps, Steps};
use crate::machine::shared;

/// Row-major.
pub(crate) struct TileAccumulators<'a, T> {
    /// The tile's partial result.
    result: *mut T,
    /// Where they are while items are combined.
    address: u32,
    is_shared: bool,
    elements: PhantomData<&'a T>,
}

impl<T> Copy for TileAccumulators<'_, T> {}

impl<T> Clone for TileAccumulators<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy> TileAccumulators<'_, T> {
    /// Those `offset` bytes into the block's dynamic shared memory, if it is not
    /// [`IN_GLOBAL`](AccessBlock::IN_GLOBAL).
    ///
    /// # Safety
    /// `result` leads to a partial result that this block alone writes, and the memory is there and
    /// nothing else's, as long as this is used.
    #[inline(always)]
    pub(crate) unsafe fn new(result: *mut T, offset: u32) -> Self {
        let is_shared = offset != AccessBlock::IN_GLOBAL;
        let address = shared::base().wrapping_add(offset);
        Self { result, address, is_shared, elements: PhantomData }
    }

    #[inline(always)]
    fn shared(&self, element: u32) -> u32 {
        self.address + element * size_of::<T>() as u32
    }

    /// # Safety
    /// There is such an element, and no other thread uses it now.
    #[inline(always)]
    pub(crate) unsafe fn set(&self, element: u32, value: T) {
        // SAFETY: passed on.
        unsafe {
            match self.is_shared {
                true => shared::store(self.shared(element), value),
                false => self.result.add(element as usize).write(value),
            }
        }
    }

    /// Leaves an element in the partial result.
    ///
    /// # Safety
    /// As [`set`](Self::set).
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, element: u32) {
        if self.is_shared {
            // SAFETY: passed on.
            unsafe {
                self.result.add(element as usize).write(shared::load(self.shared(element)));
            }
        }
    }

    /// Combines a value into an element, as one step.
    ///
    /// # Safety
    /// There is such an element, it has 32 or 64 bits, and nothing but this touches it meanwhile.
    /// In which order values are combined is unknown.
    #[inline(always)]
    pub(crate) unsafe fn combine<O: Operator<T>>(&self, element: u32, value: T, operator: &O) {
        // SAFETY: passed on.
        unsafe {
            match (self.is_shared, O::IS_WRAPPING_SUM) {
                (true, true) => drop(shared::add(self.shared(element), value)),
                (true, false) => Shared(self.shared(element)).update(value, operator),
                (false, is_sum) => {
                    let at = self.result.add(element as usize);
                    match (is_sum, size_of::<T>()) {
                        (true, 8) => drop(u64::add(at.cast(), transmute_copy(&value))),
                        (true, _) => drop(u32::add(at.cast(), transmute_copy(&value))),
                        (false, _) => Global(at.cast()).update(value, operator),
                    }
                }
            }
        }
    }
}

/// A word that is compared and replaced until no other thread came in between.
trait Word: Copy {
    /// # Safety
    /// The word is there, and touched in single steps alone.
    unsafe fn replace<B: Bits>(self, current: B, new: B) -> B;

    /// # Safety
    /// As [`replace`](Self::replace).
    unsafe fn look<B: Bits>(self) -> B;

    /// # Safety
    /// As [`TileAccumulators::combine`].
    #[inline(always)]
    unsafe fn update<T: Copy, O: Operator<T>>(self, value: T, operator: &O) {
        // SAFETY: passed on.
        unsafe {
            match size_of::<T>() {
                8 => self.update_bits::<u64, T, O>(value, operator),
                _ => self.update_bits::<u32, T, O>(value, operator),
            }
        }
    }

    /// # Safety
    /// As [`update`](Self::update), and values have as many bits as `B`.
    #[inline(always)]
    unsafe fn update_bits<B: Bits, T: Copy, O: Operator<T>>(self, value: T, operator: &O) {
        // SAFETY: passed on; bits of a value are read as one, and back.
        unsafe {
            let mut before: B = self.look();
            loop {
                let after = operator.combine(transmute_copy(&before), value);
                let after: B = transmute_copy(&after);
                // What changes nothing need not be written: others come before it or after it.
                if after == before {
                    return;
                }
                let seen = self.replace(before, after);
                if seen == before {
                    return;
                }
                before = seen;
            }
        }
    }
}

/// An address in shared memory.
#[derive(Clone, Copy)]
struct Shared(u32);

/// An address in global memory.
#[derive(Clone, Copy)]
struct Global(*mut ());

impl Word for Shared {
    #[inline(always)]
    unsafe fn replace<B: Bits>(self, current: B, new: B) -> B {
        // SAFETY: passed on.
        unsafe { B::replace_shared(self.0, current, new) }
    }

    #[inline(always)]
    unsafe fn look<B: Bits>(self) -> B {
        // SAFETY: passed on. What is not the newest will not be replaced.
        unsafe { shared::load(self.0) }
    }
}

impl Word for Global {
    #[inline(always)]
    unsafe fn replace<B: Bits>(self, current: B, new: B) -> B {
        // SAFETY: passed on.
        unsafe { B::compare_exchange(self.0.cast(), current, new) }
    }

    #[inline(always)]
    unsafe fn look<B: Bits>(self) -> B {
        // SAFETY: passed on.
        unsafe { B::load(self.0.cast()) }
    }
}

/// The bits of a word.
trait Bits: IntegerSteps {
    /// # Safety
    /// As [`Word::replace`].
    unsafe fn replace_shared(address: u32, current: Self, new: Self) -> Self;
}

macro_rules! bits {
    ($($bits:ty: $class:ident, $instruction:literal;)*) => {$(
        impl Bits for $bits {
            #[inline(always)]
            unsafe fn replace_shared(address: u32, current: Self, new: Self) -> Self {
                let before: Self;
                // SAFETY: passed on.
                unsafe {
                    asm!(
                        concat!($instruction, " {before}, [{address}], {current}, {new};"),
                        before = out($class) before,
                        address = in(reg32) address,
                        current = in($class) current,
                        new = in($class) new,
                        options(nostack, preserves_flags),
                    );
                }
                before
            }
        }
    )*};
}

bits! {
    u32: reg32, "atom.shared.cas.b32";
    u64: reg64, "atom.shared.cas.b64";
}
