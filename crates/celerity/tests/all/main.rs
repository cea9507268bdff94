//! The facade, as programs use it: a module per topic, all in one program, since linking a program for
//! each would take longer than all tests. What needs a process of its own is beside this folder.

mod bad_input;
mod bad_model;
mod bulk;
mod captures;
mod common;
mod dry_run_schedules;
mod dry_runs;
mod fences;
mod fragments;
mod groups;
mod handed_over;
mod host_errors;
mod host_objects;
mod host_tasks;
mod introspection;
mod lists;
mod look_behind;
mod npy;
mod numpy;
mod offsets;
mod programming_model;
mod range_mappers;
mod reductions;
mod regions_of_boxes;
mod separate_parts;
mod shifts;
mod solar_system;
mod testing;
mod unordered_reductions;
mod updates;
mod values;
mod views;

use celerity::kernels;

/// Kernels of these tests are for CPUs.
static MODULE: kernels::Module = kernels::Module::without_code("all", "not built for devices");
