//! The trace of a run: what it shows of programs, schedulers, lanes, network and
//! memory, and that its slices and arrows fit together.

use std::collections::HashMap;
use std::path::PathBuf;

use celerity_executor::{ClusterConfig, Collectives, RunError};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::{
    ProgramError, buffer, cluster, fence, host_task, kernel, reads, run, updates, writes,
};

/// Where a test's trace goes; gone at its end.
struct Path(PathBuf);

impl Path {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("celerity-{test}-{}.json", std::process::id())))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// One event of a trace: the text of each of its outermost keys.
struct Event(HashMap<String, String>);

impl Event {
    /// Reads a line, in which only `args` holds further keys.
    fn parse(line: &str) -> Self {
        let line = line.trim_end_matches(',');
        let inner = line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).expect(line);
        let (inner, args) = inner.split_once(",\"args\":").unwrap_or((inner, ""));
        let mut keys = HashMap::from([("args".to_owned(), args.to_owned())]);
        for pair in inner.split(",\"") {
            let (key, value) = pair.split_once("\":").expect(line);
            keys.insert(key.trim_matches('"').to_owned(), value.trim_matches('"').to_owned());
        }
        Self(keys)
    }

    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |value| value)
    }

    fn is(&self, pairs: &[(&str, &str)]) -> bool {
        pairs.iter().all(|(key, value)| self.get(key) == *value)
    }

    /// In nanoseconds.
    fn time(&self, key: &str) -> u64 {
        self.get(key).replace('.', "").parse().expect("a time")
    }

    fn place(&self) -> (&str, &str) {
        (self.get("pid"), self.get("tid"))
    }
}

fn events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(&path.0).unwrap();
    assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
    text.lines().filter(|line| line.starts_with('{')).map(Event::parse).collect()
}

/// Fills a buffer, updates it from a copy of all of it, and looks at it.
fn exchange(path: &Path, nodes: usize) -> Vec<Event> {
    let collectives = Collectives::Off;
    let config = ClusterConfig { trace: Some(path.0.clone()), collectives, ..cluster(nodes, 2) };
    run(&config, |node| {
        let extent = Box3::from_range([64]);
        let [u, v] = ["u", "v"].map(|name| {
            let buffer = buffer(node, extent);
            node.rename_buffer(buffer, name);
            buffer
        });
        kernel(node, "fill", extent, vec![writes(u, Mapper::OneToOne)], |at, u| u[0].set(at, 1))?;
        let sum = vec![reads(u, Mapper::All), writes(v, Mapper::OneToOne)];
        kernel(node, "sum", extent, sum, |at, views| views[1].set(at, views[0].get([7, 0, 0])))?;
        host_task(node, "look", vec![updates(v, Mapper::All)], |_| {})?;
        node.barrier()?;
        Ok(fence(node, v, extent)?.wait(node)?)
    })
    .unwrap();
    events(path)
}

#[test]
fn a_trace_shows_every_stage_of_every_node() {
    let path = Path::new("stages");
    let events = exchange(&path, 2);
    let count = |pairs: &[(&str, &str)]| events.iter().filter(|event| event.is(pairs)).count();
    for node in ["0", "1"] {
        let slices = |category, name| {
            count(&[("ph", "X"), ("pid", node), ("cat", category), ("name", name)])
        };
        for (category, name, least) in [
            ("program", "fill", 1),
            ("program", "wait for epoch", 2),
            ("scheduler", "sum", 1),
            ("kernel", "fill", 2),
            ("kernel", "sum", 2),
            ("host", "look", if node == "0" { 1 } else { 0 }),
            ("host", "fence", 1),
            ("memory", "alloc u", 2),
            ("send", "send u", 1),
            ("payload", "payload of u", 1),
            ("synchronization", "barrier", 1),
            ("synchronization", "end of the program", 1),
        ] {
            assert!(slices(category, name) >= least, "{category} {name} on N{node}");
        }
        assert!(slices("copy", "copy u") > 0);
        assert!(slices("receive", "await u") + slices("receive", "receive u") > 0);
        for name in ["M1 (host)", "M2 (D0)", "M3 (D1)", "instructions"] {
            assert!(count(&[("ph", "C"), ("pid", node), ("name", name)]) > 0, "{name}");
        }
    }
    let named = |name: &str| {
        let tracks = events.iter().filter(|event| event.is(&[("name", "thread_name")]));
        tracks.filter(|event| event.get("args").contains(name)).count()
    };
    for track in ["D0 kernels 1", "fences 1", "executor", "barriers", "send 1", "payload 1"] {
        assert_eq!(named(&format!("\"{track}\"")), 2, "{track}, once per node");
    }
}

#[test]
fn arrows_connect_slices_in_order_of_time() {
    let path = Path::new("arrows");
    let events = exchange(&path, 2);
    let slice_at = |arrow: &Event| {
        let at = arrow.time("ts");
        events.iter().find(|event| {
            let start = event.is(&[("ph", "X")]).then(|| event.time("ts"));
            event.place() == arrow.place()
                && start.is_some_and(|start| start <= at && at < start + event.time("dur"))
        })
    };
    let mut between = HashMap::new();
    for end in events.iter().filter(|event| event.is(&[("ph", "f")])) {
        let (id, category) = (end.get("id"), end.get("cat"));
        let begins = |event: &&Event| event.is(&[("ph", "s"), ("id", id), ("cat", category)]);
        let begin: Vec<_> = events.iter().filter(begins).collect();
        let [begin] = begin[..] else { panic!("{category} {id} begins {} times", begin.len()) };
        assert!(begin.time("ts") <= end.time("ts"), "{category} {id} goes back in time");
        let from = slice_at(begin).unwrap_or_else(|| panic!("{category} {id} begins nowhere"));
        let to = slice_at(end).unwrap_or_else(|| panic!("{category} {id} ends nowhere"));
        *between.entry((from.get("cat"), to.get("cat"))).or_insert(0) += 1;
        if category == "message" {
            assert_ne!(begin.get("pid"), end.get("pid"));
        }
    }
    for pair in [("memory", "kernel"), ("kernel", "copy"), ("send", "payload")] {
        assert!(between.contains_key(&pair), "no arrow leads from {pair:?}: {between:?}");
    }
}

#[test]
fn slices_of_one_lane_do_not_overlap() {
    let path = Path::new("lanes");
    let events = exchange(&path, 1);
    let jobs = events.iter().filter(|event| {
        ["kernel", "copy", "host"]
            .iter()
            .any(|category| event.is(&[("ph", "X"), ("cat", category)]))
    });
    let mut by_lane: HashMap<_, Vec<_>> = HashMap::new();
    for job in jobs {
        by_lane.entry(job.place()).or_default().push((job.time("ts"), job.time("dur")));
    }
    assert!(by_lane.len() > 3);
    for (lane, jobs) in &mut by_lane {
        jobs.sort_unstable();
        let apart = jobs.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 1);
        assert!(apart, "{lane:?}: {jobs:?}");
    }
}

#[test]
fn a_failed_run_leaves_a_trace_of_what_it_did() {
    let path = Path::new("failed");
    let config = ClusterConfig { trace: Some(path.0.clone()), ..cluster(1, 1) };
    let outcome = run(&config, |node| {
        let extent = Box3::from_range([4]);
        let u = buffer(node, extent);
        kernel(node, "good", extent, vec![writes(u, Mapper::OneToOne)], |at, u| u[0].set(at, 1))?;
        node.barrier()?;
        kernel(node, "bad", extent, vec![updates(u, Mapper::OneToOne)], |_, _| panic!("boom"))?;
        Ok(node.barrier()?)
    });
    assert!(outcome.is_err());
    let kernels: Vec<_> =
        events(&path).into_iter().filter(|event| event.is(&[("cat", "kernel")])).collect();
    let names: Vec<_> = kernels.iter().map(|event| event.get("name")).collect();
    assert_eq!(names, ["good", "bad"]);
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_before_the_start() {
    let nowhere = std::env::temp_dir().join("celerity-no-such-folder").join("trace.json");
    let config = ClusterConfig { trace: Some(nowhere), ..cluster(1, 1) };
    let outcome = run(&config, |_| Ok(()));
    let Err(ProgramError::Run(RunError::Start { what })) = outcome else { panic!("{outcome:?}") };
    assert!(what.contains("celerity-no-such-folder"), "{what}");
}
