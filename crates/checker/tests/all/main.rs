//! The schedule checker: a module per topic, all in one program, since each program would be linked on its own.

mod can_fail;
mod flat_memory;
mod lawful;
mod random_programs;
