//! Several graphs in one document: as text, and in Graphviz's language. Pictures are the business
//! of `svg`.

use std::fmt::Write as _;

use petgraph::graph::NodeIndex;

use crate::dag::{Dag, DagNode};
use crate::render::{color, escape};

/// One graph of a document.
#[derive(Clone, Debug)]
pub struct Section {
    /// What stands above it.
    pub title: String,
    /// The graph that is drawn.
    pub dag: Dag,
    /// How many of its nodes are left out, since there would be too many: the last ones.
    pub omitted: usize,
}

impl Section {
    /// The title, and how much is left out.
    #[must_use]
    pub fn heading(&self) -> String {
        match self.omitted {
            0 => self.title.clone(),
            1 => format!("{} (the first nodes; 1 more is left out)", self.title),
            more => format!("{} (the first nodes; {more} more are left out)", self.title),
        }
    }
}

/// All graphs as text, one node per line.
///
/// ```
/// use celerity_views::{Dag, Section, to_text};
/// let mut dag = Dag::default();
/// dag.push("T0", "epoch init");
/// let section = Section { title: "task graph".into(), dag, omitted: 0 };
/// assert_eq!(to_text(&[section]), "task graph:\nT0 epoch init\n");
/// ```
#[must_use]
pub fn to_text(sections: &[Section]) -> String {
    let text = |section: &Section| format!("{}:\n{}", section.heading(), section.dag.to_text());
    sections.iter().map(text).collect()
}

/// All graphs in Graphviz's language, as clusters of one; edges are coloured by kind.
#[must_use]
pub fn to_dot(sections: &[Section]) -> String {
    let mut dot = "digraph {\n  node [shape=box];\n".to_owned();
    for (nth, section) in sections.iter().enumerate() {
        let heading = escape(&section.heading());
        // Writing to a string cannot fail.
        let _ = writeln!(dot, "  subgraph cluster_{nth} {{\n    label=\"{heading}\";");
        for node in 0..section.dag.len() {
            let DagNode { id, label, .. } = &section.dag.as_petgraph()[NodeIndex::new(node)];
            let (id, label) = (escape(id), escape(label));
            let _ = writeln!(dot, "    g{nth}n{node} [label=\"{id}\\n{label}\"];");
            for (on, why) in section.dag.edges(node) {
                let color = why.map_or("black", color);
                let _ = writeln!(dot, "    g{nth}n{on} -> g{nth}n{node} [color={color}];");
            }
        }
        dot += "  }\n";
    }
    dot + "}\n"
}

#[cfg(test)]
mod tests {
    use celerity_tdag::DependencyKind;

    use super::*;

    fn section(title: &str, omitted: usize) -> Section {
        let mut dag = Dag::default();
        let [first, second] = ["C0", "C1"].map(|id| dag.push(id, "a \"name\""));
        dag.connect(second, first, Some(DependencyKind::Anti));
        Section { title: title.to_owned(), dag, omitted }
    }

    #[test]
    fn dot_has_a_cluster_per_graph() {
        let dot = to_dot(&[section("one", 0), section("\"two\"", 3)]);
        assert_eq!(dot.matches("subgraph").count(), 2);
        assert!(
            dot.contains("label=\"\\\"two\\\" (the first nodes; 3 more are left out)\""),
            "{dot}"
        );
        assert!(dot.contains("g1n0 -> g1n1 [color=limegreen];"), "{dot}");
        assert!(dot.contains("g0n1 [label=\"C1\\na \\\"name\\\"\"];"), "{dot}");
        assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    }

    #[test]
    fn text_says_what_is_left_out() {
        let text = to_text(&[section("one", 1)]);
        assert!(text.starts_with("one (the first nodes; 1 more is left out):\nC0 a"), "{text}");
    }
}
