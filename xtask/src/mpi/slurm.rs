//! Slurm for as long as stages need it: its daemons, of a cluster of two nodes that are both this machine. Owns
//! their settings and their life. Refuses to know what runs there.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, id};
use std::thread;
use std::time::{Duration, Instant};

use crate::files::{read, remove, write};

/// The nodes, as Slurm calls them.
const NODES: [&str; 2] = ["a", "b"];

/// How long daemons may take until all nodes are idle.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often they are asked.
const INTERVAL: Duration = Duration::from_millis(100);

/// A cluster of Slurm, which goes when this goes.
pub(super) struct Slurm {
    /// Settings, sockets, state and logs. In the folder for temporary files, since paths of sockets are short.
    folder: PathBuf,
    /// The last one first to be ended.
    daemons: Vec<(String, Child)>,
}

impl Slurm {
    /// Starts the daemons, and waits until they offer two nodes. The error says why there is no Slurm here.
    pub(super) fn start() -> Result<Self, String> {
        if std::env::var_os("SLURM_JOB_ID").is_some() {
            return Err("this is a job of another Slurm".to_owned());
        }
        let folder = std::env::temp_dir().join(format!("celerity-slurm-{}", id()));
        let mut slurm = Self { folder, daemons: Vec::new() };
        slurm.prepare().map_err(|error| error.to_string())?;
        slurm.authenticate()?;
        slurm.daemon("slurmctld", &["-D", "-i"])?;
        for node in NODES {
            slurm.daemon("slurmd", &["-D", "-N", node])?;
        }
        slurm.wait("the nodes are idle", Self::is_idle)?;
        Ok(slurm)
    }

    /// Runs a launcher, such as `srun`, with its options. What takes longer than any stage hangs, and is ended.
    pub(super) fn launch(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "300"]).args(words).env("SLURM_CONF", self.settings());
        command
    }

    fn settings(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn prepare(&self) -> Result<(), Box<dyn std::error::Error>> {
        remove(&self.folder)?;
        for folder in ["state", "a", "b"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        allow(&self.folder, 0o755)?;
        let [controller, a, b] = free_ports()?;
        let (host, user) = (said("hostname", &["-s"])?, said("id", &["-un"])?);
        write(&self.settings(), &settings(&self.folder, &host, &user, [controller, a, b]))?;
        // It protects nothing, but must not be short.
        let key = self.folder.join("key");
        write(&key, &format!("celerity-{:064}", id()))?;
        Ok(allow(&key, 0o600)?)
    }

    /// Who talks to whom, Slurm's daemons learn of Munge: of one of its own here.
    fn authenticate(&mut self) -> Result<(), String> {
        let files = ["key-file", "socket", "pid-file", "log-file", "seed-file"];
        let options = files.map(|option| {
            let name = option.strip_suffix("-file").unwrap_or(option);
            format!("--{option}={}", self.path(name))
        });
        let mut options: Vec<_> = options.iter().map(String::as_str).collect();
        options.extend(["--foreground", "--force"]);
        self.daemon("munged", &options)?;
        self.wait("munged answers", |slurm| {
            succeeds(Command::new("munge").args(["--no-input", "--socket", &slurm.path("socket")]))
        })
    }

    fn daemon(&mut self, program: &str, options: &[&str]) -> Result<(), String> {
        let name = format!("{program}-{}", self.daemons.len());
        let cannot = |error: io::Error| format!("cannot start `{program}`: {error}");
        let log = File::create(self.folder.join(&name)).map_err(cannot)?;
        let mut command = Command::new(program);
        command.args(options).env("SLURM_CONF", self.settings()).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(cannot)?).stderr(log);
        self.daemons.push((name, command.spawn().map_err(cannot)?));
        Ok(())
    }

    /// Asks until it is so. None of the daemons tells anybody when it is ready.
    fn wait(&mut self, what: &str, is_so: fn(&Self) -> bool) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            for (name, daemon) in &mut self.daemons {
                if let Ok(Some(status)) = daemon.try_wait() {
                    let log = read(&self.folder.join(&*name)).unwrap_or_default();
                    let last = log.lines().next_back().unwrap_or("it has said nothing");
                    return Err(format!("{name} has ended with {status}: {last}"));
                }
            }
            if Instant::now() > until {
                return Err(format!("not after {} s: {what}", PATIENCE.as_secs()));
            }
            thread::sleep(INTERVAL);
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let mut sinfo = Command::new("sinfo");
        sinfo.args(["--noheader", "--states=idle", "--format=%D"]);
        sinfo.env("SLURM_CONF", self.settings()).stderr(Stdio::null());
        let count =
            sinfo.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        count.is_ok_and(|count| count.trim() == NODES.len().to_string())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for (_, daemon) in self.daemons.iter_mut().rev() {
            // One that has ended by itself is not missed.
            let _ = daemon.kill().and_then(|()| daemon.wait());
        }
        let _ = remove(&self.folder);
    }
}

/// What the daemons are told. Without control groups and accounts, which a test has no right to.
fn settings(folder: &Path, host: &str, user: &str, ports: [u16; 3]) -> String {
    let (folder, [controller, ports @ ..]) = (folder.display(), ports);
    let mut text = format!(
        "ClusterName=celerity
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
MpiDefault=none
"
    );
    for (node, port) in NODES.iter().zip(ports) {
        text +=
            &format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n");
    }
    text + "PartitionName=main Nodes=ALL Default=YES State=UP\n"
}

/// Ports that nobody listens on.
fn free_ports() -> io::Result<[u16; 3]> {
    let listener = || TcpListener::bind(("127.0.0.1", 0));
    // All three at once, so that no two are the same.
    let listeners = [listener()?, listener()?, listener()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn allow(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{free_ports, settings};

    #[test]
    fn each_node_has_a_port_and_all_files_lie_in_one_folder() {
        let text = settings(Path::new("/folder"), "host", "me", [1, 2, 3]);
        assert!(text.contains("SlurmctldHost=host(127.0.0.1)\nSlurmctldPort=1\nSlurmUser=me\n"));
        for line in ["NodeName=a NodeHostname=host NodeAddr=127.0.0.1 Port=2", "NodeName=b "] {
            assert!(text.contains(line), "{text}");
        }
        let of_slurm = |line: &&str| line.contains('/') && !line.contains("/folder/");
        let known = ["AuthType", "ProctrackType", "TaskPlugin", "SelectType", "MailProg"];
        for line in text.lines().filter(of_slurm) {
            assert!(known.iter().any(|name| line.starts_with(name)), "{line}");
        }
    }

    #[test]
    fn ports_are_different() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c && a > 0);
    }
}
