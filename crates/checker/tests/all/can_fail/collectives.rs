//! Collectives that nodes do not agree about, or that bring what is not there. Commands are damaged
//! and judged up to the collective, before what follows goes wrong, too.

use std::sync::Arc;

use celerity_cdag::{Command, CommandKind, NodeId};
use celerity_checker::{Finding, Hazard, NodeCheckerConfig, Violation, check_schedule};
use celerity_cpd::{Collective, Ends, Pattern};
use celerity_regions::{Box3, Region};
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{DependencyKind, IndexSpace, NeighborhoodShape};
use celerity_testkit::check::{Configuration, events};
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};

use super::case::without;

const NODES: usize = 3;

/// Writes rows twice, and reads their halos if `has_halo`; then all are read, for which nodes
/// exchange them.
fn program(has_halo: bool) -> Program {
    let mut program = ProgramBuilder::default();
    let rows = Box3::from_range([12, 4]);
    let [u, v] = [(); 2].map(|()| program.buffer([12, 4]));
    let shape = NeighborhoodShape::BoundingBox;
    let halo = MapperSpec::Neighborhood { border: [1, 0, 0], shape };
    let mut kernel = |name, accesses: &[_]| {
        program.kernel(name, IndexSpace::new(2, rows), accesses);
    };
    for _ in 0..2 {
        kernel("fill", &[(u, Write, MapperSpec::OneToOne)]);
    }
    if has_halo {
        kernel("stencil", &[(u, Read, halo), (v, Write, MapperSpec::OneToOne)]);
    }
    kernel("all", &[(u, Read, MapperSpec::All), (v, Write, MapperSpec::OneToOne)]);
    program.finish()
}

/// The graphs of all nodes, up to the first collective.
struct Case {
    tasks: TaskTrace,
    commands: Vec<CommandTrace>,
}

impl Case {
    fn new() -> Self {
        Self::of(&program(true))
    }

    fn of(program: &Program) -> Self {
        let configuration =
            Configuration { forwards: Forwards::Always, ..Configuration::new(NODES, 1) };
        let mut tasks = TaskTrace::on(program, &configuration).expect("it is lawful");
        let mut commands = CommandTrace::of_all(&tasks, NODES).expect("it is lawful");
        let place = place(&commands[0].commands);
        let end = commands[0].ends.iter().position(|&end| end > place).expect("it has an end") + 1;
        tasks.events.truncate(end);
        for node in &mut commands {
            node.ends.truncate(end);
            node.commands.truncate(node.ends[end - 1]);
        }
        let case = Self { tasks, commands };
        assert_eq!(case.collective(0).pattern(), Pattern::AllGather);
        assert!(case.verdict().is_ok(), "{}", case.verdict().unwrap_err());
        case
    }

    /// What the checker says; instructions are those of the damaged commands.
    fn verdict(&self) -> Result<(), Box<Finding>> {
        let instructions = InstructionTrace::of_all(&self.tasks, &self.commands, 1);
        let instructions = instructions.expect("nothing is wrong with the program");
        let config = NodeCheckerConfig::new(NODES, NodeId::from_index(0), 1);
        let nodes = self.commands.iter().zip(&instructions);
        check_schedule(config, nodes.map(|(cdag, idag)| events(&self.tasks, cdag, idag)))
    }

    fn collective(&self, node: usize) -> &Collective {
        let commands = &self.commands[node].commands;
        match &commands[place(commands)].kind {
            CommandKind::Collective { collective, .. } => collective,
            other => panic!("{other:?} is no collective"),
        }
    }

    fn command(&mut self, node: usize) -> &mut Command {
        let commands = &mut self.commands[node].commands;
        let place = place(commands);
        &mut commands[place]
    }

    /// Damages the collective of some nodes.
    fn change(mut self, nodes: &[usize], change: impl Fn(&mut Collective)) -> Self {
        for &node in nodes {
            if let CommandKind::Collective { collective, .. } = &mut self.command(node).kind {
                change(Arc::make_mut(collective));
            }
        }
        self
    }

    fn found(&self) -> Violation {
        self.verdict().expect_err("something has been broken").violation
    }
}

fn place(commands: &[Command]) -> usize {
    let is_collective = |one: &Command| matches!(one.kind, CommandKind::Collective { .. });
    commands.iter().position(is_collective).expect("there is a collective")
}

/// Lets every node provide what another one has.
fn shift(collective: &mut Collective) {
    let Ends::Each(parts) = &collective.from else { panic!("several nodes provide it") };
    let mut parts = parts.to_vec();
    parts.rotate_left(1);
    collective.from = Ends::Each(parts.into());
}

#[test]
fn nodes_provide_what_they_hold() {
    let found = Case::new().change(&[0, 1, 2], shift).found();
    assert!(matches!(found, Violation::Stale { .. }), "{found}");
}

#[test]
fn a_node_that_leaves_it_out_is_noticed() {
    let mut case = Case::new();
    case.commands[2].commands.pop();
    *case.commands[2].ends.last_mut().expect("it has events") -= 1;
    let found = case.found();
    let expected = "N0 and N2 do not exchange the same for T4: the second one takes no part";
    assert_eq!(found.to_string(), expected);
}

#[test]
fn nodes_that_exchange_something_else_are_noticed() {
    let to_one = |collective: &mut Collective| collective.to = Ends::One(NodeId::from_index(1));
    let found = Case::new().change(&[1], to_one).found();
    assert!(matches!(found, Violation::CollectiveDiffers { .. }), "{found}");
}

#[test]
fn each_element_has_one_provider() {
    let forget = |collective: &mut Collective| {
        let Ends::Each(parts) = &collective.from else { panic!("several nodes provide it") };
        let mut parts = parts.to_vec();
        parts[1] = Region::empty();
        collective.from = Ends::Each(parts.into());
        collective.to = Ends::One(NodeId::from_index(0));
    };
    let found = Case::new().change(&[0, 1, 2], forget).found();
    let said = "nodes exchange T4.B0, and [4..8, 0..4] of it is provided by nobody";
    assert_eq!(found.to_string(), said);
}

#[test]
fn parts_are_of_what_is_forwarded_and_between_the_nodes_there_are() {
    let fewer = |collective: &mut Collective| {
        let Ends::Each(parts) = &collective.from else { panic!("several nodes provide it") };
        collective.from = Ends::Each(parts[..2].into());
    };
    let found = Case::new().change(&[0], fewer).found();
    assert!(found.to_string().ends_with("it is between other nodes than there are"), "{found}");
    let narrow = |collective: &mut Collective| {
        collective.region = Box3::from_range([12, 2]).into();
    };
    let found = Case::new().change(&[0], narrow).found();
    assert!(found.to_string().ends_with("some node's part is not of what moves"), "{found}");
    let wide = |collective: &mut Collective| {
        collective.region = Box3::from_range([13, 4]).into();
    };
    let found = Case::new().change(&[0], wide).found();
    assert!(matches!(found, Violation::OutOfBounds { .. }), "{found}");
}

/// What is found if the collective of `N0` does not wait for anybody for a reason of this kind.
fn unordered(mut case: Case, kind: DependencyKind) -> Hazard {
    let command = case.command(0);
    let edges: Vec<_> = command.dependencies.iter().filter(|edge| edge.kind == kind).collect();
    assert_eq!(edges.len(), 1, "{edges:?}");
    command.dependencies = without(&command.dependencies, edges[0].on);
    match case.found() {
        Violation::Unordered { hazard, .. } => hazard,
        other => panic!("{other}"),
    }
}

#[test]
fn it_waits_for_who_wrote_what_it_provides_and_who_reads_what_it_overwrites() {
    let writer = unordered(Case::of(&program(false)), DependencyKind::True);
    assert_eq!(writer, Hazard::ReadAfterWrite);
    let reader_of_halo = unordered(Case::new(), DependencyKind::Anti);
    assert_eq!(reader_of_halo, Hazard::WriteAfterRead);
}
