//! The laws of boxes, regions, region maps and splits, and their recordings: a module per topic, all in one program, since each program would be linked on its own.

mod common;
mod recordings;
mod region_laws;
mod region_map_laws;
mod split_laws;
