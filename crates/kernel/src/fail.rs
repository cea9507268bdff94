//! How checks fail: with a text, and numbers for the names in it. On devices by the same words, but for
//! checks that have no registers for numbers (`fail!`). Knows no check.

#[cfg(target_arch = "nvptx64")]
pub(crate) use crate::machine::failure::{stop, stop_at};

#[cfg(not(target_arch = "nvptx64"))]
use crate::abi::PanicMessage;

/// As many coordinates as there are places for in a list; 0 in those behind the last.
#[inline(always)]
pub(crate) fn three<const D: usize>(list: [usize; D]) -> [usize; 3] {
    let at = |dim: usize| list.get(dim).copied().unwrap_or(0);
    [at(0), at(1), at(2)]
}

/// Panics with a text and numbers, whose lists have so many each: [`PanicMessage`] says how.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
pub(crate) fn stop<const N: usize>(text: &str, dims: usize, numbers: [usize; N]) -> ! {
    panic!("{}", PanicMessage::new(text, dims, numbers))
}

/// Panics with a text in which each `{}` stands for one of some numbers. Devices say the first text, which
/// has none: these checks stand in loops that have no registers to spare. A product of matrices lost 4 %
/// and a stencil 5 % while devices told the numbers of local memory, offsets and vectors. On CPUs it tells copies of
/// them: what is told itself has an address, so a view that it is part of would be in memory from the beginning on.
macro_rules! fail {
    ($on_device:literal, $message:literal, $($number:expr),+) => {{
        #[cfg(target_arch = "nvptx64")]
        $crate::fail::stop($on_device, 0, []);
        #[cfg(not(target_arch = "nvptx64"))]
        panic!($message, $({ $number }),+)
    }};
}
