//! The instruction graph: a module per topic, all in one program, since each program would be linked on its own.

mod allocations;
mod broadcast;
mod bundles;
mod collectives;
mod departures;
mod device_wires;
mod diagnostics;
mod growth;
mod host_memory;
mod least_chunk;
mod linearize;
mod lookahead;
mod model_can_fail;
mod pushes;
mod random_programs;
mod recordings;
mod staging;
mod transfers_in_pieces;
mod verify;
mod wire;
