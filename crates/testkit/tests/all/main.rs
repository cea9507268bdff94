//! The test kit itself: a module per topic, all in one program, since each program would be linked on its own.

mod coverage;
mod fuzzing;
mod golden;
mod hash_kernel;
mod readme;
mod recordings;
mod sim;
mod sim_can_fail;
mod stencils;
mod supervised;
