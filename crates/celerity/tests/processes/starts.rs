//! Processes that cannot start a run, that make fewer of them, or that die before, between or
//! after runs. Nobody may wait for them.

use std::process::{Command, ExitCode, exit, id};
use std::thread;
use std::time::Duration;

use celerity::{Config, Error, Pinning, Result, RunError};

use crate::faults::signal;
use crate::program::{calm, steps, twin};

/// Runs before something happens.
const BEFORE: usize = 5;

/// Steps of each run.
const STEPS: usize = 20;

/// More than there can be.
const MANY_DEVICES: usize = 100;

/// How processes exit that have been told of another one.
const TOLD: u8 = 3;

/// The number that the launcher has given to this process, of so many: known before MPI is.
pub(crate) fn place() -> (usize, usize) {
    let number = |names: [&str; 2]| {
        let text = names.iter().find_map(|name| std::env::var(name).ok());
        text.and_then(|text| text.parse().ok()).expect("a launcher has started this process")
    };
    let rank = number(["OMPI_COMM_WORLD_RANK", "PMI_RANK"]);
    (rank, number(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]))
}

/// The process that something happens to: the last one, or `PROCESSES_WHO`.
fn victim() -> usize {
    let who = std::env::var("PROCESSES_WHO").ok();
    who.map_or(place().1 - 1, |text| text.parse().expect("PROCESSES_WHO is a number"))
}

/// The number of this process, and whether it is the one.
fn part() -> (usize, bool) {
    let rank = place().0;
    (rank, rank == victim())
}

fn run_once(config: &Config) -> Result<usize> {
    let (node, values) = config.run(|queue| Ok((queue.node(), steps(queue, STEPS, calm)?)))?;
    assert_eq!(values, twin(values.len(), STEPS));
    Ok(node)
}

/// Runs that nothing happens in.
fn run_well(config: &Config, runs: usize) {
    for _ in 0..runs {
        run_once(config).unwrap_or_else(|error| panic!("N{}: {error}", place().0));
    }
}

/// What the environment says, as long as nothing is wrong with it.
fn good_config() -> Config {
    Config::from_env().unwrap_or_else(|error| panic!("{error}"))
}

fn when() -> usize {
    match std::env::var("PROCESSES_WHEN").as_deref() {
        Ok("start") => 0,
        Ok("later") => BEFORE,
        other => panic!("there is no such time: {other:?}"),
    }
}

/// A process cannot start a run: `PROCESSES_FAULT` says why. All are told the same, and
/// the next run is none the worse for it.
pub(crate) fn cannot_start() {
    let (good, (rank, is_victim)) = (good_config(), part());
    run_well(&good, when());
    let fault = std::env::var("PROCESSES_FAULT");
    let fault = fault.as_deref().expect("PROCESSES_FAULT");
    let outcome = match is_victim {
        true => run_badly(good.clone(), fault),
        false => run_once(&good),
    };
    let error = outcome.expect_err("one process cannot start");
    match &error {
        Error::Run(error) => {
            let blamed = matches!(
                &**error, RunError::NotStarted { node, .. } if node.slot() == victim()
            );
            assert!(blamed, "{error}");
        }
        // What reads the environment tells the others, and its caller what is wrong there.
        error => assert!(fault == "from_env" && matches!(error, Error::Config(_)), "{error}"),
    }
    println!("N{rank}: {error}");
    run_well(&good, 2);
    if rank == 0 {
        crate::passed();
    }
}

fn run_badly(good: Config, fault: &str) -> Result<usize> {
    match fault {
        "devices" => run_once(&good.devices(MANY_DEVICES)),
        "trace" => run_once(&good.trace("no/such/folder/trace.json")),
        "cores" => run_once(&good.pinning(Pinning::Cores(vec![0]))),
        "nodes" => run_once(&good.nodes(2)),
        "platform" => run_once(&good.platform(celerity::Platform::Cuda)),
        "variable" => with("CELERITY_DEVICE", "1", || celerity::run(|_| Ok(0))),
        "from_env" => with("CELERITY_DEVICES", "none", || {
            Err(Config::from_env().expect_err("that is no number").into())
        }),
        other => panic!("there is no fault {other}"),
    }
}

/// Sets a variable, for good, and does something.
#[allow(unsafe_code)]
fn with<T>(variable: &str, value: &str, action: impl FnOnce() -> T) -> T {
    assert_eq!(when(), 0, "later there are other threads");
    // SAFETY: before its first run the process has no other thread, as has just been checked.
    unsafe { std::env::set_var(variable, value) };
    action()
}

/// A process makes fewer runs than the others.
pub(crate) fn makes_fewer_runs() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    run_well(&config, BEFORE);
    if is_victim {
        println!("N{rank}: done");
        return ExitCode::SUCCESS;
    }
    let error = run_once(&config).expect_err("one process does not come");
    println!("N{rank}: {error}");
    ExitCode::from(TOLD)
}

/// A process exits with an error between two runs, as a program does that has found
/// something wrong.
pub(crate) fn exits_between() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    run_well(&config, BEFORE);
    if is_victim {
        exit(TOLD.into());
    }
    let error = run_once(&config).expect_err("one process does not come");
    println!("N{rank}: {error}");
    ExitCode::from(TOLD)
}

/// A process is killed before its first run, or between two.
pub(crate) fn killed_between() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    run_well(&config, when());
    if is_victim {
        signal("KILL", id());
        thread::sleep(Duration::MAX);
    }
    // The next run may be the last one that all are in, as long as nobody has noticed.
    let error = (0..2).find_map(|_| run_once(&config).err()).expect("one process is dead");
    println!("N{rank}: {error}");
    ExitCode::from(TOLD)
}

/// A process is killed when all runs are over, and the others have come to their end
/// and wait for it there.
pub(crate) fn killed_at_the_end() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    run_well(&config, BEFORE);
    if is_victim {
        thread::sleep(Duration::from_millis(500));
        signal("KILL", id());
        thread::sleep(Duration::MAX);
    }
    println!("N{rank}: done");
    ExitCode::SUCCESS
}

/// A process may have little more memory than it has, and lacks the stacks of a run's
/// threads. No run before has begun, as what has had stacks keeps them for later.
pub(crate) fn short_of_threads() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    let refused = if is_victim { config.clone().devices(MANY_DEVICES) } else { config.clone() };
    run_once(&refused).expect_err("one process cannot have so many devices");
    if is_victim {
        limit_memory(4 << 20);
    }
    let error = run_once(&config).expect_err("one process has no threads");
    println!("N{rank}: {error}");
    ExitCode::from(TOLD)
}

/// A process is short of memory, so that what the program allocates is not there, which
/// ends the process.
pub(crate) fn short_of_memory() -> ExitCode {
    let (config, (rank, is_victim)) = (good_config(), part());
    run_well(&config, when());
    if is_victim {
        limit_memory(1 << 30);
    }
    let outcome = config.run(|queue| {
        let bytes = if queue.node() == victim() { 1 << 32 } else { 1 };
        steps(queue, STEPS, |_, _| {
            drop(std::hint::black_box(vec![1_u8; bytes]));
            Ok(())
        })
    });
    println!("N{rank}: {}", outcome.expect_err("one process has no memory"));
    ExitCode::from(TOLD)
}

/// Lets this process have so many bytes more than it has by now.
fn limit_memory(more: u64) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    let limit = format!("--as={}", pages * 4096 + more);
    let limited = Command::new("prlimit").args(["--pid", &id().to_string(), &limit]).status();
    assert!(limited.is_ok_and(|status| status.success()), "there is no `prlimit`");
}
