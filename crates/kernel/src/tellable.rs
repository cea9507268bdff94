//! What can be told in a message of the program's own: numbers, arrays of them, and references to these. Knows their bits;
//! nothing of messages.

use crate::abi::{Teller, ValueKind};

/// What a message can tell: a number, or numbers.
pub trait Told {
    fn tell_to(&self, teller: &mut Teller<'_>);
}

/// A number of up to 64 bits.
pub trait ToldNumber {
    const KIND: ValueKind;

    fn told(&self) -> u64;
}

macro_rules! numbers {
    ($($number:ty: $kind:ident, $value:ident => $bits:expr;)*) => {$(
        impl ToldNumber for $number {
            const KIND: ValueKind = ValueKind::$kind;

            #[inline(always)]
            fn told(&self) -> u64 {
                let $value = *self;
                $bits
            }
        }

        impl Told for $number {
            #[inline(always)]
            fn tell_to(&self, teller: &mut Teller<'_>) {
                teller.number(Self::KIND, self.told());
            }
        }
    )*};
}

numbers! {
    bool: Bool, value => value.into();
    char: Char, value => u32::from(value).into();
    u8: U8, value => value.into();
    u16: U16, value => value.into();
    u32: U32, value => value.into();
    u64: U64, value => value;
    usize: U64, value => value as u64;
    i8: I8, value => value as u64;
    i16: I16, value => value as u64;
    i32: I32, value => value as u64;
    i64: I64, value => value as u64;
    isize: I64, value => value as u64;
    f32: F32, value => value.to_bits().into();
    f64: F64, value => value.to_bits();
}

#[cfg(feature = "half")]
numbers! {
    half::f16: F32, value => value.to_f32().to_bits().into();
    half::bf16: F32, value => value.to_f32().to_bits().into();
}

impl<T: ToldNumber, const N: usize> Told for [T; N] {
    #[inline(always)]
    fn tell_to(&self, teller: &mut Teller<'_>) {
        teller.list(T::KIND, N, |nth| self[nth].told());
    }
}

impl<T: Told + ?Sized> Told for &T {
    #[inline(always)]
    fn tell_to(&self, teller: &mut Teller<'_>) {
        (**self).tell_to(teller);
    }
}

impl<T: Told + ?Sized> Told for &mut T {
    #[inline(always)]
    fn tell_to(&self, teller: &mut Teller<'_>) {
        (**self).tell_to(teller);
    }
}
