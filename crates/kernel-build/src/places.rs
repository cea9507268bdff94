//! Where functions and variables stand in the source, by the debug information in the compiler's
//! intermediate code (LLVM's). Knows no errors.

use std::collections::BTreeMap;

/// How assembly spells a dot in a name.
const DOT: &str = "_$_";

/// Where functions and variables stand in the source.
#[derive(Default)]
pub(crate) struct SourceLocations(BTreeMap<String, Symbol>);

struct Symbol {
    name: String,
    file: String,
    line: String,
}

impl SourceLocations {
    /// Reads code with debug information.
    pub(crate) fn read(ir: &str) -> Self {
        fn node(line: &str) -> Option<(&str, &str)> {
            line.split_once(" = ")
        }
        let files: BTreeMap<_, _> = ir
            .lines()
            .filter(|line| line.contains(" = !DIFile("))
            .filter_map(|line| {
                node(line).and_then(|(id, text)| Some((id, quoted(text, "filename")?)))
            })
            .collect();
        let place = |line: &str| {
            let (_, text) = node(line)?;
            let name = quoted(text, "name")?;
            let symbol = quoted(text, "linkageName").unwrap_or(name);
            let file = (*files.get(field(text, "file")?)?).to_owned();
            let line = field(text, "line")?.to_owned();
            Some((symbol.to_owned(), Symbol { name: name.to_owned(), file, line }))
        };
        let kinds = ["!DISubprogram(", "!DIGlobalVariable("];
        let described = ir.lines().filter(|line| kinds.iter().any(|kind| line.contains(kind)));
        Self(described.filter_map(place).collect())
    }

    /// A symbol as users know it, with its place if that is known: `` `steps` (src/lib.rs:9) ``.
    pub(crate) fn describe(&self, symbol: &str) -> String {
        let symbol = symbol.replace(DOT, ".");
        // What is behind a dot is the compiler's: it takes variables apart.
        let whole = symbol.split('.').next().unwrap_or_default();
        match self.0.get(&symbol).or_else(|| self.0.get(whole)) {
            Some(Symbol { name, file, line }) => format!("`{name}` ({file}:{line})"),
            None => format!("`{symbol}`"),
        }
    }
}

/// The text behind `key: "`, up to the next quotation mark.
fn quoted<'a>(node: &'a str, key: &str) -> Option<&'a str> {
    field(node, key)?;
    let (_, text) = node.split_once(&format!("{key}: \""))?;
    text.split('"').next()
}

/// What follows `key: `, up to the next comma or bracket.
fn field<'a>(node: &'a str, key: &str) -> Option<&'a str> {
    let starts = [format!("({key}: "), format!(" {key}: ")];
    let (_, text) = starts.iter().find_map(|start| node.split_once(start.as_str()))?;
    text.split([',', ')']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_described_by_name_and_line() {
        let places = SourceLocations::read(
            r#"!1 = distinct !DIGlobalVariable(name: "COUNT", linkageName: "_R5COUNT", scope: !20, file: !21, line: 5, type: !15)
!2 = distinct !DISubprogram(name: "steps<f32, 2>", linkageName: "_R5steps", scope: !20, file: !21, line: 30, scopeLine: 31)
!3 = distinct !DIGlobalVariable(name: "PLAIN", scope: !20, file: !21, line: 7)
!21 = !DIFile(filename: "src/lib.rs", directory: "/k")
"#,
        );
        for (symbol, expected) in [
            ("_R5COUNT", "`COUNT` (src/lib.rs:5)"),
            ("_R5COUNT.0", "`COUNT` (src/lib.rs:5)"),
            ("_R5COUNT_$_0", "`COUNT` (src/lib.rs:5)"),
            ("_R5steps", "`steps<f32, 2>` (src/lib.rs:30)"),
            ("PLAIN", "`PLAIN` (src/lib.rs:7)"),
            ("_R7unknown", "`_R7unknown`"),
        ] {
            assert_eq!(places.describe(symbol), expected);
        }
    }
}
