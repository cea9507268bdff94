//! One step of wave_sim from the tuple to the wire: as text, and as pictures of the three graphs.

use std::fmt::Write as _;

use celerity_cdag::NodeId;
use celerity_idag::wire;
use celerity_tdag::{Access, AccessMode, Mapper, NeighborhoodShape, TaskSpec};
use celerity_views::{CommandLabel, Dag, InstructionLabel, Section};

use crate::cluster::{Cluster, Scheduled, pilots};

/// Cells along each side.
const SIZE: usize = 16;

/// The node that is followed.
const HERE: usize = 0;

/// The program: two steps of `wave_sim` on two nodes with two devices each. With how its last step is
/// declared.
fn wave_sim() -> (TaskSpec, Scheduled) {
    let range = [SIZE, SIZE];
    let mut cluster = Cluster::new(2);
    let (u, up) = (cluster.buffer("u", range).id, cluster.buffer("up", range).id);
    let star = || Mapper::neighborhood_shaped([1, 1], NeighborhoodShape::AlongAxes);
    let write = |buffer| Access::buffer(buffer, AccessMode::Write, Mapper::OneToOne);
    let read = |buffer| Access::buffer(buffer, AccessMode::Read, star());
    let update = |buffer| Access::buffer(buffer, AccessMode::ReadWrite, Mapper::OneToOne);
    cluster.submit("fill", range, vec![write(u)]);
    cluster.submit("first_step", range, vec![write(up), read(u)]);
    let spec = cluster.submit("step", range, vec![update(u), read(up)]);
    (spec, cluster.schedule(2))
}

/// What each stage has made of the step, in the order in which it is made.
pub(crate) fn print() -> String {
    let (spec, scheduled) = wave_sim();
    let Scheduled { names, tasks, nodes } = &scheduled;
    let mut text = String::new();
    let mut line =
        |what: &dyn std::fmt::Display| writeln!(text, "{what}").expect("memory suffices");
    line(&"# What the facade declares");
    line(&format!("{spec:#?}"));

    line(&"\n# The task graph");
    line(&Dag::of_tasks(tasks, names).to_text().trim_end());

    let here = NodeId::from_index(HERE as u64);
    let task = tasks.iter().find(|task| *task.name == *spec.name).expect("it was submitted");
    let node = &nodes[HERE];
    line(&format!("\n# The commands of {} on {here}", task.id));
    for (command, _) in node.of(task) {
        let label = CommandLabel(&command.kind, command.task, names);
        line(&format!("{} {label}", command.id));
    }
    let push = node.of(task).next().expect("it has commands").0;
    line(&format!("\n# One of them, as it is in memory\n{push:#?}"));

    line(&format!("\n# The instructions of {} on {here}", task.id));
    for instruction in node.of(task).flat_map(|(_, schedule)| &schedule.instructions) {
        let label = InstructionLabel(&instruction.kind, names);
        let ids: Vec<_> = instruction.dependencies.iter().map(ToString::to_string).collect();
        line(&format!("{} {label} <- {}", instruction.id, ids.join(", ")));
    }
    let pilot = pilots(node.of(task).map(|(_, schedule)| schedule)).next().expect("it sends");
    line(&format!("\n# What {here} announces to {}\n{pilot:#?}", pilot.to));
    line(&"\n# The same on the wire, in words of eight bytes");
    for word in wire::encode(pilot, here).chunks(8) {
        let bytes: Vec<_> = word.iter().map(|byte| format!("{byte:02x}")).collect();
        line(&bytes.join(" "));
    }
    text
}

/// The three graphs; of the latter two, those of the node that is followed.
pub(crate) fn pictures() -> [Section; 3] {
    let (_, Scheduled { names, tasks, nodes }) = wave_sim();
    let here = NodeId::from_index(HERE as u64).to_string();
    let instructions: Vec<_> = nodes[HERE].instructions().cloned().collect();
    let section = |title: String, dag| Section { title, dag, omitted: 0 };
    [
        section("task graph".to_owned(), Dag::of_tasks(&tasks, &names)),
        section(
            format!("command graph of {here}"),
            Dag::of_commands(&here, &nodes[HERE].commands, &names),
        ),
        section(
            format!("instruction graph of {here}"),
            Dag::of_instructions(&here, &instructions, &names),
        ),
    ]
}
