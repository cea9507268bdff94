//! Discovery from outside: which forwards tasks get, and which operations these amount to.

mod costs;
mod harness;
mod patterns;
mod programs;
mod twin;
