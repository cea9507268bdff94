//! Constants of the machine where each node is a process: those of node 0 count for all, and only its
//! process reads them. If they are malformed, no process runs.

use std::path::{Path, PathBuf};

use celerity::prelude::*;

use crate::starts::place;

const NAMES: [&str; 5] = ["gather", "all-gather", "broadcast", "scatter", "all-to-all"];

pub(crate) fn run() {
    let (rank, nodes) = place();
    let name = |what: &str| format!("celerity-{}-{what}", std::process::id());
    let [file, graphs] =
        ["costs.txt", "graphs.txt"].map(|what| std::env::temp_dir().join(name(what)));
    // Operations for nothing: by the table that counts without a file, messages are cheaper.
    let line = |name: &str, step| {
        format!("{name}.once.ns = 0\n{name}.step.ns = {step}\n{name}.byte.ps = 0\n")
    };
    let cheap: String = NAMES.iter().map(|name| line(name, 0)).collect();
    let cheap = line("message", 1000) + &cheap;
    // Nobody but node 0 has a file.
    if rank == 0 {
        std::fs::write(&file, &cheap).expect("the folder can be written");
    }
    let config = Config::default().calibration(&file).write_graphs(&graphs);
    config.run(exchange).unwrap_or_else(|error| panic!("N{rank}: {error}"));
    let written = if nodes == 1 { graphs } else { graphs.with_extension(format!("N{rank}.txt")) };
    let text = std::fs::read_to_string(&written).expect("it has been written");
    assert_eq!(text.contains("all-gather"), nodes > 1, "N{rank}:\n{text}");
    remove(&written);
    if rank == 0 {
        std::fs::write(&file, cheap.replacen("1000", "few", 1)).expect("the folder can be written");
    }
    let error = Config::default().calibration(&file).run(exchange).unwrap_err().to_string();
    let what = "line 2: `message.step.ns` is `few`, but must be a whole number";
    assert!(error.contains(what), "N{rank}: {error}");
    remove(&file);
    // The run that did not begin disturbs no later one.
    Config::default().run(exchange).unwrap_or_else(|error| panic!("N{rank}: {error}"));
    if rank == 0 {
        crate::passed();
    }
}

/// Every node reads what all have written.
fn exchange(queue: &Queue) -> celerity::Result<()> {
    let [from, to] = [(); 2].map(|()| queue.buffer::<u32, 1>(64));
    queue.task("fill").parallel_for(64, from.write(one_to_one()), |item, x| *x = item[0] as u32)?;
    let accesses = (from.read(all()), to.write(one_to_one()));
    queue.task("sum").parallel_for(64, accesses, |_, (from, to)| {
        *to = (0..64).map(|at| from[[at]]).sum();
    })?;
    assert_eq!(queue.fence(&to)?.wait()?[[63]], 2016);
    Ok(())
}

/// Only node 0 has all of them.
fn remove(path: &Path) {
    let _: Result<(), std::io::Error> = std::fs::remove_file::<PathBuf>(path.into());
}
