//! The part of a graph that a violation is about, in the DOT language: the
//! nodes involved, the shortest paths between them, and the edge that is
//! missing. Made only when something is wrong.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use crate::violation::{Vertex, Violation};

/// What a graph knows of one of its nodes.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) label: String,
    pub(crate) edges: Vec<Vertex>,
}

/// Draws what `violation` is about; `look` finds nodes that are remembered.
pub(crate) fn draw(violation: &Violation, look: impl Fn(Vertex) -> Option<Seen>) -> String {
    let involved = violation.vertices();
    let missing = violation.missing_edge();
    let mut shown: BTreeSet<Vertex> = involved.iter().copied().collect();
    for &from in &involved {
        for &to in involved.iter().filter(|&&to| to != from) {
            shown.extend(shortest_path(from, to, &look));
        }
    }
    let mut dot = String::from("digraph finding {\n  node [shape=box];\n");
    for &vertex in &shown {
        let label = look(vertex).map_or_else(String::new, |seen| format!("\\n{}", seen.label));
        let color = if involved.contains(&vertex) { ", color=red" } else { "" };
        line(&mut dot, format_args!("\"{vertex}\" [label=\"{vertex}{}\"{color}]", escaped(&label)));
    }
    for &later in &shown {
        let edges = look(later).map(|seen| seen.edges).unwrap_or_default();
        for earlier in edges.into_iter().filter(|earlier| shown.contains(earlier)) {
            line(&mut dot, format_args!("\"{earlier}\" -> \"{later}\""));
        }
    }
    if let Some((later, earlier)) = missing {
        let style = "style=dashed, color=red, label=missing";
        line(&mut dot, format_args!("\"{earlier}\" -> \"{later}\" [{style}]"));
    }
    dot.push('}');
    dot
}

fn line(dot: &mut String, content: std::fmt::Arguments<'_>) {
    let written = writeln!(dot, "  {content};");
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// The label's own line breaks stay; quotes of names are escaped.
fn escaped(label: &str) -> String {
    label.replace('"', "\\\"")
}

/// The nodes on a shortest path from a node back to an earlier one.
fn shortest_path(from: Vertex, to: Vertex, look: &impl Fn(Vertex) -> Option<Seen>) -> Vec<Vertex> {
    let mut reached_from: BTreeMap<Vertex, Vertex> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            let step = |at: &Vertex| reached_from.get(at).copied();
            return std::iter::successors(Some(to), step).collect();
        }
        let edges = look(at).map(|seen| seen.edges).unwrap_or_default();
        for earlier in edges.into_iter().filter(|&earlier| earlier >= to && earlier < at) {
            if let Entry::Vacant(new) = reached_from.entry(earlier) {
                new.insert(at);
                queue.push_back(earlier);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use celerity_tdag::TaskId;

    #[test]
    fn involved_nodes_their_path_and_the_missing_edge_are_drawn() {
        let task = |index| Vertex::Task(TaskId::from_index(index));
        let look = |vertex: Vertex| {
            let Vertex::Task(id) = vertex else { return None };
            let edges = match id.index() {
                0 => vec![],
                index => vec![task(index - 1)],
            };
            Some(Seen { label: format!("\"t{}\"", id.index()), edges })
        };
        let violation = Violation::NotSynchronized { later: task(5), earlier: task(3) };
        let dot = draw(&violation, look);
        assert!(dot.contains(r#""T4" [label="T4\n\"t4\""];"#), "{dot}");
        assert!(dot.contains("\"T3\" -> \"T4\";"), "{dot}");
        assert!(dot.contains("\"T3\" -> \"T5\" [style=dashed, color=red"), "{dot}");
        assert!(!dot.contains("T2"), "{dot}");
    }
}
