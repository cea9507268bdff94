//! Programs of every kind of data movement: their schedules run to the end in simulated time on every
//! cluster, whether large messages wait for their receivers or not.

use celerity::prelude::*;
use celerity::{Collectives, LogLevel, Max};
use celerity_predict::{
    ClusterModel, MeasuredLaunch, NodeSchedule, Pace, RecordedRun, WorkCosts, predict,
};

use crate::hand_made::free;

type Program = fn(&Queue) -> celerity::Result<()>;

const PROGRAMS: [(&str, Program); 9] = [
    ("periodic", periodic),
    ("transposed", transposed),
    ("everything", everything),
    ("from one node", from_one_node),
    ("rows", rows),
    ("one element", one_element),
    ("nothing", nothing),
    ("reductions", reductions),
    ("hosts", hosts),
];

fn periodic(queue: &Queue) -> celerity::Result<()> {
    let range = [9, 4, 5];
    let (a, b) = (queue.buffer::<f64, 3>(range), queue.buffer::<f64, 3>(range));
    queue.task("k").parallel_for(range, a.write(one_to_one()), |_, _| ())?;
    for (from, to) in [(&a, &b), (&b, &a), (&a, &b)] {
        let around = from.read(neighborhood([1, 1, 0]).periodic());
        queue.task("k").parallel_for(range, (around, to.write(one_to_one())), |_, _| ())?;
    }
    queue.fence(&b)?.wait().map(drop)
}

fn transposed(queue: &Queue) -> celerity::Result<()> {
    let (a, b) = (queue.buffer::<f32, 2>([12, 12]), queue.buffer::<f32, 2>([12, 12]));
    for _ in 0..3 {
        queue.task("k").parallel_for([12, 12], a.write(one_to_one()), |_, _| ())?;
        let accesses = (a.read(celerity::transposed()), b.write(one_to_one()));
        queue.task("k").parallel_for([12, 12], accesses, |_, _| ())?;
    }
    Ok(())
}

fn everything(queue: &Queue) -> celerity::Result<()> {
    let (a, b) = (queue.buffer::<f32, 1>(50), queue.buffer::<f32, 1>(50));
    queue.task("k").parallel_for(50, a.write(one_to_one()), |_, _| ())?;
    for _ in 0..6 {
        queue.task("k").parallel_for(50, (a.read(all()), b.write(one_to_one())), |_, _| ())?;
        let accesses = (b.read(one_to_one()), a.read_write(one_to_one()));
        queue.task("k").parallel_for(50, accesses, |_, _| ())?;
    }
    queue.barrier()
}

fn from_one_node(queue: &Queue) -> celerity::Result<()> {
    let a = queue.buffer::<f32, 1>(30);
    for node in 0..3 {
        queue.host_task("h").on_node(node % queue.nodes()).once(a.write(all()), |_| ())?;
        queue.task("k").parallel_for(30, a.read_write(one_to_one()), |_, _| ())?;
        queue.host_task("h").once(a.read(all()), |_| ())?;
    }
    Ok(())
}

/// A history that grows by a row a step, all of which is read.
fn rows(queue: &Queue) -> celerity::Result<()> {
    let history = queue.buffer::<f32, 2>([6, 20]);
    for row in 0..6 {
        let earlier = history.read(fixed(Subrange { offset: [0, 0], range: [row, 20] }));
        let own = Subrange { offset: [row, 0], range: [1, 20] };
        let own = history.write(fixed(own));
        match row {
            0 => queue.host_task("h").once(own, |_| ())?,
            _ => queue.host_task("h").once((earlier, own), |_| ())?,
        };
        let all = history.read(fixed(Subrange { offset: [0, 0], range: [row + 1, 20] }));
        let seen = queue.buffer::<f32, 1>(20);
        queue.task("k").parallel_for(20, (all, seen.write(one_to_one())), |_, _| ())?;
    }
    Ok(())
}

fn one_element(queue: &Queue) -> celerity::Result<()> {
    let (a, b) = (queue.buffer::<u8, 1>(1), queue.buffer::<u8, 0>([]));
    queue.task("k").parallel_for(1, a.write(one_to_one()), |_, _| ())?;
    queue.task("k").parallel_for([], b.write(one_to_one()), |_, _| ())?;
    queue.host_task("h").once((a.read(all()), b.read(all())), |_| ()).map(drop)
}

fn nothing(queue: &Queue) -> celerity::Result<()> {
    let a = queue.buffer::<u8, 1>(0);
    queue.task("k").parallel_for(0, a.write(one_to_one()), |_, _| ())?;
    queue.barrier()
}

fn reductions(queue: &Queue) -> celerity::Result<()> {
    let (a, most) = (queue.buffer::<f64, 1>(5000), queue.buffer::<f64, 1>(3));
    queue.task("k").parallel_for(5000, a.write(one_to_one()), |_, _| ())?;
    for _ in 0..3 {
        let accesses = (a.read(one_to_one()), most.reduce(Max));
        queue.task("k").parallel_for(5000, accesses, |_, _| ())?;
        let accesses = (most.read(all()), a.read_write(one_to_one()));
        queue.task("k").parallel_for(5000, accesses, |_, _| ())?;
    }
    queue.fence(&most)?.wait().map(drop)
}

fn hosts(queue: &Queue) -> celerity::Result<()> {
    let (a, log) = (queue.buffer::<f32, 1>(40), queue.host_object(0));
    for _ in 0..3 {
        queue.task("k").parallel_for(40, a.write(one_to_one()), |_, _| ())?;
        queue.host_task("h").distributed(40).submit(a.read(one_to_one()), |_, _| ())?;
        queue.host_task("h").collective("group", (), |_, ()| Ok(()))?;
        queue.host_task("h").once((log.exclusive(), a.read(all())), |_| ())?;
        queue.host_task("h").once((log.exclusive(),), |_| ())?;
    }
    queue.barrier_with(log.capture()).map(drop)
}

/// A kernel "k" of 10 ns per item.
fn costs() -> WorkCosts {
    let name = "k".to_owned();
    let launches = vec![MeasuredLaunch { name, task: 1, on_device: true, items: 1, took: 10 }];
    WorkCosts::of([&RecordedRun { launches, ..RecordedRun::default() }], 0)
}

fn schedules(
    program: Program,
    (nodes, devices): (usize, usize),
    collectives: Collectives,
) -> Vec<NodeSchedule> {
    let file =
        format!("predict-programs-{}-{:?}.txt", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(file);
    let one = |node| {
        let config = Config::default().dry_run(nodes).dry_run_node(node).devices(devices);
        let config = config.collectives(collectives).dry_run_schedule(&path);
        config.log_level(LogLevel::Off).run(program).unwrap();
        NodeSchedule::read(&path).unwrap()
    };
    let all = (0..nodes).map(one).collect();
    std::fs::remove_file(&path).unwrap();
    all
}

/// Clusters that differ in what may hold up what.
fn models() -> [ClusterModel; 3] {
    let patient = {
        let mut model = free();
        model.network.eager_bytes = 0;
        model.network.between_hosts.latency_ns = 700;
        model.engine.instruction_ns = 30;
        model
    };
    let mut crowded = patient.clone();
    crowded.nodes.per_host = 3;
    crowded.engine.threads = celerity_predict::EngineThreads::Processor;
    crowded.network.message_ns = 40;
    [free(), patient, crowded]
}

#[test]
fn programs_run_to_their_end_on_every_cluster() {
    for (name, program) in PROGRAMS {
        for collectives in [Collectives::Off, Collectives::Auto, Collectives::Always] {
            for cluster in [(1, 1), (1, 2), (2, 1), (3, 2), (4, 1), (7, 1)] {
                let schedules = schedules(program, cluster, collectives);
                let paces: Vec<_> = schedules.iter().map(Pace::immediate).collect();
                let mut least = 0;
                for model in models() {
                    let prediction = predict(&model, &costs(), &schedules, &paces)
                        .unwrap_or_else(|error| panic!("{name}, {cluster:?}: {error}"));
                    let way = prediction.critical.iter().sum::<u64>();
                    assert_eq!(way, prediction.makespan, "{name}, {cluster:?}");
                    // The first cluster is free but for kernels.
                    assert!(prediction.makespan >= least, "{name}, {cluster:?}");
                    least = if least == 0 { prediction.makespan } else { least };
                }
            }
        }
    }
}
