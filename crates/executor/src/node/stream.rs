//! Whether all nodes run the same program: each node tells its neighbour in a
//! ring hashes of the tasks that it has been given, of what users' range mappers
//! say of them, and of what buffers are created from, and compares what it is told with its
//! own. Knows neither graphs nor networks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_cpd::Collectives;
use celerity_tdag::{
    BufferInfo, EpochAction, ObjectId, SourceLocation, StreamHash, Task, TaskId, Work,
};

use super::contents::{Claim, Contents, NOTE_BUFFERS};
use crate::config::ClusterConfig;
use crate::error::RunError;

/// So many tasks are remembered, to be named when another node differs: more
/// than the run-ahead of a node covers in ordinary programs.
const REMEMBERED: usize = 4096;

/// Hashes in one note, at most.
const NOTE_HASHES: usize = 64;

/// Characters of a task's name that fit a note whatever they are.
const LONGEST_NAME: usize = 200;

/// Hashes of tasks that this node has not got to yet, at most; later ones are
/// forgotten, as a difference shows in all hashes behind it, too.
const MOST_EARLY: usize = 1024;

/// One node's record of the task stream.
///
/// Detection: every node sends its hashes to the next node, so that all agree if
/// each pair does. A node notes its hashes at the latest when its program comes
/// to a point where it may wait: horizons, epochs, fences and host tasks. Of two
/// programs that differ, one goes on to its end or to such a point, and somewhere
/// in the ring it is noted to a node that differs. That node *disputes* the first
/// task with another hash: it sends its own name for it back, and the two names
/// make the error.
///
/// What buffers are created from is not part of these hashes, as nodes may look at more or less of
/// it: that is told beside them, and compared if both sides have looked.
///
/// Cost: one hash per task, a note of up to 521 bytes per horizon, and one of up to 961 if buffers
/// have been created with contents. With one node there is none.
pub(super) struct TaskStream {
    local: NodeId,
    nodes: usize,
    hash: StreamHash,
    /// The newest tasks, from `first` on.
    known: VecDeque<Known>,
    first: u64,
    /// From here on, hashes have not been noted to the neighbour.
    unnoted: u64,
    /// Hashes of tasks that this node has not got to.
    early: BTreeMap<u64, (NodeId, u64)>,
    contents: Contents,
    disputed: bool,
    settings: StreamSettings,
}

/// What of a configuration decides which tasks the runtime adds to those of a program, and which operations it finds in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamSettings([u64; 3]);

/// The names of these settings.
const SETTINGS: [&str; 3] = ["horizon_step", "horizon_max_parallelism", "collectives"];

impl StreamSettings {
    pub(super) fn of(config: &ClusterConfig) -> Self {
        let place = COLLECTIVES.iter().position(|mode| *mode == config.collectives);
        let collectives = place.unwrap_or(COLLECTIVES.len()) as u64;
        Self([config.horizon_step, config.horizon_max_parallelism, collectives])
    }

    /// The first setting that differs: its name, and both values.
    fn difference(self, other: Self) -> Option<(&'static str, [String; 2])> {
        let nth = (0..SETTINGS.len()).find(|&nth| self.0[nth] != other.0[nth])?;
        let text = |value: u64| match (SETTINGS[nth], usize::try_from(value)) {
            ("collectives", Ok(place)) if place < COLLECTIVES.len() => {
                COLLECTIVES[place].to_string()
            }
            _ => value.to_string(),
        };
        Some((SETTINGS[nth], [self.0[nth], other.0[nth]].map(text)))
    }
}

/// The settings of what is looked for, which are told by their places here.
const COLLECTIVES: [Collectives; 4] =
    [Collectives::Off, Collectives::Paper, Collectives::Auto, Collectives::Always];

struct Known {
    /// Of all tasks up to this one.
    tasks: u64,
    /// The same, and of what range mappers have said of them.
    hash: u64,
    name: Arc<str>,
    location: Option<SourceLocation>,
}

/// A short message from one node's stream to another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) to: NodeId,
    pub(super) note: Vec<u8>,
}

impl TaskStream {
    pub(super) fn new(local: NodeId, nodes: usize) -> Self {
        Self {
            local,
            nodes,
            hash: StreamHash::default(),
            known: VecDeque::new(),
            first: 0,
            unnoted: 0,
            early: BTreeMap::new(),
            contents: Contents::default(),
            disputed: false,
            settings: StreamSettings::of(&ClusterConfig::default()),
        }
    }

    /// What other nodes' settings are compared with, where their tasks differ.
    pub(super) fn set_settings(&mut self, settings: StreamSettings) {
        self.settings = settings;
    }

    /// Adds the next buffer, and appends what other nodes have to be told of it at once. `contents`
    /// is a hash of what it starts with, if that is to be compared.
    pub(super) fn buffer(
        &mut self,
        (info, element_type): (&BufferInfo, &str),
        contents: Option<u64>,
        out: &mut Vec<Outgoing>,
    ) {
        if self.nodes == 1 {
            return;
        }
        self.hash.buffer(info);
        self.hash.element_type(element_type);
        self.contents.created(info, self.hash.value(), contents);
        if self.contents.unnoted() >= NOTE_BUFFERS {
            self.tell_contents(out);
        }
    }

    /// Adds the next host object.
    pub(super) fn object(&mut self, object: ObjectId) {
        self.hash.object(object);
    }

    /// After a task: compares what was said early of the buffers before it.
    ///
    /// # Errors
    /// If one of them starts with something else on another node.
    pub(super) fn compare_contents(&mut self) -> Result<(), RunError> {
        self.contents.settle().map_err(|difference| difference.on(self.local))
    }

    /// A buffer has got a new name.
    pub(super) fn renamed(&mut self, info: &BufferInfo) {
        self.contents.renamed(info);
    }

    fn tell_contents(&mut self, out: &mut Vec<Outgoing>) {
        for claims in self.contents.take_unnoted() {
            out.push(Outgoing { to: self.neighbour(), note: Note::Contents(claims).encode() });
        }
    }

    /// Adds the next task, and appends what it makes other nodes want to know. `answers` is a
    /// hash of what range mappers have said up to here.
    pub(super) fn task(&mut self, task: &Task, answers: u64, out: &mut Vec<Outgoing>) {
        if self.nodes == 1 {
            return;
        }
        self.hash.task(task);
        let tasks = self.hash.value();
        let (name, location) = (name_of(task), task.location.clone());
        let hash = tasks ^ answers.rotate_left(32);
        self.known.push_back(Known { tasks, hash, name, location });
        if self.known.len() > REMEMBERED {
            self.known.pop_front();
            self.first += 1;
        }
        let may_wait = !matches!(task.work, Work::Device(_));
        if may_wait || self.next() - self.unnoted >= NOTE_HASHES as u64 {
            self.tell_contents(out);
            let note = Note::Hashes { first: self.unnoted, hashes: self.hashes(self.unnoted) };
            out.push(Outgoing { to: self.neighbour(), note: note.encode() });
            self.unnoted = self.next();
        }
        self.look_at_early(out);
    }

    /// Takes a note of another node.
    ///
    /// # Errors
    /// If the two run different programs, or if the note makes no sense.
    pub(super) fn noted(
        &mut self,
        from: NodeId,
        note: &[u8],
        out: &mut Vec<Outgoing>,
    ) -> Result<(), Objection> {
        match Note::decode(note).ok_or(Objection::Malformed)? {
            Note::Hashes { first, hashes } => {
                for (task, hash) in (first..).zip(hashes) {
                    self.compare(from, task, hash, out);
                }
                Ok(())
            }
            Note::Contents(claims) => {
                let mut claims = claims.into_iter();
                let compared = claims.try_for_each(|claim| self.contents.compare(from, claim));
                compared.map_err(|difference| Objection::Diverged(difference.on(self.local)))
            }
            Note::Dispute { task, tasks, settings, name } => {
                let differs = self.settings_differ(from, settings);
                let error = differs.unwrap_or_else(|| self.diverged(from, task, tasks, name));
                Err(Objection::Diverged(error))
            }
        }
    }

    fn compare(&mut self, from: NodeId, task: u64, hash: u64, out: &mut Vec<Outgoing>) {
        if task >= self.next() {
            if self.early.len() < MOST_EARLY {
                self.early.insert(task, (from, hash));
            }
            return;
        }
        let differing = self.get(task).filter(|known| known.hash != hash);
        if let Some(&Known { tasks, .. }) = differing
            && !std::mem::replace(&mut self.disputed, true)
        {
            let name = self.name(task).chars().take(LONGEST_NAME).collect();
            let note = Note::Dispute { task, tasks, settings: self.settings, name };
            out.push(Outgoing { to: from, note: note.encode() });
        }
    }

    fn look_at_early(&mut self, out: &mut Vec<Outgoing>) {
        let next = self.next();
        while let Some(entry) = self.early.first_entry()
            && *entry.key() < next
        {
            let (task, (from, hash)) = entry.remove_entry();
            self.compare(from, task, hash, out);
        }
    }

    /// Another node, whose tasks are others, has these settings.
    fn settings_differ(&self, other: NodeId, settings: StreamSettings) -> Option<RunError> {
        let (setting, [value, other_value]) = self.settings.difference(settings)?;
        let (setting, node) = (setting.to_owned(), self.local);
        Some(RunError::SettingsDiffer { setting, node, value, other, other_value })
    }

    /// Another node disputes a task, which comes after tasks of this hash and has this name
    /// there.
    fn diverged(&self, other: NodeId, task: u64, tasks: u64, other_task: String) -> RunError {
        let (node, name) = (self.local, self.name(task));
        match self.get(task) {
            Some(known) if known.tasks == tasks => {
                RunError::MapperDiffers { task: name, node, other }
            }
            _ => RunError::Diverged { node, task: name, other, other_task },
        }
    }

    /// The next node in the ring.
    fn neighbour(&self) -> NodeId {
        NodeId::from_index((self.local.index() + 1) % self.nodes as u64)
    }

    fn next(&self) -> u64 {
        self.first + self.known.len() as u64
    }

    fn get(&self, task: u64) -> Option<&Known> {
        self.known.get(usize::try_from(task.checked_sub(self.first)?).ok()?)
    }

    fn hashes(&self, from: u64) -> Vec<u64> {
        (from..self.next()).filter_map(|task| self.get(task)).map(|known| known.hash).collect()
    }

    /// The same of one that the node remembers.
    pub(super) fn known_name(&self, task: TaskId) -> Option<String> {
        self.get(task.index()).map(|_| self.name(task.index()))
    }

    /// As tasks print: `T3 "step" at main.rs:4`.
    fn name(&self, task: u64) -> String {
        let id = TaskId::from_index(task);
        match self.get(task) {
            Some(Known { name, location: Some(location), .. }) => {
                format!("{id} \"{name}\" at {location}")
            }
            Some(Known { name, .. }) => format!("{id} \"{name}\""),
            None => format!("{id}, long ago"),
        }
    }
}

/// What the user knows a task by: all epochs have one name, and are different things to do.
fn name_of(task: &Task) -> Arc<str> {
    match task.work {
        Work::Epoch(EpochAction::Barrier) => "barrier".into(),
        Work::Epoch(EpochAction::Shutdown) => "end of the program".into(),
        _ => task.name.clone(),
    }
}

/// Why a note ends the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Objection {
    /// It is no note.
    Malformed,
    /// The nodes run different programs.
    Diverged(RunError),
}

/// What streams tell each other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Note {
    /// The hashes of tasks from `first` on.
    Hashes { first: u64, hashes: Vec<u64> },
    /// The first task whose hash is another one here; the hash of tasks alone up to it, and what
    /// it is here.
    Dispute { task: u64, tasks: u64, settings: StreamSettings, name: String },
    /// What buffers are created from.
    Contents(Vec<Claim>),
}

const HASHES: u8 = 0;
const DISPUTE: u8 = 1;
// 2 is a note of `credit`.
const CONTENTS: u8 = 3;

impl Note {
    /// A byte for the kind, a task as eight little-endian bytes, then hashes of
    /// eight bytes each, or text; of buffers, three times eight bytes each.
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hashes { first, hashes } => {
                let words = std::iter::once(first).chain(hashes);
                std::iter::once(HASHES).chain(words.flat_map(|word| word.to_le_bytes())).collect()
            }
            Self::Dispute { task, tasks, settings, name } => {
                let words = [*task, *tasks].into_iter().chain(settings.0);
                let words = words.flat_map(|word| word.to_le_bytes());
                std::iter::once(DISPUTE).chain(words).chain(name.bytes()).collect()
            }
            Self::Contents(claims) => {
                let words = |claim: &Claim| [claim.buffer, claim.program, claim.contents];
                let bytes = claims.iter().flat_map(words).flat_map(u64::to_le_bytes);
                std::iter::once(CONTENTS).chain(bytes).collect()
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if *kind == CONTENTS {
            let (words, tail) = rest.as_chunks().0.as_chunks();
            let claims = words.iter().map(|words: &[[u8; 8]; 3]| {
                let [buffer, program, contents] = words.map(u64::from_le_bytes);
                Claim { buffer, program, contents }
            });
            let whole = tail.is_empty() && rest.len().is_multiple_of(24);
            return whole.then(|| Self::Contents(claims.collect()));
        }
        let (task, rest) = rest.split_first_chunk()?;
        let task = u64::from_le_bytes(*task);
        match *kind {
            HASHES => {
                let (words, tail) = rest.as_chunks();
                let hashes: Vec<_> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                let fits = tail.is_empty() && task.checked_add(hashes.len() as u64).is_some();
                fits.then_some(Self::Hashes { first: task, hashes })
            }
            DISPUTE => {
                let (words, name) = rest.split_at_checked(8 * (1 + SETTINGS.len()))?;
                let mut words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                let tasks = words.next()?;
                let settings = StreamSettings([words.next()?, words.next()?, words.next()?]);
                let name = String::from_utf8(name.to_vec()).ok()?;
                Some(Self::Dispute { task, tasks, settings, name })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use celerity_regions::Box3;
    use celerity_tdag::{Conflicts, Dependencies, EpochAction, IndexSpace};

    use super::*;

    fn task(index: u64, name: &str, work: Work) -> Task {
        Task {
            id: TaskId::from_index(index),
            name: name.into(),
            work,
            accesses: Box::default(),
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
            location: None,
            forward: None,
        }
    }

    fn kernel(index: u64, name: &str, items: usize) -> Task {
        task(index, name, Work::Device(IndexSpace::new(1, Box3::from_range([items]))))
    }

    fn node(index: u64) -> NodeId {
        NodeId::from_index(index)
    }

    /// Delivers everything between the streams until nobody says anything more.
    fn settle(streams: &mut [TaskStream], mut out: Vec<(NodeId, Outgoing)>) -> Vec<RunError> {
        let mut errors = Vec::new();
        while let Some((from, Outgoing { to, note })) = out.pop() {
            let mut answers = Vec::new();
            match streams[to.slot()].noted(from, &note, &mut answers) {
                Ok(()) => {}
                Err(Objection::Diverged(error)) => errors.push(error),
                Err(Objection::Malformed) => panic!("{note:?}"),
            }
            out.extend(answers.into_iter().map(|answer| (to, answer)));
        }
        errors
    }

    fn run(programs: &[Vec<Task>]) -> Vec<RunError> {
        let count = programs.len();
        let streams = (0..count as u64).map(|index| TaskStream::new(node(index), count));
        let mut streams: Vec<_> = streams.collect();
        let mut said = Vec::new();
        for (stream, program) in streams.iter_mut().zip(programs) {
            let mut out = Vec::new();
            program.iter().for_each(|task| stream.task(task, 0, &mut out));
            said.extend(out.into_iter().map(|one| (stream.local, one)));
        }
        settle(&mut streams, said)
    }

    fn shutdown(index: u64) -> Task {
        task(index, "shutdown", Work::Epoch(EpochAction::Shutdown))
    }

    #[test]
    fn equal_programs_say_nothing() {
        let program = || vec![kernel(0, "a", 4), kernel(1, "b", 5), shutdown(2)];
        assert_eq!(run(&[program(), program(), program()]), []);
    }

    #[test]
    fn the_first_difference_is_named_on_both_sides() {
        let one = vec![kernel(0, "a", 4), kernel(1, "b", 5), kernel(2, "c", 5), shutdown(3)];
        let other = vec![kernel(0, "a", 4), kernel(1, "x", 6), kernel(2, "c", 5), shutdown(3)];
        let errors = run(&[one, other]);
        assert!(!errors.is_empty());
        for error in errors {
            let text = error.to_string();
            assert!(text.contains("T1 \"b\"") && text.contains("T1 \"x\""), "{text}");
        }
    }

    #[test]
    fn settings_that_make_other_tasks_are_named() {
        let cases = [
            (
                ClusterConfig { horizon_step: 9, ..ClusterConfig::default() },
                "`horizon_step` is 9 on N1",
            ),
            (
                ClusterConfig { collectives: Collectives::Off, ..ClusterConfig::default() },
                "`collectives` is off on N1, but auto on N0",
            ),
        ];
        for (config, expected) in cases {
            let mut streams = [0, 1].map(|index| TaskStream::new(node(index), 2));
            streams[1].set_settings(StreamSettings::of(&config));
            let mut out = Vec::new();
            // One has a horizon where the other has its second task.
            let horizon = task(1, "horizon", Work::Horizon);
            let programs =
                [vec![kernel(0, "a", 4), kernel(1, "b", 4)], vec![kernel(0, "a", 4), horizon]];
            for (stream, program) in streams.iter_mut().zip(&programs) {
                let mut said = Vec::new();
                program.iter().for_each(|task| stream.task(task, 0, &mut said));
                stream.task(&shutdown(2), 0, &mut said);
                out.extend(said.into_iter().map(|one| (stream.local, one)));
            }
            let errors = settle(&mut streams, out);
            assert!(!errors.is_empty());
            let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(expected)), "{texts:?}");
        }
    }

    #[test]
    fn an_object_that_one_node_has_not_created_is_found_at_the_next_task() {
        for odd in 0..3 {
            let mut streams = [0, 1, 2].map(|index| TaskStream::new(node(index), 3));
            let mut said = Vec::new();
            for (at, stream) in streams.iter_mut().enumerate() {
                let mut out = Vec::new();
                stream.object(ObjectId::from_index(0));
                if at != odd {
                    stream.object(ObjectId::from_index(1));
                }
                stream.task(&kernel(0, "a", 4), 0, &mut out);
                stream.task(&shutdown(1), 0, &mut out);
                said.extend(out.into_iter().map(|one| (stream.local, one)));
            }
            let errors = settle(&mut streams, said);
            assert!(!errors.is_empty());
            for error in errors {
                let text = error.to_string();
                assert!(text.contains("T0 \"a\"") && text.contains("host objects"), "{text}");
                assert!(text.contains(&format!("N{odd}")), "{text}");
            }
        }
    }

    #[test]
    fn equal_tasks_about_which_mappers_differ_are_told_from_different_tasks() {
        for nodes in 2..=4 {
            for liar in 0..nodes {
                let streams = (0..nodes as u64).map(|index| TaskStream::new(node(index), nodes));
                let (mut streams, mut said): (Vec<_>, _) = (streams.collect(), Vec::new());
                for (at, stream) in streams.iter_mut().enumerate() {
                    let mut out = Vec::new();
                    stream.task(&kernel(0, "a", 4), 7, &mut out);
                    stream.task(&kernel(1, "b", 4), if at == liar { 8 } else { 9 }, &mut out);
                    stream.task(&shutdown(2), 9, &mut out);
                    said.extend(out.into_iter().map(|one| (stream.local, one)));
                }
                let errors = settle(&mut streams, said);
                assert!(!errors.is_empty());
                for error in errors {
                    let RunError::MapperDiffers { task, node, other } = &error else {
                        panic!("{error}")
                    };
                    assert_eq!(task, "T1 \"b\"");
                    assert!([node, other].iter().any(|one| one.slot() == liar), "{error}");
                }
            }
        }
    }

    fn buffer(index: u64, elements: usize) -> BufferInfo {
        BufferInfo {
            id: celerity_tdag::BufferId::from_index(index),
            name: format!("b{index}").into(),
            dims: 1,
            extent: Box3::from_range([elements]),
            elem_size: 8,
            elem_align: 8,
            host_initialized: true,
        }
    }

    /// What comes of buffers whose contents have these hashes, on each node.
    fn create(programs: &[Vec<Option<u64>>]) -> Vec<RunError> {
        let count = programs.len();
        let streams = (0..count as u64).map(|index| TaskStream::new(node(index), count));
        let (mut streams, mut said): (Vec<_>, _) = (streams.collect(), Vec::new());
        for (stream, program) in streams.iter_mut().zip(programs) {
            let mut out = Vec::new();
            for (index, contents) in (0..).zip(program) {
                stream.buffer((&buffer(index, 8), ""), *contents, &mut out);
            }
            stream.task(&shutdown(0), 0, &mut out);
            stream.compare_contents().unwrap();
            said.extend(out.into_iter().map(|one| (stream.local, one)));
        }
        settle(&mut streams, said)
    }

    #[test]
    fn a_buffer_that_starts_with_something_else_is_named_with_both_nodes() {
        for nodes in 2..=4 {
            for odd in 0..nodes {
                for at in [0, 50, 99] {
                    let contents = |node: usize| {
                        let hash = move |index| u64::from(node == odd && index == at);
                        (0..100).map(move |index| Some(hash(index))).collect()
                    };
                    let errors = create(&(0..nodes).map(contents).collect::<Vec<_>>());
                    assert!(!errors.is_empty());
                    for error in errors {
                        let RunError::ContentsDiffer { buffer, node, other } = &error else {
                            panic!("{error}")
                        };
                        assert_eq!(*buffer, format!("\"b{at}\""));
                        assert!([node, other].iter().any(|one| one.slot() == odd), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn contents_that_only_some_have_looked_at_are_not_compared() {
        assert_eq!(create(&[vec![Some(1), None], vec![None, Some(2)], vec![Some(1), None]]), []);
        assert_eq!(create(&[vec![Some(1); 3], vec![Some(1); 3]]), []);
    }

    #[test]
    fn what_is_said_of_a_buffer_that_is_not_there_yet_waits_for_it() {
        let claim = |streams: &mut [TaskStream; 2], contents| {
            let mut out = Vec::new();
            streams[0].buffer((&buffer(0, 8), ""), Some(contents), &mut out);
            streams[0].task(&shutdown(0), 0, &mut out);
            let note = &out[0].note;
            assert_eq!(streams[1].noted(node(0), note, &mut Vec::new()), Ok(()));
        };
        let streams = || [0, 1].map(|index| TaskStream::new(node(index), 2));
        for (contents, elements, differs) in [(1, 8, false), (2, 8, true), (2, 9, false)] {
            let mut streams = streams();
            claim(&mut streams, contents);
            let mut new = buffer(0, elements);
            streams[1].buffer((&new, ""), Some(1), &mut Vec::new());
            new.name = "u".into();
            streams[1].renamed(&new);
            streams[1].task(&shutdown(0), 0, &mut Vec::new());
            let compared = streams[1].compare_contents();
            assert_eq!(compared.is_err(), differs, "another program is not this error");
            let named = |error: &RunError| error.to_string().contains("buffer \"u\" starts with");
            assert!(compared.err().is_none_or(|error| named(&error)));
        }
    }

    #[test]
    fn one_that_waits_alone_is_found_by_those_that_go_on() {
        let fence = task(1, "fence", Work::Fence);
        let waiting = vec![kernel(0, "a", 4), fence];
        let going_on = || vec![kernel(0, "a", 4), kernel(1, "b", 4), shutdown(2)];
        for place in 0..3 {
            let mut programs = vec![going_on(), going_on(), going_on()];
            programs[place] = waiting.clone();
            assert!(!run(&programs).is_empty(), "N{place} waits");
        }
    }

    #[test]
    fn notes_survive_the_wire_and_nothing_else_does() {
        let notes = [
            Note::Hashes { first: 7, hashes: vec![1, u64::MAX] },
            Note::Dispute {
                task: 3,
                tasks: 5,
                settings: StreamSettings([4, u64::MAX, 2]),
                name: "T3 \"é\"".to_owned(),
            },
            Note::Contents(vec![Claim { buffer: 7, program: 8, contents: u64::MAX }; NOTE_BUFFERS]),
        ];
        for note in notes {
            assert!(note.encode().len() <= crate::communicator::NOTE_LEN);
            assert_eq!(Note::decode(&note.encode()), Some(note));
        }
        let too_far = [&[HASHES][..], &u64::MAX.to_le_bytes(), &[0; 8]].concat();
        let no_text = [&[DISPUTE][..], &[0; 40], &[0xff]].concat();
        let no_settings = [&[DISPUTE][..], &[0; 39]].concat();
        for bytes in
            [&[][..], &[0; 5], &[2; 9], &[0; 13], &[CONTENTS; 12], &too_far, &no_text, &no_settings]
        {
            assert_eq!(Note::decode(bytes), None, "{bytes:?}");
        }
    }
}
