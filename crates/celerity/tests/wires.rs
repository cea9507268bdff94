//! Device wires as a program asks for them, where there are no GPUs.

use celerity::{Config, Platform, Result, Wires};

fn run(nodes: usize, wires: Wires) -> Result<usize> {
    let config = Config::default().platform(Platform::Cpu).nodes(nodes).wires(wires);
    config.run(|queue| Ok(queue.nodes()))
}

#[test]
fn wires_that_cannot_be_are_an_error_where_they_were_asked_for() {
    let error = run(2, Wires::Ipc).unwrap_err().to_string();
    assert!(error.contains("N0 cannot reach the devices of other processes"), "{error}");
    assert!(error.contains("CELERITY_WIRES=auto"), "{error}");
}

#[test]
fn collectives_between_devices_that_have_none_are_an_error_where_they_were_asked_for() {
    let error = run(3, Wires::Nccl).unwrap_err().to_string();
    assert!(error.contains("devices of 3 nodes have no collective operations"), "{error}");
    assert!(error.contains("CELERITY_WIRES=auto"), "{error}");
}

#[test]
fn nobody_asks_for_wires_who_is_alone_or_does_without() {
    assert_eq!(run(1, Wires::Ipc).unwrap(), 1);
    assert_eq!(run(1, Wires::Nccl).unwrap(), 1);
    assert_eq!(run(3, Wires::Auto).unwrap(), 3);
    assert_eq!(run(3, Wires::Host).unwrap(), 3);
}
