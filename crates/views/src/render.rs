//! Text and pictures of a [`Dag`]. Both are stable: the same graph gives the
//! same bytes, so that they can be compared with golden files.

use std::fmt::Write as _;

use celerity_tdag::DependencyKind;
use petgraph::dot::{Config, Dot};
use petgraph::graph::{EdgeReference, NodeIndex};

use crate::dag::{Dag, DagNode};
use crate::labels::DependencyName;

impl Dag {
    /// One line per node: `id label <- id kind, id kind`, in order of ids.
    #[must_use]
    pub fn to_text(&self) -> String {
        (0..self.len()).map(|node| self.line(node) + "\n").collect()
    }

    fn line(&self, node: usize) -> String {
        let DagNode { id, label, .. } = &self.as_petgraph()[NodeIndex::new(node)];
        let mut edges: Vec<_> = self.edges(node).collect();
        edges.sort_unstable_by_key(|&(on, _)| on);
        let mut line = format!("{id} {label}");
        for (position, (on, kind)) in edges.into_iter().enumerate() {
            let separator = if position == 0 { " <- " } else { ", " };
            line += separator;
            line += short(self.id(on));
            if let Some(kind) = kind {
                // Writing to a string cannot fail.
                let _ = write!(line, " {}", DependencyName(kind));
            }
        }
        for (_, earlier) in self.conflicts().iter().filter(|(later, _)| *later == node) {
            // As above.
            let _ = write!(line, ", apart from {}", short(self.id(*earlier)));
        }
        line
    }

    /// The graph in Graphviz's language; edges are coloured by kind. Conflicts are dashed, and have
    /// no arrow.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let no_labels = [Config::NodeNoLabel, Config::EdgeNoLabel];
        let edge_style = |_, edge: EdgeReference<'_, Option<DependencyKind>>| {
            edge.weight().map_or_else(String::new, |kind| format!("color={}", color(kind)))
        };
        let node_style = |_, (_, DagNode { id, label, .. }): (NodeIndex, &DagNode)| {
            format!("shape=box label=\"{}\\n{}\"", escape(id), escape(label))
        };
        let graph = self.as_petgraph();
        let dot = Dot::with_attr_getters(graph, &no_labels, &edge_style, &node_style);
        let mut text = format!("{dot:?}");
        let end = text.rfind('}').unwrap_or(text.len());
        let conflicts = self.conflicts().iter();
        let conflicts =
            conflicts.map(|(later, earlier)| format!("    {earlier} -> {later} {APART}\n"));
        text.insert_str(end, &conflicts.collect::<String>());
        text
    }
}

/// How a conflict is drawn. It moves nothing.
const APART: &str = "[ color=red style=dashed dir=none constraint=false]";

/// An id without its owner, which is the same for all nodes of a graph.
fn short(id: &str) -> &str {
    id.rsplit(' ').next().unwrap_or(id)
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

pub(crate) fn color(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::True => "black",
        DependencyKind::Anti => "limegreen",
        DependencyKind::Output => "blue",
        DependencyKind::Order => "orange",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_dashed_and_have_no_arrow() {
        use celerity_tdag::{Access, SideEffectOrder, TaskGraph, TaskGraphConfig, TaskSpec, Work};
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let mut tasks = vec![graph.start()];
        let object = graph.create_object(None);
        for name in ["one", "other"] {
            let accesses = vec![Access::object(object, SideEffectOrder::Exclusive)];
            let (name, work) = (name.into(), Work::HostOnce { node: 0 });
            let spec = TaskSpec { name, work, accesses, location: None };
            graph.submit(spec, &mut tasks).unwrap();
        }
        let dag = Dag::of_tasks(&tasks, &Default::default());
        let line = "T2 other on the host; exclusive H0 <- T0 true, apart from T1";
        assert!(dag.to_text().contains(line), "{}", dag.to_text());
        let dot = dag.to_dot();
        assert!(dot.contains("    1 -> 2 [ color=red style=dashed dir=none"), "{dot}");
        assert!(dot.trim_end().ends_with('}'), "{dot}");
    }

    fn fork() -> Dag {
        let mut dag = Dag::default();
        for id in ["N0 C0", "N0 C1", "N0 C2"] {
            dag.push(id, "a \"quoted\" label");
        }
        dag.connect(2, 1, Some(DependencyKind::Output));
        dag.connect(2, 0, None);
        dag
    }

    #[test]
    fn dot_output_names_ids_and_escapes_labels() {
        let dot = fork().to_dot();
        assert!(dot.contains("C2\\na \\\"quoted\\\" label"), "{dot}");
        assert!(dot.contains("1 -> 2") && dot.contains("color=blue"), "{dot}");
    }

    #[test]
    fn a_line_lists_edges_in_order_of_ids() {
        let last = "N0 C2 a \"quoted\" label <- C0, C1 output\n";
        assert!(fork().to_text().ends_with(last), "{}", fork().to_text());
    }
}
