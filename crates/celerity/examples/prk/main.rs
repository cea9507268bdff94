//! The Parallel Research Kernels (`ParRes/Kernels`) on every node and device there is: the arguments,
//! the validation and the lines of output of the suite's own programs, which others have written for
//! MPI, OpenMP, CUDA and more.
//!
//! ```text
//! cargo run --release --example prk -- nstream 10 10000000 0
//! CELERITY_NODES=2 cargo run --release --example prk -- stencil 100 1000 star 2
//! cargo run --release --example prk -- pic 10 1000 100000 1 2 GEOMETRIC 0.99
//! cargo run --release --features cuda --example prk -- transpose 50 16384 32 --kernel group
//! ```
//!
//! A rank is a device. `docs/prk.md` has rates, and what each kernel is hard for.

mod bench;
mod dgemm;
mod nstream;
mod p2p;
mod particles;
mod pic;
mod reduce;
mod sparse;
mod stencil;
mod transpose;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The Parallel Research Kernels: simple patterns that parallel programs are made of, each with the
/// arguments and the output of the suite's own programs.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work.
#[derive(Parser, Debug)]
struct Options {
    #[command(subcommand)]
    kernel: Kernel,
}

#[derive(Subcommand, Debug)]
enum Kernel {
    /// A triad of vectors: the bandwidth of memory.
    Nstream(nstream::Options),
    /// A star or a square of points on a grid: neighbours' rows.
    Stencil(stencil::Options),
    /// A matrix that is transposed: all ranks send to all.
    Transpose(transpose::Options),
    /// Vectors, one per rank, that are added up on the first rank.
    Reduce(reduce::Options),
    /// A sparse matrix times a vector that all ranks need.
    Sparse(sparse::Options),
    /// A product of dense matrices.
    Dgemm(dgemm::Options),
    /// A wavefront: a rank goes on where the one before it has been.
    P2p(p2p::Options),
    /// Particles in a grid of charges.
    Pic(pic::Options),
}

fn main() -> ExitCode {
    let outcome = match &Options::parse().kernel {
        Kernel::Nstream(options) => bench::run(options),
        Kernel::Stencil(options) => bench::run(options),
        Kernel::Transpose(options) => bench::run(options),
        Kernel::Reduce(options) => bench::run(options),
        Kernel::Sparse(options) => bench::run(options),
        Kernel::Dgemm(options) => bench::run(options),
        Kernel::P2p(options) => bench::run(options),
        Kernel::Pic(options) => bench::run(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("prk: {failure}");
            ExitCode::FAILURE
        }
    }
}
