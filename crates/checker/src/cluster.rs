//! What holds between nodes: they run the same program, share each index space
//! out, and what one sends another receives.

use std::collections::{BTreeMap, VecDeque};

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use crate::finding::Finding;
use crate::geometry::{Boxes, difference, subtract};
use crate::outline::{ExchangeOutline, Moved, Outline, TaskOutline};
use crate::picture::draw;
use crate::violation::{Check, Level, Vertex, Violation};

/// Compares the outlines of all nodes, task by task.
///
/// Outlines may come in any order of nodes and in pieces of any length; what
/// all nodes have told of a task is checked and dropped.
#[derive(Clone, Debug)]
pub struct ClusterChecker {
    nodes: usize,
    /// Per task since the first one that is not complete: per node.
    pending: VecDeque<Vec<Option<TaskOutline>>>,
    /// By node: tasks told of.
    told: Vec<usize>,
    /// Tasks checked and dropped.
    checked: usize,
}

impl ClusterChecker {
    /// A checker for so many nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self { nodes, pending: VecDeque::new(), told: vec![0; nodes], checked: 0 }
    }

    /// Takes the next piece of a node's outline, and checks what is complete.
    ///
    /// # Errors
    /// The first broken rule.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn add(&mut self, node: NodeId, outline: Outline) -> Result<(), Box<Finding>> {
        assert!(node.slot() < self.nodes, "{node} is not in the cluster");
        for task in outline.tasks {
            let slot = self.told[node.slot()] - self.checked;
            self.told[node.slot()] += 1;
            if slot == self.pending.len() {
                self.pending.push_back(vec![None; self.nodes]);
            }
            self.pending[slot][node.slot()] = Some(task);
        }
        while let Some(complete) = self.next_complete() {
            check_task(&complete).map_err(|violation| finding(*violation))?;
        }
        Ok(())
    }

    /// Number of tasks that some node has not told of yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Ends the program.
    ///
    /// # Errors
    /// If some node has had more tasks than others.
    pub fn finish(self) -> Result<(), Box<Finding>> {
        let Some(incomplete) = self.pending.front() else { return Ok(()) };
        let with = incomplete.iter().position(Option::is_some).unwrap_or(0);
        let without = incomplete.iter().position(Option::is_none).unwrap_or(0);
        Err(finding(Violation::Disagreement {
            first: node(with),
            second: node(without),
            task: TaskId::from_index(self.checked as u64),
        }))
    }

    fn next_complete(&mut self) -> Option<Vec<TaskOutline>> {
        if !self.pending.front()?.iter().all(Option::is_some) {
            return None;
        }
        self.checked += 1;
        Some(self.pending.pop_front()?.into_iter().flatten().collect())
    }
}

fn node(slot: usize) -> NodeId {
    NodeId::from_index(slot as u64)
}

fn finding(violation: Violation) -> Box<Finding> {
    let dot = draw(&violation, |_| None);
    Box::new(Finding { violation, node: None, task: None, dot })
}

/// What all nodes, in order, tell of one task.
fn check_task(nodes: &[TaskOutline]) -> Check {
    let [first, others @ ..] = nodes else { return Ok(()) };
    if let Some(other) = others.iter().position(|other| other.hash != first.hash) {
        let (first, second, task) = (node(0), node(other + 1), first.task);
        return Err(Violation::Disagreement { first, second, task }.into());
    }
    if let Some(space) = first.space {
        check_partition(nodes, space)?;
    }
    check_exchange(nodes)?;
    let commands = Transfers::of(nodes.iter().flat_map(|node| &node.awaits));
    commands.check(Level::Commands, nodes.iter().flat_map(|node| &node.pushes))?;
    let instructions = Transfers::of(nodes.iter().flat_map(|node| &node.receives));
    for send in nodes.iter().flat_map(|node| &node.sends) {
        instructions.check_fits(send)?;
    }
    instructions.check(Level::Instructions, nodes.iter().flat_map(|node| &node.sends))
}

/// The nodes' chunks are disjoint and cover the index space.
fn check_partition(nodes: &[TaskOutline], space: Box3) -> Check {
    let task = nodes[0].task;
    // Of an empty space nobody runs anything.
    let mut rest: Boxes = (!space.is_empty()).then_some(space).into_iter().collect();
    for chunk in nodes.iter().filter_map(|node| node.chunk) {
        if !subtract(&mut rest, &chunk) {
            let vertex = Vertex::Task(task);
            return Err(Violation::ItemsTwice { vertex, task, part: chunk }.into());
        }
    }
    match rest.first() {
        Some(&part) => {
            let among = "in the cluster".into();
            Err(Violation::ItemsNever { among, task, part }.into())
        }
        None => Ok(()),
    }
}

/// All members of a collective take part in it, in the same one, and no other nodes do. Of what moves,
/// each element is provided by one of them.
fn check_exchange(nodes: &[TaskOutline]) -> Check {
    let mut exchanges = nodes.iter().enumerate();
    let taking_part = exchanges.find_map(|(at, node)| Some((at, node.exchange.as_ref()?)));
    let Some((first, one)) = taking_part else { return Ok(()) };
    let task = nodes[first].task;
    let is_same =
        |other: &ExchangeOutline| (other.transfer, other.hash) == (one.transfer, one.hash);
    for (other, outline) in nodes.iter().enumerate() {
        let why = match (&outline.exchange, one.members.binary_search(&node(other)).is_ok()) {
            (None, false) => continue,
            (Some(exchange), true) if is_same(exchange) => continue,
            (None, true) => "the second one takes no part",
            (Some(_), true) => "they take other parts to move, or other nodes to have them",
            (Some(_), false) => "the second one takes part, and is no member for the first one",
        };
        let (first, second) = (node(first), node(other));
        return Err(Violation::CollectiveDiffers { first, second, task, why }.into());
    }
    check_venues(nodes, task)?;
    let mut rest = Boxes::from_slice(&one.region);
    let parts = (0..).zip(nodes).filter_map(|(at, node)| Some((at, node.exchange.as_ref()?)));
    for (slot, exchange) in parts {
        for &part in &exchange.provided {
            if !subtract(&mut rest, &part) {
                let (by, vertex) = (format!("{} and others", node(slot)), Some(exchange.vertex));
                let transfer = one.transfer;
                return Err(Violation::CollectiveParts { transfer, part, by, vertex }.into());
            }
        }
    }
    match rest.first() {
        Some(&part) => {
            let (by, transfer) = ("nobody".into(), one.transfer);
            Err(Violation::CollectiveParts { transfer, part, by, vertex: None }.into())
        }
        None => Ok(()),
    }
}

/// All members of a collective come to the host's network, or all to that of devices.
fn check_venues(nodes: &[TaskOutline], task: TaskId) -> Check {
    let mut venues = nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.venue?)));
    let Some((first, venue)) = venues.next() else { return Ok(()) };
    match venues.find(|(_, other)| *other != venue) {
        None => Ok(()),
        Some((second, _)) => {
            let (first, second) = (node(first), node(second));
            let why = "one has its part in a device's memory, and the other one in the host's";
            Err(Violation::CollectiveDiffers { first, second, task, why }.into())
        }
    }
}

/// What is expected for each transfer, by receiver.
struct Transfers<'a>(BTreeMap<(TransferId, NodeId), Vec<&'a Moved>>);

impl<'a> Transfers<'a> {
    fn of(expected: impl Iterator<Item = &'a Moved>) -> Self {
        let mut transfers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for moved in expected {
            transfers.entry((moved.transfer, moved.to)).or_default().push(moved);
        }
        Self(transfers)
    }

    /// Every element that is expected comes, once, and no other.
    fn check(self, level: Level, moved: impl Iterator<Item = &'a Moved>) -> Check {
        let all = |expected: &Vec<&Moved>| -> Boxes {
            expected.iter().flat_map(|moved| moved.boxes.iter().copied()).collect()
        };
        let mut rest: BTreeMap<_, _> =
            self.0.iter().map(|(key, expected)| (*key, all(expected))).collect();
        for Moved { vertex, transfer, to, boxes } in moved {
            let expected = rest.entry((*transfer, *to)).or_default();
            for part in boxes {
                let unexpected = difference(&[*part], expected).first().copied();
                if let Some(part) = unexpected {
                    let (vertex, why) = (Some(*vertex), "it comes twice, or is not expected");
                    let (transfer, to) = (*transfer, *to);
                    return Err(
                        Violation::Mismatch { level, transfer, to, part, why, vertex }.into()
                    );
                }
                subtract(expected, part);
            }
        }
        let missing = rest.iter().find_map(|(key, boxes)| Some((key, *boxes.first()?)));
        let Some((&(transfer, to), part)) = missing else { return Ok(()) };
        let vertex = self.0[&(transfer, to)].first().map(|moved| moved.vertex);
        let why = "it is expected and never comes";
        Err(Violation::Mismatch { level, transfer, to, part, why, vertex }.into())
    }

    /// Each box of a message must lie inside one receive, or the receiver cannot place it.
    fn check_fits(&self, send: &Moved) -> Check {
        let Moved { vertex, transfer, to, boxes } = send;
        let receives = self.0.get(&(*transfer, *to)).map_or(&[][..], Vec::as_slice);
        let is_split = |part: &&Box3| {
            let rest = |receive: &&Moved| difference(&[**part], &receive.boxes);
            let takes_some = |receive: &&&Moved| rest(receive) != Boxes::from_iter([**part]);
            receives.iter().filter(takes_some).count() > 1
                && !receives.iter().any(|receive| rest(receive).is_empty())
        };
        match boxes.iter().find(is_split) {
            None => Ok(()),
            Some(&elements) => {
                let (send, transfer, to) = (*vertex, *transfer, *to);
                Err(Violation::MessageSplit { send, transfer, to, elements }.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use celerity_cdag::CommandId;
    use celerity_tdag::BufferId;

    const TASK: TaskId = TaskId::from_index(0);

    fn moved(from: usize, boxes: &[Box3]) -> Moved {
        let transfer = TransferId { consumer: TASK, buffer: BufferId::from_index(0) };
        let vertex = Vertex::Command(node(from), CommandId::from_index(1));
        Moved { vertex, transfer, to: node(1), boxes: boxes.to_vec() }
    }

    fn outline(chunk: Option<Box3>) -> TaskOutline {
        TaskOutline {
            task: TASK,
            hash: 0,
            space: Some(Box3::from_range([8])),
            chunk,
            pushes: vec![],
            awaits: vec![],
            exchange: None,
            venue: None,
            sends: vec![],
            receives: vec![],
        }
    }

    fn rows(min: usize, len: usize) -> Box3 {
        Box3::from_offset_range([min], [len])
    }

    /// Two nodes with half of the index space each.
    fn halves() -> [TaskOutline; 2] {
        [outline(Some(rows(0, 4))), outline(Some(rows(4, 4)))]
    }

    /// Two nodes, each with a half of what both exchange.
    fn exchanging() -> [TaskOutline; 2] {
        let mut nodes = halves();
        for (slot, outline) in nodes.iter_mut().enumerate() {
            let Moved { vertex, transfer, .. } = moved(slot, &[]);
            let members = || vec![node(0), node(1)];
            let (region, provided) = (vec![rows(0, 8)], vec![rows(4 * slot, 4)]);
            outline.exchange = Some(ExchangeOutline {
                vertex,
                transfer,
                hash: 1,
                members: members(),
                region,
                provided,
            });
        }
        nodes
    }

    #[test]
    fn all_nodes_take_part_in_the_same_collective() {
        assert_eq!(check_task(&exchanging()), Ok(()));
        let mut left_out = exchanging();
        left_out[1].exchange = None;
        let said = check_task(&left_out).unwrap_err().to_string();
        assert_eq!(said, "N0 and N1 do not exchange the same for T0: the second one takes no part");
        let mut different = exchanging();
        different[1].exchange.as_mut().unwrap().hash = 2;
        let violation = check_task(&different).unwrap_err();
        assert!(matches!(*violation, Violation::CollectiveDiffers { .. }), "{violation}");
    }

    #[test]
    fn all_members_come_to_the_host_or_to_devices() {
        let exchange = |venues: [Option<bool>; 2]| {
            let mut nodes = exchanging();
            nodes.iter_mut().zip(venues).for_each(|(node, venue)| node.venue = venue);
            check_task(&nodes)
        };
        for venue in [None, Some(false), Some(true)] {
            assert_eq!(exchange([venue; 2]), Ok(()));
        }
        let said = exchange([Some(true), Some(false)]).unwrap_err().to_string();
        let why = "one has its part in a device's memory, and the other one in the host's";
        assert_eq!(said, format!("N0 and N1 do not exchange the same for T0: {why}"));
    }

    #[test]
    fn who_is_no_member_takes_no_part() {
        let mut nodes = exchanging().to_vec();
        nodes.push(outline(None));
        assert_eq!(check_task(&nodes), Ok(()), "N2 stays out");
        nodes[2].exchange = nodes[1].exchange.clone();
        let said = check_task(&nodes).unwrap_err().to_string();
        let why = "the second one takes part, and is no member for the first one";
        assert_eq!(said, format!("N0 and N2 do not exchange the same for T0: {why}"));
    }

    #[test]
    fn each_element_of_a_collective_has_one_provider() {
        let provides = |part| {
            let mut nodes = exchanging();
            nodes[1].exchange.as_mut().unwrap().provided = vec![part];
            check_task(&nodes).unwrap_err().to_string()
        };
        let twice = "nodes exchange T0.B0, and [3..8] of it is provided by N1 and others";
        assert_eq!(provides(rows(3, 5)), twice);
        let never = "nodes exchange T0.B0, and [4..5] of it is provided by nobody";
        assert_eq!(provides(rows(5, 3)), never);
    }

    #[test]
    fn a_message_must_fit_one_receive() {
        let mut nodes = halves();
        nodes[0].sends.push(moved(0, &[rows(0, 4)]));
        nodes[1].receives = vec![moved(1, &[rows(0, 2)]), moved(1, &[rows(2, 2)])];
        let violation = check_task(&nodes).unwrap_err();
        assert!(matches!(*violation, Violation::MessageSplit { .. }), "{violation}");
        nodes[1].receives = vec![moved(1, &[rows(0, 2), rows(2, 2)])];
        assert_eq!(check_task(&nodes), Ok(()));
        nodes[1].receives = vec![moved(1, &[rows(0, 2)]), moved(1, &[rows(2, 2)])];
        nodes[0].sends = vec![moved(0, &[rows(0, 2), rows(2, 2)])];
        assert_eq!(check_task(&nodes), Ok(()), "of several boxes, each fits one");
    }

    #[test]
    fn items_that_run_twice_or_never_are_noticed() {
        let twice = [outline(Some(rows(0, 5))), outline(Some(rows(4, 4)))];
        let violation = check_task(&twice).unwrap_err();
        assert!(matches!(*violation, Violation::ItemsTwice { .. }), "{violation}");
        let never = [outline(Some(rows(0, 4))), outline(None)];
        let violation = check_task(&never).unwrap_err();
        assert!(matches!(*violation, Violation::ItemsNever { .. }), "{violation}");
    }

    #[test]
    fn every_element_of_a_transfer_comes_once() {
        let mut nodes = halves();
        nodes[0].pushes = vec![moved(0, &[rows(0, 2)]), moved(0, &[rows(1, 2)])];
        nodes[1].awaits = vec![moved(1, &[rows(0, 3)])];
        let violation = check_task(&nodes).unwrap_err();
        assert!(matches!(*violation, Violation::Mismatch { .. }), "{violation}");
        nodes[0].pushes[1] = moved(0, &[rows(2, 1)]);
        assert_eq!(check_task(&nodes), Ok(()));
    }
}
