//! The instruction graph: what one node's devices, memories and wires do.
