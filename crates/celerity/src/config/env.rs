//! Configuration from environment variables: a pure function over names and
//! values. The names and meanings are the C++ original's where it has them.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use celerity_executor::{CheckLevel, Collectives, DeviceMemory, Lookahead, Wires};
use celerity_tdag::UninitializedRead;

use super::Config;
use super::distance::edit_distance;
use super::platform::Platform;
use crate::error::ConfigError;
use crate::graphs::Format;
use crate::log::LogLevel;
use crate::pinning::{Pinning, repeated};

/// A variable: its name, what its values are, and what a value does. The setter
/// returns `None` for a value that means nothing.
struct Variable {
    name: &'static str,
    expected: &'static str,
    set: fn(Config, Value<'_>) -> Option<Config>,
}

/// A variable's value: text, or else a path, which may be any bytes.
#[derive(Clone, Copy)]
struct Value<'v>(&'v OsStr);

impl<'v> Value<'v> {
    /// The text, without spaces around it.
    fn text(self) -> Option<&'v str> {
        self.0.to_str().map(str::trim)
    }

    /// The path, as it is.
    fn path(self) -> Option<&'v OsStr> {
        (!self.0.is_empty()).then_some(self.0)
    }

    fn count(self) -> Option<usize> {
        self.text()?.parse().ok().filter(|&count| count > 0)
    }

    /// Seconds, also parts of one, up to some thousand years.
    fn seconds(self) -> Option<Duration> {
        let seconds: f64 = self.text()?.parse().ok()?;
        (0.0..1e11).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
    }
}

/// What a horizon may wait for.
const MANY: &str = "a whole number from 1 to 1048576";

const VARIABLES: [Variable; 25] = [
    Variable {
        name: "CELERITY_NODES",
        expected: "a whole number from 1 to 1024",
        set: |config, value| Some(config.nodes(value.count()?)),
    },
    Variable {
        name: "CELERITY_DRY_RUN_NODES",
        expected: "a whole number from 1 to 1048576",
        set: |config, value| Some(config.dry_run(value.count()?)),
    },
    Variable {
        name: "CELERITY_DRY_RUN_NODE",
        expected: "the number of a node, counted from 0",
        set: |config, value| Some(config.dry_run_node(value.text()?.parse().ok()?)),
    },
    Variable {
        name: "CELERITY_DRY_RUN_SCHEDULE",
        expected: "the path of a file",
        set: |config, value| Some(config.dry_run_schedule(value.path()?)),
    },
    Variable {
        name: "CELERITY_DEVICES",
        expected: "a whole number from 1 to 61",
        set: |config, value| Some(config.devices(value.count()?)),
    },
    Variable {
        name: "CELERITY_DEVICE_MEMORY",
        expected: "own or host",
        set: |config, value| Some(config.device_memory(device_memory(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_HORIZON_STEP",
        expected: MANY,
        set: |config, value| Some(config.horizon_step(value.count()? as u64)),
    },
    Variable {
        name: "CELERITY_HORIZON_MAX_PARALLELISM",
        expected: MANY,
        set: |config, value| Some(config.horizon_max_parallelism(value.count()? as u64)),
    },
    Variable {
        name: "CELERITY_UNINITIALIZED_READ",
        expected: "error or warn",
        set: |config, value| Some(config.uninitialized_read(uninitialized_read(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_LOOKAHEAD",
        expected: "none, auto or infinite",
        set: |config, value| Some(config.lookahead(lookahead(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_COLLECTIVES",
        expected: "off, paper, auto, always or explain",
        set: |config, value| match value.text()? {
            "explain" => Some(config.collectives(Collectives::Auto).explain_collectives(true)),
            text => Some(config.collectives(text.parse().ok()?).explain_collectives(false)),
        },
    },
    Variable {
        name: "CELERITY_WIRES",
        expected: "auto, host, ipc or nccl",
        set: |config, value| Some(config.wires(wires(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_CALIBRATION",
        expected: "the path of a file",
        set: |config, value| Some(config.calibration(value.path()?)),
    },
    Variable {
        name: "CELERITY_CHECK",
        expected: "off, cheap or on",
        set: |config, value| Some(config.check(check(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_PRINT_GRAPHS",
        expected: "on, off, or the path of a file that ends in .svg, .dot or .txt",
        set: graphs,
    },
    Variable {
        name: "CELERITY_PROFILE_KERNEL",
        expected: "on or off",
        set: |config, value| Some(config.profile_kernels(switch(value.text()?)?)),
    },
    Variable { name: "CELERITY_TRACE", expected: "the path of a file, or off", set: trace },
    Variable {
        name: "CELERITY_WATCHDOG",
        expected: "a number of seconds, or 0 for never",
        set: |config, value| Some(config.watchdog(value.seconds()?)),
    },
    Variable {
        name: "CELERITY_PLATFORM",
        expected: "auto, cpu or cuda",
        set: |config, value| Some(config.platform(platform(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_SHARE_GPUS",
        expected: "on or off",
        set: |config, value| Some(config.share_gpus(switch(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_THREAD_PINNING",
        expected: "off, auto or a list of cores like 0,2,3, each once (`0,` for core 0 alone)",
        set: |config, value| Some(config.pinning(pinning(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_PEER_TIMEOUT",
        expected: "a number of seconds above 0, and below 1e11",
        set: |config, value| {
            let timeout = value.seconds()?;
            (!timeout.is_zero()).then(|| config.peer_timeout(timeout))
        },
    },
    Variable {
        name: "CELERITY_MPI_THREAD_MULTIPLE",
        expected: "on or off",
        set: |config, value| Some(config.mpi_thread_multiple(switch(value.text()?)?)),
    },
    Variable {
        name: "CELERITY_START_TIMEOUT",
        expected: "a number of seconds above 0, and below 1e11",
        set: |config, value| {
            let timeout = value.seconds()?;
            (!timeout.is_zero()).then(|| config.start_timeout(timeout))
        },
    },
    Variable {
        name: "CELERITY_LOG_LEVEL",
        expected: "trace, debug, info, warn, error (or err), critical or off",
        set: |config, value| Some(config.log_level(log_level(value.text()?)?)),
    },
];

/// Variables that builds of kernels look at. `cargo run` hands them on to the program.
const OF_BUILDS: [&str; 3] =
    ["CELERITY_DEVICE_CODE", "CELERITY_DEVICE_RUSTC", "CELERITY_DEVICE_RUST_SRC"];

/// Variables of the original that set what there is nothing of here, and what to do in their place.
const FOREIGN: [(&str, &str); 4] = [
    ("CELERITY_BACKEND_DEVICE_SUBMISSION_THREADS", "; devices have threads of their own as needed"),
    ("CELERITY_FORCE_WG", "; a task says `.block(..)`, or is launched over an `nd_range`"),
    ("CELERITY_GRAPH_PRINT_MAX_VERTS", "; CELERITY_PRINT_GRAPHS prints graphs of any size as text"),
    ("CELERITY_TRACY", "; CELERITY_TRACE=trace.json writes what viewers of traces show"),
];

impl Config {
    /// As [`from_env`](Self::from_env), but tells no other process of an error.
    pub(crate) fn read_env() -> Result<Self, ConfigError> {
        Ok(Self::from_variables(std::env::vars_os())?.interruptible(true))
    }

    /// As [`from_env`](Self::from_env), from any names and values. Names that do
    /// not begin with `CELERITY_` are ignored. Spaces around a value are, too, but for
    /// paths: these may be anything that the system takes for a path.
    ///
    /// ```
    /// use celerity::Config;
    /// let config = Config::from_variables([("CELERITY_NODES", "4"), ("HOME", "/root")])?;
    /// assert_eq!(config, Config::default().nodes(4));
    /// let error = Config::from_variables([("CELERITY_NODE", "4")]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "there is no environment variable CELERITY_NODE; did you mean CELERITY_NODES?"
    /// );
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_variables<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ConfigError> {
        variables
            .into_iter()
            .filter(|(name, _)| name.as_ref().as_encoded_bytes().starts_with(b"CELERITY_"))
            .try_fold(Self::default(), |config, (name, value)| {
                set(config, name.as_ref(), value.as_ref())
            })
    }
}

fn set(config: Config, name: &OsStr, value: &OsStr) -> Result<Config, ConfigError> {
    let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) else {
        if OF_BUILDS.iter().any(|of_builds| *of_builds == name) {
            return Ok(config);
        }
        if let Some((name, instead)) = FOREIGN.into_iter().find(|(foreign, _)| *foreign == name) {
            return Err(ConfigError::ForeignVariable { name, instead });
        }
        let name = name.to_string_lossy().into_owned();
        return Err(ConfigError::UnknownVariable { nearest: nearest(&name), name });
    };
    (variable.set)(config, Value(value)).ok_or_else(|| ConfigError::BadValue {
        name: variable.name,
        value: value.to_string_lossy().trim().to_owned(),
        expected: variable.expected,
    })
}

fn device_memory(value: &str) -> Option<DeviceMemory> {
    match value {
        "own" => Some(DeviceMemory::Own),
        "host" => Some(DeviceMemory::Host),
        _ => None,
    }
}

fn uninitialized_read(value: &str) -> Option<UninitializedRead> {
    match value {
        "error" => Some(UninitializedRead::Error),
        "warn" => Some(UninitializedRead::Warn),
        _ => None,
    }
}

fn lookahead(value: &str) -> Option<Lookahead> {
    match value {
        "none" => Some(Lookahead::None),
        "auto" => Some(Lookahead::Auto),
        "infinite" => Some(Lookahead::Infinite),
        _ => None,
    }
}

fn wires(value: &str) -> Option<Wires> {
    match value {
        "auto" => Some(Wires::Auto),
        "host" => Some(Wires::Host),
        "ipc" => Some(Wires::Ipc),
        "nccl" => Some(Wires::Nccl),
        _ => None,
    }
}

fn check(value: &str) -> Option<CheckLevel> {
    match value {
        "off" => Some(CheckLevel::Off),
        "cheap" => Some(CheckLevel::Cheap),
        "on" => Some(CheckLevel::Full),
        _ => None,
    }
}

fn graphs(config: Config, value: Value<'_>) -> Option<Config> {
    match value.text().and_then(switch) {
        Some(print) => Some(config.print_graphs(print)),
        None => {
            let path = Path::new(value.path()?);
            Format::of(path).map(|_| config.write_graphs(path))
        }
    }
}

fn trace(config: Config, value: Value<'_>) -> Option<Config> {
    match value.text().and_then(switch) {
        Some(false) => Some(config),
        // Nobody who says `on` has a file of that name in mind.
        Some(true) => None,
        None => Some(config.trace(value.path()?)),
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" | "1" | "true" => Some(true),
        "off" | "0" | "false" => Some(false),
        _ => None,
    }
}

fn platform(value: &str) -> Option<Platform> {
    match value {
        "auto" => Some(Platform::Auto),
        "cpu" => Some(Platform::Cpu),
        "cuda" => Some(Platform::Cuda),
        _ => None,
    }
}

/// Also what the original takes for off and auto: a core of the same number by itself has a comma behind it.
fn pinning(value: &str) -> Option<Pinning> {
    match (value, switch(value)) {
        (_, Some(false)) => Some(Pinning::Off),
        ("auto", _) | (_, Some(true)) => Some(Pinning::Auto),
        (list, None) => {
            let list = list.strip_suffix(',').unwrap_or(list);
            let cores: Vec<usize> =
                list.split(',').map(|core| core.trim().parse().ok()).collect::<Option<_>>()?;
            repeated(&cores).is_none().then_some(Pinning::Cores(cores))
        }
    }
}

fn log_level(value: &str) -> Option<LogLevel> {
    match value {
        "off" => Some(LogLevel::Off),
        "critical" => Some(LogLevel::Critical),
        "error" | "err" => Some(LogLevel::Error),
        "warn" => Some(LogLevel::Warn),
        "info" => Some(LogLevel::Info),
        "debug" => Some(LogLevel::Debug),
        "trace" => Some(LogLevel::Trace),
        _ => None,
    }
}

fn nearest(name: &str) -> &'static str {
    let names = VARIABLES.iter().map(|variable| variable.name);
    names.min_by_key(|valid| edit_distance(name, valid)).expect("there are variables")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, value: &str) -> Result<Config, ConfigError> {
        Config::from_variables([(name, value)])
    }

    #[test]
    fn the_tables_in_the_documentation_name_every_variable() {
        let texts = [include_str!("../../README.md"), include_str!("../../../../README.md")];
        for Variable { name, .. } in VARIABLES {
            let row = format!("| `{name}` |");
            assert!(texts.iter().all(|text| text.contains(&row)), "{name} is missing");
        }
    }

    #[test]
    fn collectives_are_one_of_a_few_words() {
        let explained = Config::default().explain_collectives(true);
        assert_eq!(parse("CELERITY_COLLECTIVES", "explain"), Ok(explained));
        let off = Config::default().collectives(Collectives::Off);
        assert_eq!(parse("CELERITY_COLLECTIVES", " off "), Ok(off));
        for wrong in ["", "on", "Auto", "off,paper"] {
            let error = parse("CELERITY_COLLECTIVES", wrong).unwrap_err().to_string();
            assert!(error.contains("off, paper, auto, always or explain"), "{error}");
        }
    }

    #[test]
    fn every_variable_sets_its_own() {
        let config = Config::from_variables([
            ("CELERITY_DRY_RUN_NODES", "77"),
            ("CELERITY_DRY_RUN_NODE", "5"),
            ("CELERITY_DRY_RUN_SCHEDULE", "out/N5.txt"),
            ("CELERITY_NODES", "2"),
            ("CELERITY_DEVICES", " 3 "),
            ("CELERITY_DEVICE_MEMORY", "host"),
            ("CELERITY_HORIZON_STEP", "5"),
            ("CELERITY_HORIZON_MAX_PARALLELISM", "7"),
            ("CELERITY_UNINITIALIZED_READ", "warn"),
            ("CELERITY_COLLECTIVES", "paper"),
            ("CELERITY_WIRES", "ipc"),
            ("CELERITY_CALIBRATION", "here/costs.txt"),
            ("CELERITY_PRINT_GRAPHS", "out/graphs.svg"),
            ("CELERITY_PROFILE_KERNEL", "on"),
            ("CELERITY_TRACE", "out/trace.json"),
            ("CELERITY_WATCHDOG", "0.5"),
            ("CELERITY_PLATFORM", "cpu"),
            ("CELERITY_SHARE_GPUS", "on"),
            ("CELERITY_THREAD_PINNING", "0, 2,3"),
            ("CELERITY_PEER_TIMEOUT", "3"),
            ("CELERITY_MPI_THREAD_MULTIPLE", "on"),
            ("CELERITY_START_TIMEOUT", "4.5"),
            ("CELERITY_LOG_LEVEL", "off"),
        ]);
        let expected = Config::default()
            .nodes(2)
            .dry_run(77)
            .dry_run_node(5)
            .dry_run_schedule("out/N5.txt")
            .devices(3)
            .device_memory(DeviceMemory::Host)
            .horizon_step(5)
            .horizon_max_parallelism(7)
            .uninitialized_read(UninitializedRead::Warn)
            .collectives(Collectives::Paper)
            .wires(Wires::Ipc)
            .calibration("here/costs.txt")
            .write_graphs("out/graphs.svg")
            .profile_kernels(true)
            .trace("out/trace.json")
            .watchdog(Duration::from_millis(500))
            .platform(Platform::Cpu)
            .share_gpus(true)
            .pinning(Pinning::Cores(vec![0, 2, 3]))
            .peer_timeout(Duration::from_secs(3))
            .mpi_thread_multiple(true)
            .start_timeout(Duration::from_millis(4500))
            .log_level(LogLevel::Off);
        assert_eq!(config, Ok(expected));
    }

    #[test]
    fn a_trace_that_is_off_is_none() {
        for off in ["off", "0", "false"] {
            assert_eq!(parse("CELERITY_TRACE", off), Ok(Config::default()));
        }
    }

    #[test]
    fn pinning_and_levels_may_be_said_as_in_the_original() {
        let pinning = |value| parse("CELERITY_THREAD_PINNING", value).unwrap();
        for (value, means) in [
            ("0", Pinning::Off),
            ("false", Pinning::Off),
            ("1", Pinning::Auto),
            ("true", Pinning::Auto),
            ("0,", Pinning::Cores(vec![0])),
            ("1,", Pinning::Cores(vec![1])),
            ("2", Pinning::Cores(vec![2])),
            ("1,0", Pinning::Cores(vec![1, 0])),
        ] {
            assert_eq!(pinning(value), Config::default().pinning(means), "{value}");
        }
        assert_eq!(parse("CELERITY_LOG_LEVEL", "err"), parse("CELERITY_LOG_LEVEL", "error"));
    }

    #[test]
    fn variables_of_the_original_alone_are_said_to_be_that() {
        for (name, instead) in FOREIGN {
            let message = parse(name, "1").unwrap_err().to_string();
            assert!(message.contains(&format!("unset it{instead}")), "{message}");
        }
    }

    #[test]
    fn bad_values_name_the_variable_and_what_is_valid() {
        for (name, value) in [
            ("CELERITY_NODES", "0"),
            ("CELERITY_DRY_RUN_NODES", "none"),
            ("CELERITY_DRY_RUN_NODE", "-1"),
            ("CELERITY_NODES", "-1"),
            ("CELERITY_DEVICES", "two"),
            ("CELERITY_DEVICES", ""),
            ("CELERITY_DEVICE_MEMORY", "shared"),
            ("CELERITY_HORIZON_STEP", "1.5"),
            ("CELERITY_HORIZON_MAX_PARALLELISM", "99999999999999999999999"),
            ("CELERITY_UNINITIALIZED_READ", "ignore"),
            ("CELERITY_PRINT_GRAPHS", "maybe"),
            ("CELERITY_PRINT_GRAPHS", "graphs.png"),
            ("CELERITY_TRACE", ""),
            ("CELERITY_TRACE", "on"),
            ("CELERITY_WATCHDOG", "-1"),
            ("CELERITY_WATCHDOG", "inf"),
            ("CELERITY_START_TIMEOUT", "0"),
            ("CELERITY_LOG_LEVEL", "loud"),
            ("CELERITY_THREAD_PINNING", ""),
            ("CELERITY_THREAD_PINNING", "0,-1"),
            ("CELERITY_THREAD_PINNING", "from:2"),
            ("CELERITY_THREAD_PINNING", "0,1,0"),
        ] {
            let message = parse(name, value).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(value), "{message}");
            assert!(message.contains("but must be"), "{message}");
        }
    }

    #[test]
    fn unknown_names_get_the_nearest() {
        for (wrong, right) in [
            ("CELERITY_DEVICE", "CELERITY_DEVICES"),
            ("CELERITY_LOGLEVEL", "CELERITY_LOG_LEVEL"),
            ("CELERITY_HORIZON_STEPS", "CELERITY_HORIZON_STEP"),
            ("CELERITY_", "CELERITY_NODES"),
        ] {
            let message = parse(wrong, "1").unwrap_err().to_string();
            assert!(message.contains(wrong) && message.contains(right), "{message}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_path_is_taken_byte_by_byte_and_other_values_are_text() {
        use std::os::unix::ffi::OsStrExt;

        let path = OsStr::from_bytes(b"out/\xff trace.json ");
        let of = |name| Config::from_variables([(name, path)]);
        assert_eq!(of("CELERITY_TRACE"), Ok(Config::default().trace(path)));
        let error = of("CELERITY_NODES").unwrap_err().to_string();
        assert!(error.contains("CELERITY_NODES is \"out/\u{fffd} trace.json\""), "{error}");
        let name = OsStr::from_bytes(b"CELERITY_TRACE\xff");
        let error = Config::from_variables([(name, "x")]).unwrap_err().to_string();
        assert!(error.contains("did you mean CELERITY_TRACE?"), "{error}");
    }

    #[test]
    fn other_variables_are_ignored() {
        assert_eq!(parse("PATH", "/bin"), Ok(Config::default()));
        assert_eq!(parse("celerity_nodes", "0"), Ok(Config::default()));
        for name in OF_BUILDS {
            assert_eq!(parse(name, "off"), Ok(Config::default()));
        }
    }
}
