//! Predictions from schedules that are made by hand, and of a program from its dry runs.

mod calibration;
mod cluster_files;
mod end_to_end;
mod hand_made;
mod programs;
mod schedule_files;
