//! Dry runs as any node of a cluster, and the schedules that they write.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use celerity::prelude::*;
use celerity::{CheckLevel, Collectives, LogLevel, Sum};

/// A file that goes when the test does.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let file = format!("celerity-schedule-{name}-{}.txt", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn dry(nodes: usize, node: usize, path: &Path) -> Config {
    let config = Config::default().dry_run(nodes).dry_run_node(node).dry_run_schedule(path);
    config.check(CheckLevel::Full).log_level(LogLevel::Off)
}

fn stencil(queue: &Queue) -> celerity::Result<()> {
    let (a, b) = (queue.buffer::<f32, 2>([16, 3]), queue.buffer::<f32, 2>([16, 3]));
    let sum = queue.buffer::<f32, 0>([]);
    queue.task("fill").parallel_for([16, 3], a.write(one_to_one()), |_, x| *x = 1.0)?;
    let accesses = (a.read(neighborhood([1, 0])), b.write(one_to_one()), sum.reduce(Sum));
    queue.task("step").parallel_for([16, 3], accesses, |_, _| ())?;
    queue.host_task("look").once(b.read(all()), |_| ())?;
    queue.fence(&sum)?.wait().map(drop)
}

/// The lines that begin with an instruction's id and this verb.
fn lines<'a>(text: &'a str, verb: &str) -> Vec<&'a str> {
    let has_verb = |line: &&str| line.starts_with('I') && line.split(' ').nth(1) == Some(verb);
    text.lines().filter(has_verb).collect()
}

fn key<'a>(line: &'a str, key: &str) -> &'a str {
    let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| *found == key).map_or("", |(_, value)| value)
}

#[test]
fn all_nodes_together_run_every_item_once_and_receive_what_is_sent() {
    let file = Scratch::new("together");
    for nodes in [1, 2, 3, 4, 20] {
        for devices in [1, 2] {
            let mut items = 0;
            let mut moved = HashMap::<String, i64>::new();
            for node in 0..nodes {
                let config = dry(nodes, node, &file.0).devices(devices);
                let config = config.collectives(Collectives::Off);
                let told = config.run(|queue| {
                    stencil(queue)?;
                    Ok((queue.node(), queue.nodes()))
                });
                assert_eq!(told.unwrap(), (node, nodes));
                let text = file.text();
                let head =
                    format!("celerity-schedule 1\nnode {node} of {nodes}, {devices} devices\n");
                assert!(text.starts_with(&head) && text.ends_with("\nend\n"), "{text}");
                let kernels = lines(&text, "kernel");
                let step = text.lines().find(|line| line.ends_with("kernel \"step\"")).unwrap();
                let id = step.split(' ').nth(1).unwrap();
                let of_step = kernels.iter().filter(|line| key(line, "task") == id);
                items +=
                    of_step.map(|line| key(line, "items").parse::<u64>().unwrap()).sum::<u64>();
                count(&text, "send", 1, &mut moved);
                count(&text, "receive", -1, &mut moved);
                count(&text, "split-receive", -1, &mut moved);
            }
            assert_eq!(items, 16 * 3, "{nodes} × {devices}");
            let lost: Vec<_> = moved.into_iter().filter(|(_, elements)| *elements != 0).collect();
            assert!(lost.is_empty(), "{nodes} × {devices}: {lost:?}");
        }
    }
}

/// Adds up the elements of each transfer.
fn count(text: &str, verb: &str, sign: i64, moved: &mut HashMap<String, i64>) {
    for line in lines(text, verb) {
        let transfer = format!("{}.{}", key(line, "for"), key(line, "buffer"));
        *moved.entry(transfer).or_default() += sign * volume(key(line, "boxes"));
    }
}

fn volume(boxes: &str) -> i64 {
    let corner = |text: &str| text.split(':').map(|x| x.parse().unwrap()).collect::<Vec<i64>>();
    let one = |text: &str| {
        let (min, max) = text.split_once('-').unwrap();
        corner(min).iter().zip(corner(max)).map(|(min, max)| max - min).product::<i64>()
    };
    boxes.split(',').map(one).sum()
}

#[test]
fn operations_of_all_nodes_have_one_number_on_all_of_them() {
    let file = Scratch::new("collectives");
    for node in 0..4 {
        let config = dry(4, node, &file.0).collectives(Collectives::Always);
        let gather = config.run(|queue| {
            let (a, b) = (queue.buffer::<f32, 1>(40), queue.buffer::<f32, 1>(40));
            for _ in 0..2 {
                queue.task("fill").parallel_for(40, a.write(one_to_one()), |_, x| *x = 1.0)?;
                let accesses = (a.read(all()), b.write(one_to_one()));
                queue.task("sum").parallel_for(40, accesses, |_, _| ())?;
            }
            Ok(())
        });
        gather.unwrap();
        let text = file.text();
        let gathers = lines(&text, "all-gather").into_iter();
        let numbers = gathers.map(|line| ["number", "out", "in"].map(|name| key(line, name)));
        // A node gives its ten elements, and gets those of three others.
        assert_eq!(numbers.collect::<Vec<_>>(), [["0", "40", "120"], ["1", "40", "120"]], "{text}");
    }
}

#[test]
fn a_run_that_fails_leaves_no_end_and_other_runs_leave_no_file() {
    let file = Scratch::new("failed");
    let error = dry(2, 1, &file.0).run(|queue| {
        let a = queue.buffer::<f32, 1>(100);
        queue.task("step").parallel_for(100, a.read(all()), |_, _| ())
    });
    assert!(error.is_err());
    assert!(!file.text().contains("\nend"));
    std::fs::remove_file(&file.0).unwrap();
    Config::default().dry_run_schedule(&file.0).run(|_| Ok(())).unwrap();
    assert!(!file.0.exists());
    let nowhere = dry(2, 0, Path::new("no/such/folder/s.txt")).run(|_| Ok(())).unwrap_err();
    let text = nowhere.to_string();
    assert!(text.contains("the schedule cannot be written to \"no/such/folder/s.txt\""), "{text}");
}

/// One would be written over the other.
#[test]
fn a_schedule_and_a_trace_do_not_go_to_one_file() {
    let file = Scratch::new("both");
    let folder = file.0.parent().unwrap();
    let other_way = folder.join(".").join(file.0.file_name().unwrap());
    // At first there is no such file, then there is.
    for _ in 0..2 {
        let error = dry(2, 0, &file.0).trace(&other_way).run(|_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("the schedule and the trace are both to be written to"), "{error}");
        std::fs::write(&file.0, "mine").unwrap();
    }
    assert_eq!(file.text(), "mine");
    if cfg!(unix) {
        dry(2, 0, Path::new("/dev/null")).trace("/dev/null").run(|_| Ok(())).unwrap();
    }
}

#[test]
fn a_node_that_there_is_not_is_an_error() {
    for (nodes, node) in [(1, 1), (4, 4), (4, usize::MAX)] {
        let config = Config::default().dry_run(nodes).dry_run_node(node).log_level(LogLevel::Off);
        let error = config.run(|_| Ok(())).unwrap_err().to_string();
        let expected = format!("N{node} (CELERITY_DRY_RUN_NODE or `Config::dry_run_node`)");
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains(&format!("the last is N{}", nodes - 1)), "{error}");
    }
}

#[test]
fn traces_name_the_task_of_each_submission_and_scheduling_step() {
    let file = Scratch::new("trace");
    let config = Config::default().dry_run(2).dry_run_node(1).log_level(LogLevel::Off);
    config.trace(&file.0).run(stencil).unwrap();
    let text = file.text();
    for category in ["program", "scheduler"] {
        let wanted = format!(r#""name":"step","cat":"{category}","args":{{"task":"T"#);
        assert!(text.contains(&wanted), "{category}: {text}");
    }
}
