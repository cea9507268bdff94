//! Bytes become a lawful program, whose graphs must keep every promise.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| celerity_testkit::fuzzing::program(data));
