//! Numbers that items pass to each other, and how many items do so at once. Knows neither items nor memory.

use crate::plain::Scalar;

/// Items of a full warp.
pub(crate) const FULL: usize = 32;

/// Numbers of 32 and 64 bits; sealed.
#[diagnostic::on_unimplemented(
    message = "items of a group cannot exchange a `{Self}`",
    label = "no number of 32 or 64 bits",
    note = "use `u32`, `i32`, `u64`, `i64`, `usize`, `isize`, `f32` or `f64`"
)]
pub trait Word: Scalar + sealed::Bits {}

pub(crate) mod sealed {
    pub trait Bits: crate::tellable::Told {
        #[must_use]
        fn to_bits(self) -> u64;
        #[must_use]
        fn from_bits(bits: u64) -> Self;
    }

    macro_rules! integers {
        ($($integer:ty)*) => {$(
            impl super::Word for $integer {}
            impl Bits for $integer {
                #[inline]
                fn to_bits(self) -> u64 {
                    self as u64
                }

                #[inline]
                fn from_bits(bits: u64) -> Self {
                    bits as Self
                }
            }
        )*};
    }

    macro_rules! floats {
        ($($float:ty: $bits:ty,)*) => {$(
            impl super::Word for $float {}
            impl Bits for $float {
                #[inline]
                fn to_bits(self) -> u64 {
                    u64::from(<$float>::to_bits(self))
                }

                #[inline]
                fn from_bits(bits: u64) -> Self {
                    <$float>::from_bits(bits as $bits)
                }
            }
        )*};
    }

    integers!(u32 i32 u64 i64 usize isize);
    floats! { f32: u32, f64: u64, }
}

#[cfg(test)]
mod tests {
    use super::sealed::Bits;

    #[test]
    fn numbers_survive_their_bits() {
        assert_eq!(f32::from_bits(Bits::to_bits(-0.5_f32) as u32), -0.5);
        assert_eq!(<i32 as Bits>::from_bits(Bits::to_bits(-7_i32)), -7);
        assert_eq!(<isize as Bits>::from_bits(Bits::to_bits(isize::MIN)), isize::MIN);
    }
}
