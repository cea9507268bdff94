//! The kernels of the Parallel Research Kernels (`ParRes/Kernels`), written anew from what the suite
//! describes: the same numbers in, the same numbers out.

pub mod dgemm;
pub mod nstream;
pub mod p2p;
pub mod pic;
pub mod reduce;
pub mod sparse;
pub mod stencil;
pub mod transpose;
