//! What users see who have a project of their own: that it builds and runs, what the compiler
//! says of mistakes, and what a program prints when it fails.

mod printed;
mod programs;
mod project;
mod refused;
mod template;
