//! Runs instruction graphs: engine, arbiter, backends, communicators.
