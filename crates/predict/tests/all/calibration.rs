//! Cluster files that are made of measurements: what the traces tell, and that predictions take what is written.

use celerity::prelude::*;
use celerity::{DeviceMemory, LogLevel};
use celerity_predict::{
    Calibration, ClusterModel, EngineThreads, ExchangeCosts, MachineSamples, PredictError,
    Processor, WayModel,
};

const COSTS: &str = "# Nanoseconds, and picoseconds per byte.
message.once.ns = 300
message.step.ns = 1500
message.byte.ps = 140
all-gather.once.ns = 27000
all-gather.step.ns = 12
all-gather.byte.ps = 256
";

/// A slice of a trace, times in ns.
fn slice(category: &str, name: &str, start: u64, took: u64, bytes: u64) -> String {
    let [start, took] = [start, took].map(|nanos| nanos as f64 / 1000.0);
    format!(
        r#"{{"ts":{start:.3},"ph":"X","dur":{took:.3},"pid":0,"tid":100,"name":"{name}","cat":"{category}","args":{{"bytes":{bytes}}}}}"#
    )
}

/// A run whose kernels take so long, with pauses of 700 ns.
fn samples(kernel: u64) -> MachineSamples {
    let kernels = (0..8).map(|nth| slice("kernel", "stream", nth * (kernel + 700), kernel, 0));
    let others = [
        slice("kernel", "fill", 0, 1, 0),
        slice("memory", "alloc field", 0, 9000, 64),
        slice("memory", "free", 0, 1, 64),
        slice("host", "look", 0, 80, 0),
        slice("copy", "copy own", 0, 110, 1000),
        slice("copy", "copy own", 5, 1_000_100, 10_000_000),
        r#"{"ts":1,"ph":"C","pid":0,"name":"M1","args":{"bytes":8}}"#.to_owned(),
    ];
    let lines: Vec<_> = kernels.chain(others).collect();
    MachineSamples::parse(&format!("[\n{}\n]\n", lines.join(",\n")), "t.json".as_ref()).unwrap()
}

fn calibration(processes: bool) -> Calibration {
    Calibration {
        name: "a \"machine\"".to_owned(),
        circumstances: "a load of 1\nor 2".to_owned(),
        nodes: 2,
        processes,
        eager: (4096, "its default".to_owned()),
        alone: samples(1000),
        together: samples(1250),
        copies: samples(1000),
        exchanges: ExchangeCosts::parse(COSTS, "c.txt".as_ref()).unwrap(),
    }
}

fn written(processes: bool) -> ClusterModel {
    let text = calibration(processes).to_toml().unwrap();
    ClusterModel::parse(&text, "m.toml".as_ref()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn predictions_take_what_is_written() {
    let model = written(true);
    assert_eq!((model.name.as_str(), model.nodes.per_host), ("a  machine ", 2));
    assert_eq!(
        (model.device.processor, model.device.beside_others_percent),
        (Processor::Own, 125.0)
    );
    let engine = model.engine;
    assert_eq!(engine.threads, EngineThreads::Processor);
    assert_eq!((engine.instruction_ns, engine.allocation_ns, engine.host_item_ns), (700, 9000, 80));
    // 999,990 ns for 9,999,000 bytes.
    assert_eq!(model.copy.to_device, WayModel { latency_ns: 10, byte_ps: 100.0 });
    let network = model.network;
    assert_eq!(network.same_host, WayModel { latency_ns: 300, byte_ps: 140.0 });
    assert_eq!((network.message_ns, network.eager_bytes), (750, 4096));
    assert_eq!((network.collective_ns, network.round_ns), (27_000, 12));
    assert_eq!(network.collective_byte_ps, 256.0);
    assert_eq!(model.reference["RAYON_NUM_THREADS"], "1");
}

/// As `calibrate machine` of the baselines, which measures, but small.
fn program(queue: &Queue) -> celerity::Result<()> {
    for count in [16, 1024] {
        let (mut one, mut other) = (queue.buffer::<f32, 1>(count), queue.buffer::<f32, 1>(count));
        queue.task("fill").parallel_for(count, one.write(one_to_one()), |_, x| *x = 1.0)?;
        for _ in 0..4 {
            let accesses = (one.read(all()), other.write(one_to_one()));
            queue.task("stream").parallel_for(count, accesses, |item, (one, other)| {
                *other = one[item[0]];
            })?;
            std::mem::swap(&mut one, &mut other);
            queue.host_task("look").once((), |()| ())?;
        }
    }
    queue.barrier()
}

#[test]
fn traces_of_runs_become_a_file() {
    let trace = std::env::temp_dir().join(format!("calibration-{}.json", std::process::id()));
    let config = Config::default().devices(2).device_memory(DeviceMemory::Own);
    config.trace(&trace).log_level(LogLevel::Off).run(program).unwrap();
    let samples = MachineSamples::read(&trace).unwrap();
    std::fs::remove_file(&trace).unwrap();
    assert_eq!((samples.kernels.len(), samples.gaps.len(), samples.host_tasks.len()), (16, 14, 8));
    // Each device needs the half of the other.
    assert!([32, 2048].iter().all(|bytes| samples.copies[bytes].len() >= 6), "{samples:?}");
    let [alone, together, copies] = [&samples; 3].map(Clone::clone);
    let calibration = Calibration { alone, together, copies, ..calibration(true) };
    let text = calibration.to_toml().unwrap();
    ClusterModel::parse(&text, "m.toml".as_ref()).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn nodes_of_one_process_take_turns() {
    let model = written(false);
    assert_eq!(
        (model.device.processor, model.engine.threads),
        (Processor::Host, EngineThreads::Host)
    );
    assert_eq!((model.nodes.per_host, model.device.beside_others_percent), (1024, 100.0));
    assert!(model.reference.is_empty());
}

#[test]
fn what_is_missing_is_named() {
    let said = |change: &dyn Fn(&mut Calibration)| {
        let mut calibration = calibration(true);
        change(&mut calibration);
        calibration.to_toml().unwrap_err().to_string()
    };
    assert!(said(&|it| it.alone.gaps.clear()).contains("no pauses between kernels"));
    assert!(said(&|it| it.together.kernels.clear()).contains("no kernels of all nodes"));
    assert!(said(&|it| it.alone.allocations.clear()).contains("no allocations"));
    assert!(said(&|it| it.alone.host_tasks.clear()).contains("no host tasks"));
    assert!(said(&|it| it.copies.copies.clear()).contains("no copies"));
    let one = |it: &mut Calibration| drop(it.copies.copies.pop_last());
    assert!(said(&one).contains("no copies of two sizes"));
}

#[test]
fn what_is_no_measurement_is_named_with_its_line() {
    let costs = |from: &str, to: &str| {
        let text = COSTS.replace(from, to);
        ExchangeCosts::parse(&text, "c.txt".as_ref()).unwrap_err().to_string()
    };
    assert_eq!(costs("message.byte", "massage.byte"), "c.txt:1: there is no `message.byte.ps`");
    assert_eq!(costs("= 1500", "= -1500"), "c.txt:3: `-1500` is no cost");
    assert_eq!(costs("= 12\n", "= many\n"), "c.txt:6: `many` is no cost");
    let trace = MachineSamples::parse("[\n{\"ts\":", "t.json".as_ref()).unwrap_err();
    assert!(matches!(trace, PredictError::Malformed { line: 2, .. }), "{trace}");
}
