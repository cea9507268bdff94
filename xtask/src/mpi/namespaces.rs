//! Two network namespaces of this machine, joined by a cable that is slower than memory: the
//! nearest thing to two hosts. Owns their life, and how Open MPI gets from one to the other.
//! Refuses to know what runs there.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use super::cable::{self, INTERFACE, Proof};
use super::installed::Mpi;

/// The addresses of the two ends. Hosts go by them, too: nobody resolves names here.
const ADDRESSES: [&str; 2] = ["10.219.0.1", "10.219.0.2"];

const NETWORK: &str = "10.219.0.0/30";

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

    /// Measures what joins them.
    ///
    /// # Errors
    /// If nothing gets through.
    pub(super) fn prove_cable(&self) -> io::Result<Proof> {
        Proof::of(&self.names, ADDRESSES[1])
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
    fn write_agent(&self) -> io::Result<()> {
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
        cable::join(&self.names)
            .map_err(|error| format!("an interface in a namespace: {error}"))?;
        for (name, address) in self.names.iter().zip(ADDRESSES) {
            let address = format!("{address}/30");
            run("ip", &["-n", name, "addr", "add", &address, "dev", INTERFACE])?;
            run("ip", &["-n", name, "link", "set", INTERFACE, "up"])?;
            run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }
}

impl Drop for Namespaces {
    /// What was never made is not missed.
    fn drop(&mut self) {
        for name in &self.names {
            drop(run("ip", &["-n", name, "link", "delete", INTERFACE]));
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
