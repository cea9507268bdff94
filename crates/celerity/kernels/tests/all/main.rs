//! The kernels of the examples, as compiled for devices and as called by hosts: a module per topic, all in
//! one program, since each program would be linked on its own.

mod compiled;
mod hosts;
mod interpreted;
