//! Two network namespaces of this machine, joined by a cable that is slower than memory: the
//! nearest thing to two hosts. Owns their life, and how Open MPI gets from one to the other.
//! Refuses to know what runs there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use super::installed::Mpi;

/// The addresses of the two ends. Hosts go by them, too: nobody resolves names here.
const ADDRESSES: [&str; 2] = ["10.219.0.1", "10.219.0.2"];

const NETWORK: &str = "10.219.0.0/30";

/// What each direction of the cable gets, and what is missing where the kernel does not have it.
const SLOWER: [(&str, &[&str]); 2] = [
    ("latency", &["handle", "1:", "netem", "delay", "1ms"]),
    ("bandwidth", &["tbf", "rate", "400mbit", "burst", "256kb", "latency", "50ms"]),
];

/// Becomes a host of its own name in a namespace: `sh -c INSIDE COMMAND...`.
const INSIDE: &str = r#"hostname "$XTASK_HOST" && exec "$0" "$@""#;

/// Two namespaces, which go when this goes.
pub(super) struct Namespaces {
    names: [String; 2],
    /// What Open MPI starts its daemon on the other host with, instead of `ssh`.
    agent: PathBuf,
}

impl Namespaces {
    /// Makes them. The error says why there cannot be any here.
    pub(super) fn make(scratch: &Path) -> Result<Self, String> {
        let names = ["a", "b"].map(|end| format!("celerity-{}-{end}", id()));
        let made = Self { names, agent: scratch.join("agent.sh") };
        made.write_agent().map_err(|error| format!("{}: {error}", made.agent.display()))?;
        made.connect()?;
        Ok(made)
    }

    /// Takes from the cable what would make it better than a real one, and says what cannot be
    /// taken.
    pub(super) fn slow_down(&self) {
        let mut parent: &[&str] = &["root"];
        for (what, how) in SLOWER {
            let both = self.names.iter().zip(["va", "vb"]).try_for_each(|(name, end)| {
                run("tc", &[&["-n", name, "qdisc", "add", "dev", end], parent, how].concat())
            });
            match both {
                Ok(()) => parent = &["parent", "1:1"],
                Err(why) => println!("SKIPPED mpi-{what}: the cable between namespaces: {why}"),
            }
        }
    }

    /// Starts processes by turns on both hosts, which talk TCP.
    pub(super) fn launch(&self, mpi: &Mpi, options: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "300", "ip", "netns", "exec", &self.names[0]]);
        command.args(["unshare", "--uts", "sh", "-c", INSIDE, mpi.launcher]);
        command.args(["--allow-run-as-root", "--map-by", "node"]);
        let hosts = format!("{}:2,{}:2", ADDRESSES[0], ADDRESSES[1]);
        command.args(["--host", &hosts]).arg("--mca").arg("plm_rsh_agent").arg(&self.agent);
        command.args(["--mca", "btl", "tcp,self"]);
        for layer in ["btl_tcp_if_include", "oob_tcp_if_include"] {
            command.args(["--mca", layer, NETWORK]);
        }
        command.args(options).env("XTASK_HOST", ADDRESSES[0]);
        command
    }

    /// Called with a host and a command for it.
    fn write_agent(&self) -> std::io::Result<()> {
        let other = &self.names[1];
        let script = format!(
            r#"#!/bin/sh
export XTASK_HOST="$1"
shift
exec ip netns exec {other} unshare --uts sh -c '{INSIDE}' sh -c "$*"
"#
        );
        fs::write(&self.agent, script)?;
        fs::set_permissions(&self.agent, fs::Permissions::from_mode(0o755))
    }

    fn connect(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        run("unshare", &["--uts", "hostname", ADDRESSES[1]])?;
        run("ip", &["netns", "add", a])?;
        run("ip", &["netns", "add", b])?;
        let cable = ["link", "add", "va", "netns", a, "type", "veth", "peer", "name", "vb"];
        run("ip", &[&cable[..], &["netns", b]].concat())?;
        for ((name, end), address) in self.names.iter().zip(["va", "vb"]).zip(ADDRESSES) {
            let address = format!("{address}/30");
            run("ip", &["-n", name, "addr", "add", &address, "dev", end])?;
            run("ip", &["-n", name, "link", "set", end, "up"])?;
            run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }
}

impl Drop for Namespaces {
    /// The cable goes with them. Those that were never made are not missed.
    fn drop(&mut self) {
        for name in &self.names {
            drop(run("ip", &["netns", "delete", name]));
        }
    }
}

/// Runs a command; the error is what it says about its failure.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run `{program}`: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("no reason is given").trim();
            Err(format!("`{program} {}`: {said}", arguments.join(" ")))
        }
    }
}
