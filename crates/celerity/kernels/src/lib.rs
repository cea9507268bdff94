#![no_std]
#![doc = include_str!("../README.md")]

pub mod accuracy;
pub mod blocks;
pub mod bytes;
pub mod cahn_hilliard;
pub mod calls;
pub mod conjugate;
pub mod costs;
pub mod counting;
pub mod faults;
pub mod finance;
pub mod functions;
pub mod gravity;
pub mod gray_scott;
pub mod groups;
pub mod hash;
pub mod heat;
pub mod iterators;
pub mod lattice;
pub mod life;
pub mod linear;
pub mod mandelbrot;
pub mod means;
pub mod mesh;
pub mod names;
pub mod panels;
pub mod parts;
pub mod patterns;
pub mod pendulum;
pub mod plate;
pub mod prk;
pub mod programs;
pub mod radiosity;
pub mod reductions;
pub mod shallow_water;
pub mod shapes;
pub mod values;
pub mod vectors;
pub mod wave;

celerity_kernel::module!();
