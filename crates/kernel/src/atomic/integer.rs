//! Integers that items may count with, wherever they meet.

use super::Atomic;
use super::steps::IntegerSteps;

/// Integers that items may count with: of 32 and 64 bits; sealed.
#[diagnostic::on_unimplemented(
    message = "items cannot count with a `{Self}`",
    label = "no integer of 32 or 64 bits",
    note = "in local memory, a sum of floats would depend on who comes first: let each item write \
            a value of its own, wait at a barrier, and add them in order"
)]
pub trait Integer: Atomic + IntegerSteps + sealed::Wrapping {}

mod sealed {
    pub trait Wrapping {
        #[must_use]
        fn plus(self, other: Self) -> Self;
    }

    macro_rules! wrapping {
        ($($integer:ty)*) => {$(
            impl super::Integer for $integer {}
            impl Wrapping for $integer {
                #[inline]
                fn plus(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
            }
        )*};
    }

    wrapping!(u32 i32 u64 i64 usize isize);
}
