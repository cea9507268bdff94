//! Bytes come in as a pilot, in a cluster of any size.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| celerity_testkit::fuzzing::pilot(data));
