//! The CUDA backend on a driver without GPUs: a module per topic, all in one program, since each program would be linked on its own.

mod one_host;
mod programs;
mod random_programs;
mod wires;
