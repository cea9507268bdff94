//! Random programs, the sequential twin and graph queries for Celerity's own tests.
