//! What a program can ask of the runtime about its own schedule: checks,
//! graphs, lookahead. None of it changes results.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity::prelude::*;
use celerity::{CheckLevel, Lookahead, Result, RunError};

/// Each step reads one more row of a table.
fn growing(queue: &Queue) -> Result<Vec<u64>> {
    let table = queue.buffer_from([12, 8], (0..96).collect::<Vec<u64>>())?.named("table");
    let sums = queue.buffer_from([8], vec![0_u64; 8])?.named("sums");
    for rows in 1..=12 {
        let accesses =
            (sums.read_write(one_to_one()), table.read(fixed(Subrange::new([0, 0], [rows, 8]))));
        queue.task("sum").parallel_for([8], accesses, move |item, (sum, table)| {
            *sum += (0..rows).map(|row| table[[row, item.id()[0]]]).sum::<u64>();
        })?;
        if rows == 6 {
            queue.flush();
            queue.set_lookahead(Lookahead::Infinite);
        }
    }
    Ok(queue.fence(&sums)?.wait()?.into_vec())
}

#[test]
fn lookahead_and_checks_change_no_result() {
    let column = |column: u64| (1..=12).flat_map(|rows| 0..rows).map(move |row| row * 8 + column);
    let expected: Vec<u64> = (0..8).map(|x| column(x).sum()).collect();
    for lookahead in [Lookahead::None, Lookahead::Auto, Lookahead::Infinite] {
        for check in [CheckLevel::Off, CheckLevel::Cheap, CheckLevel::Full] {
            for (nodes, devices) in [(1, 1), (3, 2)] {
                let config = Config::default().nodes(nodes).devices(devices);
                let found = config.lookahead(lookahead).check(check).run(growing);
                assert_eq!(found.unwrap(), expected, "{lookahead:?}, {check:?}");
            }
        }
    }
}

#[test]
fn a_trace_names_tasks_buffers_and_memories_and_changes_no_result() {
    let path = std::env::temp_dir().join(format!("celerity-trace-{}.json", std::process::id()));
    let config = Config::default().nodes(2).devices(2);
    let traced = config.clone().trace(&path).run(growing).unwrap();
    assert_eq!(traced, config.run(growing).unwrap());
    let trace = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for name in ["sum", "copy table", "fence on sums", "M1 (host)", "barriers"] {
        assert!(trace.contains(&format!("\"name\":\"{name}\"")), "{name} is not in the trace");
    }
}

/// A folder of its own for a test's files, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("celerity-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn graphs_go_to_files_and_name_buffers() {
    let folder = Folder::new("graphs");
    for (nodes, devices) in [(1, 1), (2, 2)] {
        let config = Config::default().nodes(nodes).devices(devices);
        let written = |name: &str| {
            let path = folder.path(name);
            let sums = config.clone().write_graphs(&path).run(growing).unwrap();
            assert_eq!(sums, config.run(growing).unwrap());
            fs::read_to_string(path).unwrap()
        };
        let text = written("graphs.txt");
        assert!(text.starts_with("task graph:\nT0 epoch init\n"), "{text}");
        for part in ["write B1 \"sums\" one_to_one", "read B0 \"table\" fixed(", "; B1 \"sums\" {["]
        {
            assert!(text.contains(part), "\"{part}\" is not in\n{text}");
        }
        for node in 0..nodes {
            assert!(text.contains(&format!("\ncommand graph of N{node}:\nN{node} C0 epoch T0")));
            assert!(
                text.contains(&format!("\ninstruction graph of N{node}:\nN{node} I0 epoch T0"))
            );
        }
        if nodes > 1 {
            assert!(text.contains(".B1 \"sums\" "), "transfers name what they move: {text}");
        }
        let dot = written("graphs.dot");
        assert_eq!(dot.matches("subgraph").count(), 1 + 2 * nodes);
        assert!(dot.contains("read B0 \\\"table\\\""), "{dot}");
        let svg = written("graphs.SVG");
        let nodes_of_graphs = text.lines().filter(|line| !line.ends_with(':')).count();
        assert_eq!(svg.matches("<title>").count(), nodes_of_graphs, "every node is drawn");
        assert!(svg.contains("read B0 &quot;table&quot;") && svg.ends_with("</svg>\n"));
    }
}

#[test]
fn a_picture_of_a_long_program_shows_its_beginning() {
    let folder = Folder::new("long-graphs");
    let path = folder.path("graphs.svg");
    let run = Config::default().write_graphs(&path).run(|queue| {
        let numbers = queue.buffer_from([4], vec![0_u32; 4])?;
        for _ in 0..3_000 {
            let accesses = numbers.read_write(one_to_one());
            queue.task("count").parallel_for([4], accesses, |_, number| *number += 1)?;
        }
        Ok(queue.fence(&numbers)?.wait()?[0])
    });
    assert_eq!(run.unwrap(), 3_000);
    let svg = fs::read_to_string(&path).unwrap();
    assert_eq!(svg.matches("<title>").count(), 3 * 2_000);
    assert_eq!(svg.matches(" more are left out)").count(), 3);
}

#[test]
fn graphs_of_a_run_that_fails_are_written() {
    let folder = Folder::new("failed-graphs");
    let path = folder.path("graphs.txt");
    let run = Config::default().write_graphs(&path).run(|queue| {
        queue.host_task("fail").once((), |()| Err("no".into()))?;
        queue.barrier()
    });
    assert!(run.unwrap_err().to_string().contains("\"fail\""));
    assert!(fs::read_to_string(&path).unwrap().contains("T1 fail on the host"));
}

#[test]
fn files_that_cannot_be_written_are_known_before_the_run() {
    let folder = Folder::new("no-graphs");
    let started = AtomicUsize::new(0);
    for (name, why) in [
        ("missing/graphs.svg", "make it writable"),
        ("graphs.png", ".svg, .dot or .txt"),
        ("graphs", ".svg, .dot or .txt"),
    ] {
        let path = folder.path(name);
        for (nodes, devices) in [(1, 1), (3, 2)] {
            let config = Config::default().nodes(nodes).devices(devices).write_graphs(&path);
            let error = config.run(|_| Ok(started.fetch_add(1, Ordering::Relaxed))).unwrap_err();
            let celerity::Error::Run(run) = &error else { panic!("{error}") };
            assert!(matches!(**run, RunError::Start { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(why), "{text}");
        }
        assert!(!path.exists());
    }
    assert_eq!(started.load(Ordering::Relaxed), 0);
}

/// A long program that never waits must not pile up behind the lookahead.
#[test]
fn a_program_without_a_fence_is_not_held_back_for_ever() {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let run = Config::default().lookahead(Lookahead::Infinite).run(move |queue| {
        let numbers = queue.buffer_from([4], vec![0_u32; 4])?;
        for _ in 0..6_000 {
            let count = count.clone();
            queue.task("count").parallel_for([4], numbers.read_write(one_to_one()), {
                move |item, number| {
                    *number += 1;
                    if item.linear_id() == 0 {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        }
        Ok(count.load(Ordering::Relaxed))
    });
    assert!(run.unwrap() > 0, "something has run before the program has ended");
    assert_eq!(done.load(Ordering::Relaxed), 6_000);
}
