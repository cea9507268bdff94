//! What `celerity new` leaves on disk, and what it refuses. That its project builds and runs, tests of
//! `celerity` see (`outside_project`).

mod command;
mod names;
mod projects;
mod scratch;
