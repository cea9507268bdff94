//! Measures what exchanges between nodes take on this machine, and finds the constants by which
//! `Collectives::Auto` decides; and does what the trace of which tells the rest of a cluster file. `cargo xtask calibrate`
//! runs it.
//!
//! ```sh
//! mpirun -n 2 calibrate measure >> samples.txt   # processes; or in one process:
//! calibrate measure --nodes 4 >> samples.txt
//! calibrate fit samples.txt > costs.txt
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use celerity::prelude::*;
use celerity::{Collectives, Config};
use celerity_cpd::{Costs, Movement, Pattern, Sample};
use clap::{Parser, Subcommand};

/// Measures exchanges between nodes, and finds constants from measures.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print measures, a line each: operation, nodes, bytes, `collective` or `pairs`, nanoseconds
    Measure {
        /// Nodes in this process; under a launcher, each process is one
        #[arg(long, default_value_t = 1)]
        nodes: usize,
        /// Bytes that all nodes together exchange
        #[arg(
            long,
            value_name = "BYTES",
            value_delimiter = ',',
            default_value = "1024,16384,262144,4194304"
        )]
        sizes: Vec<usize>,
        /// Measures of each kind, in turns, of which the least counts
        #[arg(long, default_value_t = 3)]
        turns: usize,
    },
    /// Do what a cluster file needs the trace of: set CELERITY_TRACE
    Machine {
        /// Nodes in this process; under a launcher, each process is one
        #[arg(long, default_value_t = 1)]
        nodes: usize,
    },
    /// Print the constants that fit the measures in a file best
    Fit {
        /// What `measure` has printed, once or several times
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Command::Measure { nodes, sizes, turns } => {
            measure(nodes, &sizes, turns).map_err(|error| error.to_string())
        }
        Command::Machine { nodes } => Config::from_env()
            .map_err(|error| error.to_string())
            .and_then(|config| config.nodes(nodes).run(machine).map_err(|error| error.to_string())),
        Command::Fit { file } => fit(&file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("calibrate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Steps in each window, and windows in each run, of which the shortest counts.
const STEPS: usize = 20;
const WINDOWS: usize = 20;

/// Who writes elements, or who reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each node its own.
    Own,
    /// Node 0 all.
    Alone,
    /// Each node all.
    All,
    /// Each node other ones than it has written.
    Turned,
}

/// The two ends of an operation; and who reads what that reader has written itself.
fn ways(pattern: Pattern) -> (Way, Way, Way) {
    match pattern {
        Pattern::Gather => (Way::Own, Way::Alone, Way::Own),
        Pattern::AllGather => (Way::Own, Way::All, Way::Own),
        Pattern::Broadcast => (Way::Alone, Way::All, Way::Alone),
        Pattern::Scatter => (Way::Alone, Way::Own, Way::Alone),
        Pattern::AllToAll => (Way::Own, Way::Turned, Way::Own),
    }
}

fn measure(nodes: usize, sizes: &[usize], turns: usize) -> celerity::Result<()> {
    for (pattern, bytes) in
        Pattern::ALL.into_iter().flat_map(|pattern| sizes.iter().map(move |size| (pattern, *size)))
    {
        let (writes, reads, stays) = ways(pattern);
        let run = |reads, collectives| time(nodes, collectives, pattern, bytes, (writes, reads));
        let mut least = [Duration::MAX; 3];
        let (mut cluster, mut is_first) = (1, false);
        for _ in 0..turns.max(1) {
            let modes = [
                (stays, Collectives::Off),
                (reads, Collectives::Off),
                (reads, Collectives::Always),
            ];
            for ((reads, collectives), least) in modes.into_iter().zip(&mut least) {
                let taken = run(reads, collectives)?;
                *least = (*least).min(taken.shortest);
                (cluster, is_first) = (taken.nodes, taken.is_first);
            }
        }
        if is_first {
            let bytes = bytes_of(pattern, bytes, cluster);
            let [still, pairs, collective] = least.map(|time| time.as_secs_f64() * 1e9);
            for (name, time) in [("pairs", pairs), ("collective", collective)] {
                let time = (time - still) / STEPS as f64;
                println!("{pattern} {cluster} {bytes} {name} {time:.0}");
            }
        }
    }
    Ok(())
}

/// Elements of a buffer, or of its sides where it has two: so many bytes in all, in equal shares.
fn side(pattern: Pattern, bytes: usize, nodes: usize) -> usize {
    let side = if pattern == Pattern::AllToAll { (bytes / 4).isqrt() } else { bytes / 4 };
    side.max(1).next_multiple_of(nodes)
}

fn bytes_of(pattern: Pattern, bytes: usize, nodes: usize) -> usize {
    let side = side(pattern, bytes, nodes);
    4 * if pattern == Pattern::AllToAll { side * side } else { side }
}

struct Taken {
    /// By all steps of a window.
    shortest: Duration,
    nodes: usize,
    /// Whether this process is the one to print.
    is_first: bool,
}

fn time(
    nodes: usize,
    collectives: Collectives,
    pattern: Pattern,
    bytes: usize,
    ways: (Way, Way),
) -> celerity::Result<Taken> {
    let config = Config::default().nodes(nodes).collectives(collectives);
    config.run(|queue| {
        let nodes = queue.nodes();
        let side = side(pattern, bytes, nodes);
        let shortest = match pattern {
            Pattern::AllToAll => square(queue, side, ways.1),
            _ => line(queue, side, ways),
        };
        Ok(Taken { shortest: shortest?, nodes, is_first: queue.node() == 0 })
    })
}

/// Kernels that touch nothing: what is left is the exchange of what they declare.
fn line(queue: &Queue, count: usize, (writes, reads): (Way, Way)) -> celerity::Result<Duration> {
    let buffer = queue.buffer::<u32, 1>(count);
    shortest(queue, || {
        let task = queue.task("write");
        match writes {
            Way::Alone => task.parallel_for(1, buffer.write(slice(0)), |_, _| ())?,
            _ => task.parallel_for_rows(count, buffer.write(one_to_one()), |_, _| ())?,
        };
        let task = queue.task("read");
        match reads {
            Way::Alone => task.parallel_for(1, buffer.read(all()), |_, _| ())?,
            Way::All => task.parallel_for_rows(count, buffer.read(all()), |_, _| ())?,
            _ => task.parallel_for_rows(count, buffer.read(one_to_one()), |_, _| ())?,
        };
        Ok(())
    })
}

fn square(queue: &Queue, side: usize, reads: Way) -> celerity::Result<Duration> {
    let buffer = queue.buffer::<u32, 2>([side; 2]);
    shortest(queue, || {
        let task = queue.task("write");
        task.parallel_for_rows([side; 2], buffer.write(one_to_one()), |_, _| ())?;
        let task = queue.task("read");
        match reads {
            Way::Turned => {
                task.parallel_for_rows([side; 2], buffer.read(transposed()), |_, _| ())?
            }
            _ => task.parallel_for_rows([side; 2], buffer.read(one_to_one()), |_, _| ())?,
        };
        Ok(())
    })
}

/// The least time of a window of steps, after one that does not count.
fn shortest(queue: &Queue, step: impl Fn() -> celerity::Result<()>) -> celerity::Result<Duration> {
    let window = || {
        (0..STEPS).try_for_each(|_| step())?;
        queue.barrier()
    };
    window()?;
    let mut least = Duration::MAX;
    for _ in 0..WINDOWS {
        let start = Instant::now();
        window()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// Floats that a kernel goes through on each node: more than fit into caches.
const STREAM: usize = 1 << 22;
/// Kernels of each sort.
const REPEATED: usize = 40;
/// Floats of a part that another device has, and needs.
const PARTS: [usize; 2] = [16, 1 << 19];

/// What `celerity_predict::MachineSamples` looks for in a trace.
fn machine(queue: &Queue) -> celerity::Result<()> {
    for more in 0..16 {
        let buffer = queue.buffer::<f32, 1>(1024 + 16 * more);
        let accesses = buffer.write(one_to_one());
        queue.task("allocate").parallel_for_rows(buffer.range(), accesses, |_, _| ())?;
    }
    queue.barrier()?;
    let field = queue.buffer::<f32, 1>(STREAM * queue.nodes());
    queue.task("fill").parallel_for_rows(field.range(), field.write(one_to_one()), |_, _| ())?;
    for _ in 0..REPEATED {
        let accesses = field.read_write(one_to_one());
        queue.task("stream").parallel_for_rows(field.range(), accesses, |_, row| {
            row.iter_mut().for_each(|x| *x = 0.5 * *x + 1.0);
        })?;
    }
    queue.barrier()?;
    for part in PARTS {
        let count = part * queue.nodes() * queue.devices();
        let (mut own, mut all_parts) = (queue.buffer::<f32, 1>(count), queue.buffer(count));
        queue.task("fill").parallel_for_rows(count, own.write(one_to_one()), |_, _| ())?;
        for _ in 0..REPEATED {
            let accesses = (own.read(all()), all_parts.write(one_to_one()));
            queue.task("turn").parallel_for_rows(count, accesses, |_, _| ())?;
            std::mem::swap(&mut own, &mut all_parts);
            if part == PARTS[0] {
                queue.host_task("look").once((), |()| ())?;
            }
        }
        queue.barrier()?;
    }
    Ok(())
}

fn fit(file: &Path) -> Result<(), String> {
    let named = |what: String| format!("{}: {what}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        sample(line).ok_or_else(|| named(format!("line {number}, `{line}`, is no measure")))
    };
    let samples = lines.map(read).collect::<Result<Vec<_>, _>>()?;
    let costs = Costs::fitted_to(&samples).map_err(|error| named(error.to_string()))?;
    println!("# Nanoseconds, and picoseconds per byte.");
    print!("{costs}");
    Ok(())
}

/// A measure from its line.
fn sample(line: &str) -> Option<Sample> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, nodes, bytes, way, nanos] = words[..] else { return None };
    let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name)?;
    let (nodes, bytes) = (nodes.parse().ok()?, bytes.parse().ok()?);
    let is_collective = match way {
        "collective" => true,
        "pairs" => false,
        _ => return None,
    };
    let (writes, reads, _) = ways(pattern);
    let ends = [writes, reads].map(|way| if way == Way::Alone { 1 } else { nodes });
    let movement = Movement { pattern, nodes, from: ends[0], to: ends[1], bytes };
    Some(Sample { movement, is_collective, nanos: nanos.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_lines() {
        let found = sample("gather 4 4096 pairs 1234").expect("a measure");
        let movement = Movement { pattern: Pattern::Gather, nodes: 4, from: 4, to: 1, bytes: 4096 };
        assert_eq!(found, Sample { movement, is_collective: false, nanos: 1234.0 });
        for wrong in ["", "gather", "reduce 4 4096 pairs 1", "gather 4 4096 both 1"] {
            assert_eq!(sample(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shares_are_equal() {
        assert_eq!((side(Pattern::Gather, 1024, 3), side(Pattern::AllToAll, 1024, 3)), (258, 18));
        assert_eq!(bytes_of(Pattern::AllToAll, 1024, 3), 4 * 18 * 18);
        assert_eq!(side(Pattern::Scatter, 0, 2), 2);
    }

    #[test]
    fn what_traces_tell_of_a_machine_runs() {
        Config::default().nodes(2).run(machine).expect("it runs");
    }

    /// In process, small and short: each exchange runs to its end.
    #[test]
    fn every_exchange_runs() {
        for pattern in Pattern::ALL {
            let (writes, reads, _) = ways(pattern);
            let ways = (writes, reads);
            let taken = time(2, Collectives::Always, pattern, 64, ways).expect("it runs");
            assert!(taken.shortest < Duration::MAX && taken.is_first);
        }
    }
}
