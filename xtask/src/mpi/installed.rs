//! Which MPIs there are, and how each starts processes.

use std::process::{Command, Stdio};

use super::judge::End;

/// An installed MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mpi {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// For the bindings, as `MPICC`.
    pub(crate) compiler: &'static str,
    pub(super) launcher: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Mpich,
}

/// As Debian names them, side by side; otherwise whichever goes by the plain name.
pub(crate) fn installed() -> Vec<Mpi> {
    let both = [OPEN, MPICH].into_iter().filter(|mpi| version(mpi.launcher).is_some());
    let both: Vec<_> = both.collect();
    if !both.is_empty() {
        return both;
    }
    let plain = version("mpirun").map(|version| {
        let kind = if version.contains("Open MPI") { Kind::Open } else { Kind::Mpich };
        Mpi { name: "mpi", kind, compiler: "mpicc", launcher: "mpirun" }
    });
    plain.into_iter().collect()
}

pub(super) const OPEN: Mpi = Mpi {
    name: "openmpi",
    kind: Kind::Open,
    compiler: "mpicc.openmpi",
    launcher: "mpirun.openmpi",
};

pub(super) const MPICH: Mpi =
    Mpi { name: "mpich", kind: Kind::Mpich, compiler: "mpicc.mpich", launcher: "mpirun.mpich" };

fn version(launcher: &str) -> Option<String> {
    let output = Command::new(launcher).arg("--version").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Mpi {
    /// Starts processes as the options say. Nothing here takes minutes, so whatever does hangs, and
    /// is ended.
    pub(crate) fn launch(&self, options: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "300", self.launcher]);
        if self.kind == Kind::Open {
            command.args(["--allow-run-as-root", "--oversubscribe"]);
        }
        command.args(options);
        command
    }

    /// What people call it.
    pub(crate) fn title(&self) -> &'static str {
        match self.kind {
            Kind::Open => "Open MPI",
            Kind::Mpich => "MPICH",
        }
    }

    /// How large a message between processes of a host may be, in bytes, that leaves before its receiver is ready, if nobody
    /// has changed that; and who says so.
    pub(crate) fn eager(&self) -> (u64, &'static str) {
        match self.kind {
            Kind::Open => (4096, "Open MPI's default for shared memory, btl_vader_eager_limit"),
            Kind::Mpich => (
                69_632,
                "a cell of MPICH's shared memory, MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE",
            ),
        }
    }

    /// How the launcher ends that has got Ctrl-C, and whose processes all exit with an error. That of MPICH
    /// says now and then that all is well.
    pub(super) fn end_of_interrupted(&self) -> End {
        match self.kind {
            Kind::Open => End::Badly,
            Kind::Mpich => End::Somehow,
        }
    }

    /// Three processes, of which those live on that have not died.
    pub(super) fn three_with_survivors(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Open => &["--enable-recovery", "-n", "3"],
            Kind::Mpich => &["-disable-auto-cleanup", "-n", "3", "sh", "-c", KEEP],
        }
    }
}

/// MPICH's launcher sends SIGUSR1 to the survivors, and often ends them after all if it sees that
/// a process has been killed by a signal. So it is shown a shell that exits.
const KEEP: &str = r#"trap '' USR1; "$0" "$@"; exit 1"#;

#[cfg(test)]
mod tests {
    use super::{MPICH, OPEN};

    #[test]
    fn a_launch_is_bounded_and_allowed() {
        let words = |command: std::process::Command| {
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<_>>().join(" ")
        };
        let open = words(OPEN.launch(&["-n", "2"]));
        let expected = "--kill-after=5 300 mpirun.openmpi --allow-run-as-root --oversubscribe -n 2";
        assert_eq!(open, expected);
        assert_eq!(words(MPICH.launch(&["-n", "2"])), "--kill-after=5 300 mpirun.mpich -n 2");
    }
}
