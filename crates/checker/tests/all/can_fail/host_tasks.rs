//! Host tasks on several nodes: where they run, on what, and in which order.

use celerity_cdag::CommandKind;
use celerity_checker::Violation;
use celerity_idag::InstructionKind;
use celerity_regions::Box3;
use celerity_tdag::{AccessMode, Dependencies, DependencyKind, IndexSpace, Work};
use celerity_testkit::check::Configuration;
use celerity_testkit::program::{AccessSpec, MapperSpec, ProgramBuilder, TaskKind, TaskOp};

use super::case::Case;

/// On two nodes, of one buffer of eight elements: a task on node 1 fills it, a distributed one of
/// two parts per node updates it, and two of one group run without it.
fn host_tasks() -> Case {
    let mut program = ProgramBuilder::default();
    let buffer = program.buffer([8]);
    let mut add = |name: &str, kind, mode: Option<(AccessMode, MapperSpec)>| {
        let accesses = mode.into_iter().map(|(mode, mapper)| AccessSpec { buffer, mode, mapper });
        let (accesses, effects) = (accesses.collect(), Vec::new());
        let task = TaskOp { name: name.into(), kind, accesses, effects };
        program.try_task(task).expect("a lawful task");
    };
    let line = IndexSpace::new(1, Box3::from_range([8]));
    let parts = IndexSpace { oversubscription: 2, ..line };
    let group = TaskKind::HostSplit { space: line, group: Some(3) };
    let all = (AccessMode::Write, MapperSpec::All);
    add("fill", TaskKind::HostOnce { node: 1 }, Some(all));
    let own = (AccessMode::ReadWrite, MapperSpec::OneToOne);
    add("update", TaskKind::HostSplit { space: parts, group: None }, Some(own));
    add("first", group, None);
    add("second", group, None);
    Case::new(program.finish(), Configuration::new(2, 1))
}

fn is_part(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::HostTask { chunk, .. } if chunk.volume() == 2)
}

#[test]
fn a_host_task_on_another_node_than_it_names_is_noticed() {
    let mut case = host_tasks();
    case.change_task(1, |task| task.work = Work::HostOnce { node: 0 });
    assert_finds!(
        case,
        Violation::Missing { what: "execute command", .. }
            | Violation::Uncalled { why: "a host task runs on the node that it names", .. }
    );
}

#[test]
fn a_part_that_nobody_runs_or_two_do_is_noticed() {
    let mut case = host_tasks();
    let position = case.find(0, is_part);
    case.remove(0, position);
    assert_finds!(case, Violation::ItemsNever { .. });

    let mut case = host_tasks();
    let position = case.find(0, is_part);
    let again = case.instructions[0].instructions[position].kind.clone();
    case.insert_after(0, position, again);
    assert_finds!(case, Violation::ItemsTwice { .. });
}

#[test]
fn tasks_of_a_group_in_any_order_are_noticed_in_each_graph() {
    let task = |case: &Case, name: &str| {
        let mut all = case.tasks.tasks.iter();
        all.position(|task| *task.name == *name).expect("the program has it")
    };
    let epoch = |case: &Case| case.tasks.tasks[0].id;

    let mut case = host_tasks();
    let (position, epoch) = (task(&case, "second"), epoch(&case));
    case.change_task(position, |task| {
        task.dependencies = Dependencies::default();
        task.dependencies.add(epoch, DependencyKind::Order);
    });
    assert_finds!(case, Violation::GroupUnordered { .. });

    let mut case = host_tasks();
    let second = case.tasks.tasks[task(&case, "second")].id;
    let first = case.commands[1].commands[0].id;
    let mut commands = case.commands[1].commands.iter_mut();
    let executes = |kind: &CommandKind| matches!(kind, CommandKind::Execute { .. });
    let command = commands.find(|one| one.task == second && executes(&one.kind)).unwrap();
    command.dependencies = Dependencies::default();
    command.dependencies.add(first, DependencyKind::Order);
    assert_finds!(case, Violation::GroupUnordered { .. });

    let mut case = host_tasks();
    let runs = |kind: &InstructionKind| matches!(kind, InstructionKind::HostTask { task, .. } if *task == second);
    let position = case.find(0, runs);
    let first = case.instructions[0].instructions[0].id;
    let instruction = &mut case.instructions[0].instructions[position];
    instruction.dependencies.clear();
    instruction.dependencies.push(first);
    assert_finds!(case, Violation::GroupUnordered { .. });
}
