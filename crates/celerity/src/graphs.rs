//! What becomes of the graphs of a run when it ends: nothing, text on standard error, or a file.
//! Collecting them is the business of [`recorder`], how they look that of `celerity-views`.

mod recorder;

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use celerity_cdag::NodeId;
use celerity_executor::{Observer, RunError};
use celerity_views::{Section, to_dot, to_svg, to_text};

use crate::log::{LogLevel, print};
use recorder::GraphRecorder;

/// Where the graphs of a run go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum GraphsTo {
    #[default]
    Nowhere,
    StandardError,
    File(PathBuf),
}

/// How a file tells graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Dot,
    Text,
}

/// Of each graph, a picture shows so many nodes: more are no picture to anybody, and keep a
/// browser busy.
const MOST_DRAWN: usize = 2000;

impl Format {
    /// By the end of a file's name.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "dot" => Some(Self::Dot),
            "txt" => Some(Self::Text),
            _ => None,
        }
    }

    fn render(self, sections: &[Section]) -> String {
        match self {
            Self::Svg => to_svg(sections),
            Self::Dot => to_dot(sections),
            Self::Text => to_text(sections),
        }
    }

    /// How many nodes of a graph are kept.
    fn limit(self) -> usize {
        if self == Self::Svg { MOST_DRAWN } else { usize::MAX }
    }
}

/// Keeps the graphs of a run, and writes them when dropped: also if the program panics.
pub(crate) struct Graphs {
    recorder: GraphRecorder,
    /// By the end of the path; `None`: standard error.
    target: Option<Target>,
    level: LogLevel,
}

struct Target {
    path: PathBuf,
    format: Option<Format>,
    /// Once the run has begun.
    file: RefCell<Option<File>>,
}

impl Graphs {
    /// For a run of so many nodes, of which these are here.
    pub(crate) fn new(
        to: &GraphsTo,
        here: &Range<usize>,
        nodes: usize,
        level: LogLevel,
    ) -> Option<Self> {
        let target = match to {
            GraphsTo::Nowhere => return None,
            GraphsTo::StandardError => None,
            GraphsTo::File(path) => {
                let format = Format::of(path);
                let path =
                    if here.len() < nodes { of_node(path, here.start) } else { path.clone() };
                Some(Target { path, format, file: RefCell::default() })
            }
        };
        let format = target.as_ref().and_then(|target| target.format).unwrap_or(Format::Text);
        Some(Self { recorder: GraphRecorder::new(format.limit()), target, level })
    }

    /// Opens the file, so that one which cannot be written is known before the run.
    pub(crate) fn open(&self) -> Result<(), RunError> {
        let Some(Target { path, format, file }) = &self.target else { return Ok(()) };
        let refused = |why: String| {
            let what = format!("the graphs cannot be written to \"{}\": {why}", path.display());
            RunError::Start { what }
        };
        if format.is_none() {
            return Err(refused("let its name end in .svg, .dot or .txt".to_owned()));
        }
        let created = File::create(path);
        let created = created.map_err(|error| {
            refused(format!("{error}; choose another path, or make it writable"))
        })?;
        *file.borrow_mut() = Some(created);
        Ok(())
    }

    /// Who records one node's graphs.
    pub(crate) fn observer(&self, node: NodeId) -> Option<Box<dyn Observer>> {
        Some(self.recorder.observer(node))
    }
}

impl Drop for Graphs {
    fn drop(&mut self) {
        let Some(Target { path, format, file }) = &self.target else {
            return print(&to_text(&self.recorder.sections()));
        };
        // What has not been opened has not begun.
        let (Some(mut file), Some(format)) = (file.take(), format) else { return };
        let text = format.render(&self.recorder.sections());
        if let Err(error) = file.write_all(text.as_bytes()) {
            let what = || format!("the graphs were not written to \"{}\": {error}", path.display());
            self.level.print(LogLevel::Error, what);
        }
    }
}

/// `graphs.N1.svg` for `graphs.svg`.
fn of_node(path: &Path, node: usize) -> PathBuf {
    let mut end = format!("N{node}");
    if let Some(extension) = path.extension() {
        end = format!("{end}.{}", extension.display());
    }
    path.with_extension(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_of_several_has_its_own_file() {
        let level = LogLevel::default();
        let path = |here: Range<usize>, nodes| {
            let to = GraphsTo::File("out/my.graphs.SVG".into());
            let graphs = Graphs::new(&to, &here, nodes, level).expect("they go somewhere");
            let target = graphs.target.as_ref().expect("to a file");
            assert_eq!(target.format, Some(Format::Svg));
            target.path.clone()
        };
        assert_eq!(path(0..3, 3), Path::new("out/my.graphs.SVG"));
        assert_eq!(path(0..1, 1), Path::new("out/my.graphs.SVG"));
        assert_eq!(path(0..1, 3), Path::new("out/my.graphs.N0.SVG"));
        assert_eq!(path(2..3, 3), Path::new("out/my.graphs.N2.SVG"));
    }

    #[test]
    fn formats_go_by_the_end_of_the_name() {
        let of = |name: &str| Format::of(Path::new(name));
        assert_eq!([of("a.svg"), of("b.DOT")], [Some(Format::Svg), Some(Format::Dot)]);
        assert_eq!([of("c.d.txt"), of("on"), of("e.png")], [Some(Format::Text), None, None]);
    }
}
