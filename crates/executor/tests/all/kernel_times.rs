//! The table of kernels: every launch counts once, under the name of its task, with the
//! elements that its accesses name.

use celerity_executor::{ClusterConfig, KernelTimes, Run};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::{
    Outcome, ProgramError, buffer, cluster, host_task, kernel, reads, updates, writes,
};

const STEPS: u64 = 5;

/// One launch of `fill`, then steps, on each device.
fn program(node: &std::sync::Arc<celerity_executor::NodeFrontend>) -> Outcome<()> {
    let line = Box3::from_range([24]);
    let (data, sum) = (buffer(node, line), buffer(node, line));
    for data in [data, sum] {
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", line, fill, |p, v| v[0].set(p, p[0]))?;
    }
    for _ in 0..STEPS {
        let accesses = vec![reads(data, Mapper::All), updates(sum, Mapper::OneToOne)];
        kernel(node, "step", line, accesses, |p, v| v[1].set(p, v[1].get(p) + v[0].get(p)))?;
    }
    host_task(node, "look", vec![reads(sum, Mapper::All)], |_| {})?;
    // Launches that come after it still know what they touch.
    node.drop_buffer(data);
    Ok(())
}

fn times_on(config: &ClusterConfig) -> KernelTimes {
    let times = KernelTimes::default();
    Run::new(config).timing(&times).execute::<(), ProgramError>(program).unwrap();
    times
}

#[test]
fn every_launch_on_every_device_counts_once() {
    for (nodes, devices) in [(1, 1), (1, 3), (2, 2)] {
        let times = times_on(&cluster(nodes, devices));
        let count = (nodes * devices) as u64;
        let (fill, step) = (times.of("fill").unwrap(), times.of("step").unwrap());
        assert_eq!((fill.launches, fill.timed), (2 * count, 2 * count));
        assert_eq!((step.launches, step.timed), (STEPS * count, STEPS * count));
        // All together write each element once; each reads all and updates its share.
        assert_eq!((fill.bytes, step.bytes), (2 * 24 * 8, STEPS * (count + 1) * 24 * 8));
        assert!(step.least <= step.most && step.most <= step.total);
        assert_eq!(times.of("look"), None, "host tasks are no kernels");
        assert_eq!(times.to_string().lines().count(), 3, "{times}");
    }
}

#[test]
fn runs_add_up_and_traces_do_not_disturb() {
    let path = std::env::temp_dir().join(format!("celerity-kernels-{}.json", std::process::id()));
    let config = ClusterConfig { trace: Some(path.clone()), ..cluster(1, 2) };
    let times = KernelTimes::default();
    for _ in 0..2 {
        Run::new(&config).timing(&times).execute::<(), ProgramError>(program).unwrap();
    }
    let trace = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let step = times.of("step").unwrap();
    assert_eq!((step.launches, step.timed), (2 * STEPS * 2, 2 * STEPS * 2));
    assert!(trace.contains("\"name\":\"step\""));
}
