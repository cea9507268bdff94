//! From a program to its prediction: dry runs as every node, their schedules, and simulated time; then
//! the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use celerity::prelude::*;
use celerity::{CheckLevel, LogLevel, Sum};
use celerity_predict::{
    Action, Lane, MeasuredLaunch, NodeSchedule, Pace, Prediction, RecordedRun, Subject, WorkCosts,
    predict,
};

use crate::hand_made::free;

const ROWS: usize = 24;
const COLUMNS: usize = 10;
const STEPS: usize = 12;

/// A stencil that tells of its sum now and then; data goes between neighbours, to all and to the program.
fn program(queue: &Queue) -> celerity::Result<()> {
    let range = [ROWS, COLUMNS];
    let (mut now, mut next) = (queue.buffer::<f64, 2>(range), queue.buffer::<f64, 2>(range));
    let sum = queue.buffer::<f64, 0>([]);
    queue.task("fill").parallel_for(range, now.write(one_to_one()), |_, x| *x = 1.0)?;
    for step in 0..STEPS {
        let accesses = (now.read(neighborhood([1, 0])), next.write(one_to_one()));
        queue
            .task("step")
            .parallel_for(range, accesses, |_, (now, next)| *next = now.clamped([0, 0]))?;
        std::mem::swap(&mut now, &mut next);
        if step % 5 == 4 {
            let accesses = (now.read(one_to_one()), sum.reduce(Sum));
            queue.task("sum").parallel_for(range, accesses, |_, (x, sum)| sum.combine(*x))?;
            let sum = queue.fence(&sum)?.wait()?[[]];
            assert!(queue.is_dry_run() || sum == (ROWS * COLUMNS) as f64);
        }
    }
    queue.host_task("look").once(now.read(all()), |_| ())?;
    queue.barrier()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("predict-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn schedules(folder: &Path, nodes: usize, devices: usize) -> (Vec<NodeSchedule>, Vec<Pace>) {
    let one = |node| {
        let [schedule, trace] = ["s.txt", "t.json"].map(|name| folder.join(name));
        let config = Config::default().dry_run(nodes).dry_run_node(node).devices(devices);
        let config = config.dry_run_schedule(&schedule).trace(&trace).check(CheckLevel::Full);
        config.log_level(LogLevel::Off).run(program).unwrap();
        let schedule = NodeSchedule::read(&schedule).unwrap();
        (schedule, RecordedRun::read(&trace).unwrap())
    };
    let (schedules, runs): (Vec<_>, Vec<_>) = (0..nodes).map(one).unzip();
    let paces = Pace::of_all(&schedules, &runs, 100.0);
    (schedules, paces)
}

/// "step" and "sum" take 1000 ns per item, and "fill" nothing.
fn costs() -> WorkCosts {
    let launch = |name: &str, took| MeasuredLaunch {
        name: name.to_owned(),
        task: took,
        on_device: true,
        items: 1,
        took,
    };
    let of = |name: &str, took| RecordedRun {
        launches: vec![launch(name, took)],
        ..RecordedRun::default()
    };
    WorkCosts::of([&of("fill", 0), &of("step", 1000), &of("sum", 1000)], 0)
}

/// Tasks follow each other, and each is over when its largest chunk is: how many items these have.
fn longest(schedules: &[NodeSchedule]) -> u64 {
    let mut chunks = std::collections::HashMap::new();
    for step in schedules.iter().flat_map(|schedule| &schedule.steps) {
        if let Action::Run { device: Some(_), task, items } = step.action {
            let longest = chunks.entry(task).or_insert(0);
            *longest = items.max(*longest);
        }
    }
    let fill = schedules[0].tasks.iter().find(|task| task.name == "fill");
    let fill = chunks.remove(&fill.unwrap().id).unwrap();
    assert_eq!(fill, (ROWS * COLUMNS).div_ceil(schedules.len() * schedules[0].devices) as u64);
    chunks.values().sum()
}

/// How long devices compute in all.
fn computed(prediction: &Prediction) -> u64 {
    let kernels = prediction.spans.all().iter().filter(|span| {
        matches!(span.lane, Lane::Kernels(_)) && matches!(span.subject, Subject::Step(_))
    });
    kernels.map(|span| span.end - span.start).sum()
}

#[test]
fn where_only_kernels_cost_anything_more_devices_share_the_work() {
    let folder = Folder::new("exact");
    for nodes in 1..=4 {
        for devices in 1..=2 {
            let (schedules, _) = schedules(&folder.0, nodes, devices);
            let immediate: Vec<_> = schedules.iter().map(Pace::immediate).collect();
            let prediction = predict(&free(), &costs(), &schedules, &immediate).unwrap();
            let launches = (STEPS + STEPS / 5) as u64;
            let items = (ROWS * COLUMNS) as u64;
            assert_eq!(computed(&prediction), launches * items * 1000, "{nodes} × {devices}");
            assert_eq!(prediction.makespan, 1000 * longest(&schedules), "{nodes} × {devices}");
            assert!(prediction.makespan < launches * items * 1000 || nodes * devices == 1);
            let step = prediction.repeated.unwrap();
            assert_eq!(step.name, "step");
            // Sums now and then are not in every step.
            assert!(step.steady_period > 0 && step.steady_period < 2 * step.period);
        }
    }
}

#[test]
fn measured_paces_of_programs_and_schedulers_only_add() {
    let folder = Folder::new("paces");
    for (nodes, devices) in [(1, 1), (1, 2), (2, 1), (3, 2), (4, 1)] {
        let (schedules, paces) = schedules(&folder.0, nodes, devices);
        let measured = predict(&free(), &costs(), &schedules, &paces).unwrap();
        assert_eq!(measured, predict(&free(), &costs(), &schedules, &paces).unwrap());
        let immediate: Vec<_> = schedules.iter().map(Pace::immediate).collect();
        let least = predict(&free(), &costs(), &schedules, &immediate).unwrap();
        assert!(measured.makespan >= least.makespan, "{nodes} × {devices}");
        assert_eq!(measured.critical.iter().sum::<u64>(), measured.makespan);
        let programs = measured.spans.all().iter().filter(|span| span.lane == Lane::Program);
        assert!(programs.count() > nodes * STEPS, "{nodes} × {devices}");
    }
}

/// What the command below predicts: this program of tests, told to run this test.
#[test]
fn a_program_as_any_other() {
    celerity::run(program).unwrap();
}

fn command(folder: &Path, options: &[&str]) -> Output {
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("clusters/free.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_predict"));
    command.arg(std::env::current_exe().unwrap()).arg("--cluster").arg(cluster);
    command.arg("--scratch").arg(folder.join("scratch")).args(options).args(["--", "--exact"]);
    command.arg("end_to_end::a_program_as_any_other").output().unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_command_measures_schedules_and_predicts() {
    let folder = Folder::new("command");
    let [trace, csv] = ["predicted.json", "table.csv"].map(|name| folder.0.join(name));
    let options =
        ["--nodes", "1..4", "--devices", "2", "--repeat", "1", "--measure", "2", "--trace"];
    let options: Vec<_> = options.into_iter().chain([trace.to_str().unwrap()]).collect();
    let options: Vec<_> = options.into_iter().chain(["--csv", csv.to_str().unwrap()]).collect();
    let output = command(&folder.0, &options);
    let (table, errors) = said(&output);
    assert!(output.status.success(), "{errors}");
    assert!(table.contains("a step is from one \"step\" to the next"), "{table}");
    let table = std::fs::read_to_string(csv).unwrap();
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].len(), 14);
    let nodes: Vec<_> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(nodes, ["1", "2", "4"]);
    assert!(rows[1..].iter().all(|row| row[1] == "2" && row[2].parse::<u64>().unwrap() > 0));
    let measured: Vec<_> = rows[1..].iter().map(|row| !row[13].is_empty()).collect();
    assert_eq!(measured, [false, true, false]);

    // Others read it as they read the trace of a run.
    let trace = RecordedRun::read(&trace).unwrap();
    let steps = trace.scheduling.iter().filter(|stretch| stretch.name == "step");
    assert_eq!(steps.count(), 4 * STEPS);
    let launches = trace.launches.iter().filter(|launch| launch.name == "step");
    assert_eq!(launches.filter(|launch| launch.on_device).count(), 4 * 2 * STEPS);
}

#[test]
fn costs_may_come_from_a_trace_and_gaps_in_it_are_errors() {
    let folder = Folder::new("traces");
    let trace = folder.0.join("other.json");
    let write = |names: &[&str]| {
        let slice = |(task, name): (usize, &&str)| {
            format!(
                r#"{{"ts":1,"ph":"X","dur":5,"name":"{name}","cat":"kernel","args":{{"task":"T{task}","chunk":"[0..9]"}}}}"#
            )
        };
        let slices: Vec<_> = names.iter().enumerate().map(slice).collect();
        std::fs::write(&trace, format!("[\n{}\n]\n", slices.join(",\n"))).unwrap();
    };
    let options = ["--nodes", "2", "--kernels", trace.to_str().unwrap()];
    write(&["fill", "step", "sum"]);
    let output = command(&folder.0, &options);
    assert!(output.status.success(), "{}", said(&output).1);
    write(&["fill", "step"]);
    let output = command(&folder.0, &options);
    let (_, errors) = said(&output);
    assert!(!output.status.success() && errors.contains("\"sum\", which the measured run has not"));
    assert!(errors.contains("schedule.txt:"), "{errors}");
}

#[test]
fn costs_may_come_from_a_file_and_runs_have_variables() {
    let folder = Folder::new("files");
    let path = folder.0.join("kernels.toml");
    let csv = folder.0.join("table.csv");
    let write = |kernels: &str| std::fs::write(&path, format!("name = ''\n[kernels]\n{kernels}"));
    let [costs, table] = [&path, &csv].map(|path| path.to_str().unwrap().to_owned());
    let options = ["--nodes", "2", "--costs", &costs, "--csv", &table];
    // Launches of half of the items take no less: a program on two nodes takes as long.
    write("fill = [[1, 0]]\nsum = [[1, 0]]\nstep = [[120, 5000000], [240, 5000000]]\n").unwrap();
    let output = command(&folder.0, &options);
    assert!(output.status.success(), "{}", said(&output).1);
    let table = std::fs::read_to_string(csv).unwrap();
    let column = |row: usize| table.lines().nth(row).unwrap().split(',').nth(2).unwrap().to_owned();
    let makespans = [1, 2].map(|row| column(row).parse::<u64>().unwrap());
    let steps = STEPS as u64 * 5_000_000;
    assert!(makespans.iter().all(|span| (steps..2 * steps).contains(span)), "{table}");

    write("fill = [[1, 0]]\nstep = [[1, 1]]\n").unwrap();
    let (_, errors) = said(&command(&folder.0, &options));
    assert!(errors.contains("\"sum\", which the measured run has not"), "{errors}");
    write("step = []\n").unwrap();
    let (_, errors) = said(&command(&folder.0, &options));
    assert!(errors.contains("kernels.toml:3: `step` has no launch"), "{errors}");
    write("fill = [[1, 0]]\nsum = [[1, 0]]\nstep = [[1, 1]]\n").unwrap();
    for (value, is_one) in [("none", true), ("backwards", false)] {
        let variable = format!("CELERITY_LOOKAHEAD={value}");
        let options = [&options[..4], &["--env", &variable]].concat();
        let output = command(&folder.0, &options);
        assert_eq!(output.status.success(), is_one, "{}", said(&output).1);
    }
}

#[test]
fn what_cannot_be_predicted_is_said() {
    let folder = Folder::new("refused");
    let run = |options: &[&str]| {
        let output = command(&folder.0, options);
        assert!(!output.status.success());
        said(&output).1
    };
    assert!(run(&["--nodes", "0"]).contains("\"0\" is no list of numbers of nodes"));
    let missing = run(&["--nodes", "1", "--kernels", "no-such-trace.json"]);
    assert!(missing.contains("cannot read no-such-trace.json"), "{missing}");
    let none = Command::new(env!("CARGO_BIN_EXE_predict"))
        .args(["no-such-program", "--cluster"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clusters/free.toml"))
        .arg("--scratch")
        .arg(&folder.0)
        .output()
        .unwrap();
    let (_, errors) = said(&none);
    assert!(errors.contains("cannot start `no-such-program`"), "{errors}");
}
