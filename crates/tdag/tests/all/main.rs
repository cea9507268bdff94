//! The task graph: a module per topic, all in one program, since each program would be linked on its own.

mod forwards;
mod mappers;
mod model_can_fail;
mod objects;
mod random_programs;
mod recordings;
mod verify;
