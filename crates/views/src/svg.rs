//! Graphs as SVG: boxes with what their nodes do, coloured by what that is, and arrows coloured
//! by why. Stable: the same graphs give the same bytes. Knows no file.

use std::fmt::Write as _;

use celerity_tdag::DependencyKind;
use petgraph::graph::NodeIndex;

use crate::dag::{Dag, Role};
use crate::labels::DependencyName;
use crate::layout::{Drawing, Edge, Pixel, Size, layout};
use crate::render::color;
use crate::sections::Section;

/// A letter's width: the font has letters of one width.
const LETTER: f64 = 6.0;
const LINE: f64 = 13.0;
const MARGIN: f64 = 24.0;
const TITLE: f64 = 30.0;
/// Inside of a box, on all sides.
const PADDING: f64 = 6.0;
/// Letters of a line, and lines of a box, at most; the rest is in its tooltip.
const LETTERS: usize = 46;
const LINES: usize = 9;

/// A picture of graphs, one below the other.
///
/// ```
/// use celerity_views::{Dag, Section, to_svg};
/// let mut dag = Dag::default();
/// let [first, second] = ["T0", "T1"].map(|id| dag.push(id, "work"));
/// dag.connect(second, first, None);
/// let svg = to_svg(&[Section { title: "tasks".into(), dag, omitted: 0 }]);
/// assert!(svg.starts_with("<svg ") && svg.contains(">T1<"));
/// ```
#[must_use]
pub fn to_svg(sections: &[Section]) -> String {
    let placed: Vec<_> = sections.iter().map(Placed::new).collect();
    let mut body = String::new();
    let legend_width = legend(&mut String::new(), 0.0);
    let width = placed.iter().fold(legend_width, |width, section| section.layout.width.max(width));
    let width = width + 2.0 * MARGIN;
    let mut top = MARGIN;
    for section in &placed {
        section.draw(&mut body, top);
        top += TITLE + section.layout.height + 2.0 * MARGIN;
    }
    legend(&mut body, top);
    let height = top + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         {}{body}</svg>\n",
        arrowheads()
    )
}

/// A graph whose nodes have places.
struct Placed<'a> {
    section: &'a Section,
    texts: Vec<Vec<String>>,
    sizes: Vec<Size>,
    edges: Vec<(Edge, Option<DependencyKind>)>,
    layout: Drawing,
}

impl<'a> Placed<'a> {
    fn new(section: &'a Section) -> Self {
        let dag = &section.dag;
        let texts: Vec<_> = (0..dag.len()).map(|node| text_of(dag, node)).collect();
        let sizes: Vec<_> = texts.iter().map(|lines| size_of(lines)).collect();
        let mut edges = Vec::new();
        for later in 0..dag.len() {
            edges.extend(dag.edges(later).map(|(earlier, why)| {
                (Edge { earlier, later, kind: why.map_or(0, |why| 1 + why as u8) }, why)
            }));
        }
        let bare: Vec<Edge> = edges.iter().map(|(edge, _)| *edge).collect();
        let layout = layout(&sizes, &bare);
        Self { section, texts, sizes, edges, layout }
    }

    fn draw(&self, svg: &mut String, top: f64) {
        let title = self.section.heading();
        put(
            svg,
            format_args!(
                "<text x=\"{MARGIN}\" y=\"{:.1}\" font-size=\"15\" font-weight=\"bold\">{}</text>",
                top + 12.0,
                escaped(&title)
            ),
        );
        put(svg, format_args!("<g transform=\"translate({MARGIN},{:.1})\">", top + TITLE));
        for ((_, why), points) in self.edges.iter().zip(&self.layout.edges) {
            arrow(svg, points, *why);
        }
        (0..self.texts.len()).for_each(|node| self.node(svg, node));
        put(svg, format_args!("</g>"));
    }

    fn node(&self, svg: &mut String, node: usize) {
        let ((x, y), Size { width, height }) = (self.layout.nodes[node], self.sizes[node]);
        let dag = &self.section.dag;
        let (fill, stroke) = colors(dag.as_petgraph()[NodeIndex::new(node)].role);
        put(
            svg,
            format_args!(
                "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
                escaped(&dag.describe(node))
            ),
        );
        for (nth, line) in self.texts[node].iter().enumerate() {
            let weight = if nth == 0 { " font-weight=\"bold\"" } else { "" };
            put(
                svg,
                format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\"{weight}>{}</text>",
                    x + PADDING,
                    y + PADDING + 9.0 + nth as f64 * LINE,
                    escaped(line)
                ),
            );
        }
        put(svg, format_args!("</g>"));
    }
}

/// The lines in a node's box: its id, and what it does, an access a line.
fn text_of(dag: &Dag, node: usize) -> Vec<String> {
    let node = &dag.as_petgraph()[NodeIndex::new(node)];
    let parts = node.label.split("; ").flat_map(wrapped);
    let mut lines: Vec<String> = std::iter::once(node.id.clone()).chain(parts).collect();
    if lines.len() > LINES {
        lines.truncate(LINES - 1);
        lines.push("…".to_owned());
    }
    lines
}

/// A text in lines of words. A word that is longer than a line is cut.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > LETTERS {
            lines.push(format!("  {}", shortened(word)));
        } else {
            if length > 0 {
                line.push(' ');
            }
            line.push_str(&shortened(word));
        }
    }
    lines
}

fn shortened(word: &str) -> String {
    match word.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

fn size_of(lines: &[String]) -> Size {
    let letters = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    Size {
        width: letters as f64 * LETTER + 2.0 * PADDING,
        height: lines.len() as f64 * LINE + 2.0 * PADDING - 2.0,
    }
}

fn arrow(svg: &mut String, points: &[Pixel], why: Option<DependencyKind>) {
    let mut path = String::new();
    for (nth, pair) in points.chunks(2).enumerate() {
        let [(x, y), (_, end)] = pair else { unreachable!("edges have an even number of points") };
        // Writing to a string cannot fail.
        let _ = match nth {
            0 => write!(path, "M{x:.1},{y:.1}V{end:.1}"),
            _ => {
                let (before, from) = points[2 * nth - 1];
                let middle = f64::midpoint(from, *y);
                write!(path, "C{before:.1},{middle:.1} {x:.1},{middle:.1} {x:.1},{y:.1}V{end:.1}")
            }
        };
    }
    let color = why.map_or("black", color);
    put(
        svg,
        format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"0.8\" \
         marker-end=\"url(#{color})\"/>"
        ),
    );
}

const REASONS: [DependencyKind; 4] =
    [DependencyKind::True, DependencyKind::Anti, DependencyKind::Output, DependencyKind::Order];

fn arrowheads() -> String {
    let mut svg = "<defs>\n".to_owned();
    for color in REASONS.map(color) {
        put(
            &mut svg,
            format_args!(
                "<marker id=\"{color}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" \
             markerHeight=\"6\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" fill=\"{color}\"/>\
             </marker>"
            ),
        );
    }
    svg + "</defs>\n"
}

/// Draws what the colours mean; returns how wide that is.
fn legend(svg: &mut String, top: f64) -> f64 {
    let mut x = MARGIN;
    for kind in REASONS {
        put(
            svg,
            format_args!(
                "<path d=\"M{x},{top}h18\" stroke=\"{}\" stroke-width=\"2\"/>",
                color(kind)
            ),
        );
        x = entry(svg, x + 24.0, top, &DependencyName(kind).to_string());
    }
    for (role, text) in ROLES {
        let (fill, stroke) = colors(role);
        put(
            svg,
            format_args!(
                "<rect x=\"{x}\" y=\"{:.1}\" width=\"16\" height=\"10\" rx=\"2\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/>",
                top - 5.0
            ),
        );
        x = entry(svg, x + 22.0, top, text);
    }
    x - MARGIN
}

fn entry(svg: &mut String, x: f64, y: f64, text: &str) -> f64 {
    put(svg, format_args!("<text x=\"{x}\" y=\"{:.1}\">{text}</text>", y + 3.5));
    x + text.len() as f64 * LETTER + 18.0
}

const ROLES: [(Role, &str); 6] = [
    (Role::Kernel, "kernel, execute"),
    (Role::Host, "host, fence"),
    (Role::Memory, "memory"),
    (Role::Copy, "copy"),
    (Role::Message, "message"),
    (Role::Synchronization, "horizon, epoch"),
];

/// Colours of a box and its border that can be told apart by all (after Okabe and Ito).
fn colors(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Kernel => ("#cfe5f5", "#0072b2"),
        Role::Host => ("#e3f3fc", "#56b4e9"),
        Role::Memory => ("#f2f2f2", "#999999"),
        Role::Copy => ("#fcedd0", "#e69f00"),
        Role::Message => ("#d3f0e6", "#009e73"),
        Role::Synchronization => ("#ffffff", "#000000"),
    }
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "{line}");
}

fn escaped(text: &str) -> String {
    let letter = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // What XML has no room for.
        control if control.is_control() => " ".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(title: &str, labels: &[&str], omitted: usize) -> Section {
        let mut dag = Dag::default();
        for (nth, label) in labels.iter().enumerate() {
            dag.push(&format!("T{nth}"), label);
            if nth > 0 {
                dag.connect(nth, nth - 1, Some(DependencyKind::Anti));
            }
        }
        Section { title: title.to_owned(), dag, omitted }
    }

    #[test]
    fn names_of_users_stay_text() {
        let svg = to_svg(&[section("a <b>", &["\"x\" & <y>", "\u{7}bell"], 0)]);
        assert!(
            svg.contains("a &lt;b&gt;") && svg.contains("&quot;x&quot; &amp; &lt;y&gt;"),
            "{svg}"
        );
        assert!(!svg.contains('\u{7}'));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let of = |omitted| to_svg(&[section("tasks", &["work"], omitted)]);
        assert!(!of(0).contains("left out"));
        assert!(of(1).contains("1 more is left out") && of(7).contains("7 more are left out"));
    }

    #[test]
    fn long_labels_are_wrapped_and_cut() {
        let access = "read B0 \"a rather long name of a buffer\" neighborhood([1, 1, 0])";
        let label = [access; 12].join("; ");
        let lines = text_of(&section("", &[&label], 0).dag, 0);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LINES, Some("…")));
        assert!(lines.iter().all(|line| line.chars().count() <= LETTERS + 2), "{lines:?}");
        assert_eq!(wrapped(&"x".repeat(99)), [format!("{}…", "x".repeat(LETTERS))]);
    }

    #[test]
    fn every_node_and_edge_is_drawn() {
        let svg = to_svg(&[section("one", &["a", "b", "c"], 0), section("two", &["d"], 0)]);
        let count = |what: &str| svg.matches(what).count();
        assert_eq!((count("<title>"), count("marker-end")), (4, 2));
        assert!(svg.contains("stroke=\"limegreen\"") && svg.contains("font-weight=\"bold\">two<"));
        assert_eq!(count("<g"), count("</g>"));
    }

    #[test]
    fn no_graph_is_a_picture_too() {
        assert!(to_svg(&[]).ends_with("</svg>\n"));
    }
}
