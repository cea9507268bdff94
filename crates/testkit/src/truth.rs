//! What sequential execution would see: the producer of every element before
//! every statement.

use celerity_tdag::BufferId;

use crate::element;
use crate::footprint::{ElementFootprint, footprints};
use crate::program::{BufferSpec, Op, Program, TaskOp, buffer_slot};
use crate::violation::Provenance;

/// The meaning of a program, ready to be compared with.
#[derive(Clone, Debug)]
pub struct Truth<'a> {
    program: &'a Program,
    buffers: Vec<BufferSpec>,
    footprints: Vec<Option<ElementFootprint>>,
    /// By statement, buffer and slot: before the statement.
    versions: Vec<Vec<Vec<Provenance>>>,
}

impl<'a> Truth<'a> {
    /// Interprets a program. O(statements · elements).
    #[must_use]
    pub fn of(program: &'a Program) -> Self {
        let (buffers, footprints) = (program.buffers(), footprints(program));
        let mut now: Vec<Vec<Provenance>> = buffers.iter().map(initial_versions).collect();
        let mut versions = Vec::new();
        for (index, (op, footprint)) in program.ops.iter().zip(&footprints).enumerate() {
            versions.push(now.clone());
            if let (Op::Task(task), Some(footprint)) = (op, footprint) {
                overwrite(&mut now, index, task, footprint);
            }
        }
        Self { program, buffers, footprints, versions }
    }

    /// Number of buffers that the program ever creates.
    #[must_use]
    pub fn buffers(&self) -> &[BufferSpec] {
        &self.buffers
    }

    /// A buffer's description.
    #[must_use]
    pub fn buffer(&self, buffer: BufferId) -> &BufferSpec {
        &self.buffers[buffer_slot(buffer)]
    }

    /// The task at statement `op`, and what it touches.
    ///
    /// # Panics
    /// If the statement is no task.
    #[must_use]
    pub fn task(&self, op: usize) -> (&TaskOp, &ElementFootprint) {
        match (&self.program.ops[op], &self.footprints[op]) {
            (Op::Task(task), Some(footprint)) => (task, footprint),
            (other, _) => panic!("statement {op} is {other}, not a task"),
        }
    }

    /// The statements that are tasks with at least one item.
    pub fn tasks(&self) -> impl Iterator<Item = (usize, &TaskOp, &ElementFootprint)> {
        let ops = (0..self.program.ops.len())
            .filter(|&op| matches!(&self.program.ops[op], Op::Task(task) if !task.is_void()));
        ops.map(|op| {
            let (task, footprint) = self.task(op);
            (op, task, footprint)
        })
    }

    /// Who produced an element's contents, as seen by statement `op`.
    #[must_use]
    pub fn before(&self, op: usize, buffer: BufferId, slot: usize) -> Provenance {
        self.versions[op][buffer_slot(buffer)][slot]
    }

    /// The versions of all buffers' elements before the program starts.
    #[must_use]
    pub fn at_start(&self) -> Vec<Vec<Provenance>> {
        self.buffers.iter().map(initial_versions).collect()
    }

    /// `B0[1, 2, 0]`.
    #[must_use]
    pub fn place(&self, buffer: BufferId, slot: usize) -> String {
        format!("{buffer}{:?}", element::point(&self.buffer(buffer).extent, slot))
    }
}

fn initial_versions(spec: &BufferSpec) -> Vec<Provenance> {
    let version = if spec.host_initialized { Provenance::Initial } else { Provenance::Undefined };
    vec![version; element::volume(&spec.extent)]
}

fn overwrite(now: &mut [Vec<Provenance>], op: usize, task: &TaskOp, footprint: &ElementFootprint) {
    for (nth, access) in task.accesses.iter().enumerate().filter(|(_, a)| a.mode.writes()) {
        for slot in footprint.whole(nth) {
            now[buffer_slot(access.buffer)][slot] = Provenance::Op(op);
        }
    }
}
