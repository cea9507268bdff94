//! The executor under whole programs: a module per topic, all in one program, since each program would be linked on its own.

mod blocking;
mod common;
mod conformance;
mod divergence;
mod exchanges;
mod failures;
mod flow;
mod interrupt;
mod kernel_times;
mod misplaced;
mod node_machine;
mod programs;
mod random_programs;
mod threads;
mod traces;
mod user_mappers;
mod warnings;
mod wires;
