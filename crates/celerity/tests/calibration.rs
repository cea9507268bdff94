//! Files of constants by which `Collectives::Auto` decides: what they change, and what is wrong with
//! some.

use std::path::PathBuf;

use celerity::prelude::*;
use celerity::{ConfigError, Error};

const NAMES: [&str; 6] = ["message", "gather", "all-gather", "broadcast", "scatter", "all-to-all"];

/// A file that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("celerity-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the folder can be written");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Constants by which messages and operations cost so much each, whatever their size.
fn constants(message: u64, operation: u64) -> String {
    let line = |name: &str| {
        let (once, step) = if name == "message" { (0, message) } else { (operation, 0) };
        format!("{name}.once.ns = {once}\n{name}.step.ns = {step}\n{name}.byte.ps = 0\n")
    };
    NAMES.into_iter().map(line).collect()
}

/// The graphs of a program that exchanges everything, as text.
fn graphs(config: Config, name: &str) -> celerity::Result<String> {
    let graphs = Scratch::new(&format!("{name}.txt"), "");
    config.write_graphs(&graphs.0).run(|queue| {
        let [from, to] = [(); 2].map(|()| queue.buffer::<u32, 1>(64));
        queue.task("fill").parallel_for(64, from.write(one_to_one()), |item, x| {
            *x = item[0] as u32;
        })?;
        let accesses = (from.read(all()), to.write(one_to_one()));
        queue.task("sum").parallel_for(64, accesses, |_, (from, to)| {
            *to = (0..64).map(|at| from[[at]]).sum();
        })?;
        assert_eq!(queue.fence(&to)?.wait()?[[63]], 2016);
        Ok(())
    })?;
    Ok(std::fs::read_to_string(&graphs.0).expect("it has been written"))
}

#[test]
fn constants_decide_how_data_moves() {
    let cheap = Scratch::new("cheap", &constants(1000, 10));
    let dear = Scratch::new("dear", &constants(1000, 2500));
    for (nodes, file, expected) in
        [(2, &cheap, true), (2, &dear, false), (3, &dear, false), (4, &dear, true)]
    {
        let config = Config::default().nodes(nodes).calibration(&file.0);
        let graphs = graphs(config, &format!("decide-{nodes}-{expected}")).expect("it runs");
        assert_eq!(graphs.contains("all-gather"), expected, "{nodes} nodes:\n{graphs}");
    }
    let dry = Config::default().dry_run(4).calibration(&dear.0);
    let submitted = dry.run(|queue| {
        let from = queue.buffer::<u32, 1>(64);
        queue.task("fill").parallel_for(64, from.write(one_to_one()), |_, x| *x = 1)?;
        queue.fence(&from)?.wait()
    });
    assert!(submitted.is_ok());
}

#[test]
fn malformed_files_are_named_with_the_line() {
    let text = constants(1, 1).replace("scatter.step.ns = 0", "scatter.step.ns = none");
    let file = Scratch::new("malformed", &text);
    let config = Config::default().nodes(2).calibration(&file.0);
    let error = graphs(config.clone(), "malformed-graphs").unwrap_err();
    let expected = format!(
        "the calibration {} (CELERITY_CALIBRATION or `Config::calibration`) is malformed: line 14: \
         `scatter.step.ns` is `none`, but must be a whole number from 0 on; `cargo xtask \
         calibrate` writes such files",
        file.0.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::Config(ConfigError::BadCalibration { .. })));
    let error = graphs(config.dry_run(4), "malformed-dry").unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn files_that_are_not_there_are_named() {
    let missing = std::env::temp_dir().join("celerity-no-such-calibration");
    let error = graphs(Config::default().calibration(&missing), "missing").unwrap_err();
    assert!(error.to_string().contains("celerity-no-such-calibration"), "{error}");
    for (path, what) in [("/dev/zero", "it is no file"), ("/", "it is no file")] {
        let error = graphs(Config::default().calibration(path), "endless").unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
    assert!(matches!(error, Error::Config(ConfigError::UnreadableCalibration { .. })));
}
