//! Criterion benchmarks of every layer.
