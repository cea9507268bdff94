//! `panic!`, `assert!` and their like for functions that kernels call. Hosts compile them as they are. Devices end the thread
//! where it is, without a call, and leave the message's numbers for the host to format.
//!
//! In a `#[kernel]` they stand by themselves: the attribute takes these. In a function beside kernels, import them:
//!
//! ```
//! use celerity_kernel::told::assert;
//! use celerity_kernel::{Item, kernel};
//!
//! fn half(value: u32) -> u32 {
//!     assert!(value.is_multiple_of(2), "{value} is odd");
//!     value / 2
//! }
//! # assert_eq!(half(6), 3);
//! ```
//!
//! Without the import they work as well, but are a call in the device's code, and of a message with numbers only the line is
//! told.
//!
//! Told are integers of up to 64 bits, `f32`, `f64`, `f16`, `bf16`, `bool`, `char`, arrays of them, and references to all of these (in kernels that
//! are generic over a [`Number`], single ones): up to eight values with twelve numbers in all. What else there is, and what is more, looks like `…`. A text ends
//! after 256 bytes, with what stood behind them. A message with a width that is a value, `{:>width$}`, or with an address is not taken apart: of that only the
//! line is told. What is constant, as `const { assert!(N < 8) }`, is left to the compiler: do not import `assert` for a `const fn`.

pub use celerity_kernel_macros::{
    told_assert as assert, told_assert_eq as assert_eq, told_assert_ne as assert_ne,
    told_debug_assert as debug_assert, told_debug_assert_eq as debug_assert_eq,
    told_debug_assert_ne as debug_assert_ne, told_panic as panic, told_todo as todo,
    told_unimplemented as unimplemented, told_unreachable as unreachable,
};

use crate::abi::Teller;
use crate::reduce::Number;
use crate::tellable::Told;

/// A value in a message. Of `(&&&&Telling(&value)).tell(teller)` the compiler takes the first method that there is for the
/// value's type: of what has the references that are written, one more, one less, two less, and three.
#[doc(hidden)]
pub mod tell {
    use super::{Number, Teller, Told};

    #[derive(Debug)]
    pub struct Telling<T>(pub T);

    macro_rules! ways {
        ($($(#[$what:meta])* $way:ident: [$($bound:tt)*] $value:ty, $self:ident, $teller:ident => $tell:expr;)*) => {$(
            $(#[$what])*
            pub trait $way {
                fn tell(&self, teller: &mut Teller<'_>);
            }

            impl<T: $($bound)*> $way for $value {
                #[inline(always)]
                fn tell(&$self, $teller: &mut Teller<'_>) {
                    $tell;
                }
            }
        )*};
    }

    ways! {
        /// Of what is known to be told.
        TellKnown: [Told + ?Sized] &&&Telling<&T>, self, teller => self.0.tell_to(teller);
        /// Of what is known to be a [`Number`], in kernels that are generic over it.
        TellNumber: [Number] &&&&Telling<&T>, self, teller => self.0.tell_to(teller);
        /// The same, of a reference to one.
        TellBehind: [Number] &&Telling<&&T>, self, teller => self.0.tell_to(teller);
        /// Of one to change it.
        TellBehindMut: [Number] &Telling<&&mut T>, self, teller => self.0.tell_to(teller);
        /// Of what nothing is known of.
        TellNothing: [?Sized] Telling<&T>, self, teller => teller.untold();
    }
}

/// Takes what is for devices, or what is for hosts.
#[doc(hidden)]
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! told_by {
    ({ $($device:tt)* } { $($host:tt)* }) => { $($device)* };
}

/// Takes what is for devices, or what is for hosts.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! told_by {
    ({ $($device:tt)* } { $($host:tt)* }) => { $($host)* };
}
