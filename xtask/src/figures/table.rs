//! Numbers of a figure: comma-separated, a column for what is counted, and one for each curve.

use std::fmt;

/// The numbers of a figure. A cell without one is empty in the text, and no number here.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// What the first column has.
    counted: String,
    pub(super) curves: Vec<String>,
    pub(super) rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    pub(super) fn new<S: Into<String>>(counted: &str, curves: impl IntoIterator<Item = S>) -> Self {
        let curves = curves.into_iter().map(Into::into).collect();
        Self { counted: counted.into(), curves, rows: Vec::new() }
    }

    /// A table from its text.
    ///
    /// # Errors
    /// Which line is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        let (_, head) = lines.next().ok_or("it has no line")?;
        let mut names = head.split(',');
        let mut table = Self::new(names.next().unwrap_or_default(), names);
        for (number, line) in lines {
            let wrong =
                || format!("line {number}: a name and {} numbers are expected", table.curves.len());
            let (name, values) = line.split_once(',').ok_or_else(wrong)?;
            let values: Result<Vec<f64>, _> = values.split(',').map(cell).collect();
            let values = values.ok().filter(|values| values.len() == table.curves.len());
            let row = (name.to_owned(), values.ok_or_else(wrong)?);
            table.rows.push(row);
        }
        Ok(table)
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().flat_map(|(_, values)| values).filter(|value| !value.is_nan()).count()
    }

    /// The number of a curve in a row.
    fn get(&self, row: &str, curve: &str) -> Option<f64> {
        let at = self.curves.iter().position(|name| name == curve)?;
        self.rows.iter().find(|(name, _)| name == row).map(|(_, values)| values[at])
    }

    /// For a page.
    pub(super) fn to_markdown(&self) -> String {
        let head = format!("| {} | {} |\n| --- |", self.counted, self.curves.join(" | "));
        let mut text = head + &" --- |".repeat(self.curves.len()) + "\n";
        for (name, values) in &self.rows {
            let cells: Vec<_> = values.iter().map(text_of).collect();
            text += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{},{}", self.counted, self.curves.join(","))?;
        self.rows.iter().try_for_each(|(name, values)| {
            write!(f, "{name}")?;
            values.iter().try_for_each(|value| write!(f, ",{}", text_of(value)))?;
            writeln!(f)
        })
    }
}

fn cell(text: &str) -> Result<f64, std::num::ParseFloatError> {
    if text.is_empty() { Ok(f64::NAN) } else { text.parse() }
}

fn text_of(value: &f64) -> String {
    if value.is_nan() { String::new() } else { value.to_string() }
}

/// Numbers that are more than `factor` times what they were, or no longer there: a line for each.
pub(super) fn worse(before: &Table, now: &Table, factor: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for (row, values) in &before.rows {
        let cells = before.curves.iter().zip(values).filter(|(_, old)| !old.is_nan());
        for (curve, &old) in cells {
            match now.get(row, curve).filter(|new| !new.is_nan()) {
                None => lines.push(format!("{row}, {curve}: was {old}, and is not measured")),
                Some(new) if new > old * factor => {
                    lines.push(format!("{row}, {curve}: was {old}, is {new}"));
                }
                Some(_) => {}
            }
        }
    }
    lines
}

/// The cells of a table in Markdown, row by row, without its head. Of several tables in a text, all rows.
pub(super) fn of_markdown(text: &str) -> Vec<Vec<&str>> {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let is_rule = |row: &[&str]| row.iter().all(|cell| cell.contains("---"));
    let is_head = |at: usize| rows.get(at + 1).is_some_and(|next| is_rule(next));
    let kept = (0..rows.len()).filter(|&at| !is_head(at) && !is_rule(&rows[at]));
    kept.map(|at| rows[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "nodes,a,b and c\n1,2,3.5\n16,4,0.25\n";

    #[test]
    fn tables_are_read_and_written() {
        let table = Table::parse(TEXT).unwrap();
        assert_eq!(table.to_string(), TEXT);
        assert_eq!((table.len(), table.get("16", "b and c")), (4, Some(0.25)));
        assert_eq!(table.get("2", "a"), None);
        assert!(table.to_markdown().ends_with("| 1 | 2 | 3.5 |\n| 16 | 4 | 0.25 |\n"));
        assert!(Table::parse("").unwrap_err().contains("no line"));
        for wrong in ["n,a\n1\n", "n,a\n1,x\n", "n,a\n1,2,3\n"] {
            assert!(Table::parse(wrong).unwrap_err().starts_with("line 2: a name and 1 numbers"));
        }
    }

    #[test]
    fn what_got_worse_is_named() {
        let before = Table::parse("nodes,a,b\n1,2,10\n2,4,10\n").unwrap();
        assert!(worse(&before, &before, 1.0).is_empty());
        let now = Table::parse("nodes,a,b\n1,3.5,10\n").unwrap();
        let found = worse(&before, &now, 1.5);
        let gone = |curve, old| format!("2, {curve}: was {old}, and is not measured");
        assert_eq!(found, ["1, a: was 2, is 3.5".to_owned(), gone("a", 4), gone("b", 10)]);
    }

    #[test]
    fn cells_may_be_empty() {
        let text = "GPUs,a,b\n1,2,\n2,,3\n";
        let table = Table::parse(text).unwrap();
        assert_eq!((table.len(), table.to_string()), (2, text.to_owned()));
        assert!(table.to_markdown().ends_with("| 1 | 2 |  |\n| 2 |  | 3 |\n"));
        assert!(worse(&table, &table, 1.0).is_empty());
        let gone = Table::parse("GPUs,a,b\n1,,\n2,,4\n").unwrap();
        let found = worse(&table, &gone, 1.0);
        assert_eq!(found, ["1, a: was 2, and is not measured", "2, b: was 3, is 4"]);
    }

    #[test]
    fn rows_of_markdown_have_no_heads() {
        let text = "\n| a | b |\n| --- | ---: |\n| x | 1 |\ntext\n\n| c |\n| --- |\n| y |\n";
        assert_eq!(of_markdown(text), [vec!["x", "1"], vec!["y"]]);
    }
}
