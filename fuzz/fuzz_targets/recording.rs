//! Bytes come in as recordings of every kind.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| celerity_testkit::fuzzing::recording(data));
