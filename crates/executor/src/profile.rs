//! The trace of a run: what its nodes, schedulers and user threads record, and what
//! becomes of it. Decides nothing; without a trace, nobody calls any of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use celerity_cdag::NodeId;
use celerity_trace::{
    Merged, Recorder, TraceError, TraceFile, TraceTarget, is_complete, merge, part_of,
};

use crate::error::RunError;
use crate::lanes::LaneLayout;
use crate::polling::{PART_BEAT, PART_PATIENCE};
use crate::time::{Clock, real_clock};

mod label;
mod node;
mod stage;
mod tracks;

pub(crate) use label::Label;
pub(crate) use node::NodeProfile;
pub(crate) use stage::StageProfile;

/// The trace of the nodes of this process.
pub(crate) struct Profile {
    path: PathBuf,
    /// The first nodes of all processes whose parts are to be joined, if any are.
    processes: Vec<u64>,
    file: TraceFile,
    clock: Clock,
}

impl Profile {
    /// Begins the trace at `path` of a run that has started at `since`. If the run
    /// has other processes, what is written is a part, unless there is something else than a
    /// file at `path`; `processes` are the first nodes of all of them, and this one's is
    /// `local`.
    pub(crate) fn begin(
        path: &Path,
        since: Instant,
        local: u64,
        processes: Vec<u64>,
    ) -> Result<Self, RunError> {
        let (path, own, processes) = match TraceTarget::of(path) {
            TraceTarget::File(file) if processes.len() > 1 => {
                let part = part_of(&file, local);
                (file, part, processes)
            }
            _ => (path.to_owned(), path.to_owned(), Vec::new()),
        };
        let start =
            SystemTime::now().checked_sub(since.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        let file = TraceFile::create(&own, start);
        let file = file.map_err(|error| RunError::Start { what: error.to_string() })?;
        Ok(Self { path, processes, file, clock: real_clock(since) })
    }

    /// Records what one node executes.
    pub(crate) fn node(&self, node: NodeId, lanes: LaneLayout) -> NodeProfile {
        let recorder = self.recorder(node);
        recorder.name_process(celerity_trace::Text::shown(node));
        NodeProfile::new(node, lanes, self.clock.clone(), recorder)
    }

    /// Records what the scheduler of a node does.
    pub(crate) fn scheduler(&self, node: NodeId) -> StageProfile {
        StageProfile::scheduler(self.clock.clone(), self.recorder(node))
    }

    /// Records what the user threads of a node do.
    pub(crate) fn program(&self, node: NodeId) -> StageProfile {
        StageProfile::program(self.clock.clone(), self.recorder(node))
    }

    /// Ends the trace once all nodes of the process are gone. The process of node 0
    /// joins the parts of all; those that have not been completed by then count as
    /// far as they go. It does not wait for that of a node that is `dead`: the launcher may
    /// be about to end this process, too. Returns what is wrong with the trace.
    pub(crate) fn finish(self, is_root: bool, dead: Option<NodeId>) -> Vec<TraceError> {
        let mut errors: Vec<_> = self.file.finish().err().into_iter().collect();
        if self.processes.len() < 2 || !is_root {
            return errors;
        }
        let parts = self.processes.iter().map(|first| part_of(&self.path, *first));
        let parts: Vec<_> = parts.collect();
        // Processes have as many nodes as each other.
        let nodes_of_each = self.processes[1];
        let dead = dead.map(|node| node.index() / nodes_of_each * nodes_of_each);
        let alive = self.processes.iter().zip(&parts).filter(|(first, _)| Some(**first) != dead);
        let start = Instant::now();
        while start.elapsed() < PART_PATIENCE && !alive.clone().all(|(_, part)| is_complete(part)) {
            std::thread::sleep(PART_BEAT);
        }
        match merge(&self.path, &parts) {
            // A part that is missing is that of a process that has died, of which the
            // run's error tells.
            Ok(Merged { missing: _, left_out }) => errors.extend(left_out),
            Err(error) => errors.push(error),
        }
        errors
    }

    fn recorder(&self, node: NodeId) -> Arc<Recorder> {
        self.file.recorder(u32::try_from(node.index()).expect("node counts are small"))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;

    use super::*;

    /// Nothing replaces a device, and nothing is left beside it.
    #[test]
    fn each_process_writes_to_what_is_no_file() {
        let folder = std::env::temp_dir().join(format!("profile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()), "there is no `mkfifo`");
        // A pipe that is open for both does not wait for either.
        let both = File::options().read(true).write(true).open(&pipe).unwrap();
        let reader = File::open(&pipe).unwrap();
        std::thread::scope(|scope| {
            let read = scope.spawn(|| std::io::read_to_string(reader).unwrap());
            let profile = Profile::begin(&pipe, Instant::now(), 0, vec![0, 1]).unwrap();
            drop(profile.program(NodeId::from_index(0)));
            assert!(profile.finish(true, None).is_empty());
            drop(both);
            assert!(read.join().unwrap().starts_with("[\n{"));
        });
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Node 1 has ended its part, and 2 has died before it could begin one. Nobody waits for it.
    #[test]
    fn parts_that_can_be_used_are_joined_and_others_named() {
        let folder = std::env::temp_dir().join(format!("profile-parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("trace.json");
        let begin = |local| {
            let profile = Profile::begin(&path, Instant::now(), local, vec![0, 1, 2]).unwrap();
            drop(profile.node(NodeId::from_index(local), LaneLayout::new(1)));
            profile
        };
        assert!(begin(1).finish(false, None).is_empty());
        std::fs::write(part_of(&path, 2), "").unwrap();
        let errors = begin(0).finish(true, Some(NodeId::from_index(2)));
        assert!(matches!(&errors[..], [TraceError::NoPart { .. }]), "{errors:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(["\"N0\"", "\"N1\""].iter().all(|name| text.contains(name)), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
