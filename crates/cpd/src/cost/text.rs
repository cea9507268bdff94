//! Constants as text: a name and a number on each line, so that people can read and change them.

use std::fmt;
use std::str::FromStr;

use super::{CostLine, Costs};
use crate::pattern::Pattern;

/// What is wrong with a text that should hold [`Costs`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCosts {
    /// Counted from 1; none if something is missing.
    pub line: Option<usize>,
    /// What is wrong there, as the end of a sentence.
    pub what: String,
}

/// The constants of a line, and their units.
const PARTS: [&str; 3] = ["once.ns", "step.ns", "byte.ps"];

impl Costs {
    fn lines(&self) -> impl Iterator<Item = (&'static str, &CostLine)> {
        let collectives = Pattern::ALL.map(Pattern::name).into_iter().zip(&self.collectives);
        std::iter::once(("message", &self.messages)).chain(collectives)
    }

    fn line_mut(&mut self, name: &str) -> Option<&mut CostLine> {
        if name == "message" {
            return Some(&mut self.messages);
        }
        let position = Pattern::ALL.iter().position(|pattern| pattern.name() == name)?;
        self.collectives.get_mut(position)
    }
}

impl CostLine {
    const fn parts(&self) -> [u64; 3] {
        [self.once, self.step, self.byte]
    }

    fn parts_mut(&mut self) -> [&mut u64; 3] {
        [&mut self.once, &mut self.step, &mut self.byte]
    }
}

impl fmt::Display for Costs {
    /// `message.once.ns = 2500`, and so on: a line for each constant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().try_for_each(|(name, line)| {
            let mut parts = PARTS.into_iter().zip(line.parts());
            parts.try_for_each(|(part, value)| writeln!(f, "{name}.{part} = {value}"))
        })
    }
}

impl FromStr for Costs {
    type Err = NotCosts;

    /// Reads lines `name = number`, each constant once, in any order. Empty lines, and what is behind
    /// `#`, are left out.
    fn from_str(text: &str) -> Result<Self, NotCosts> {
        let mut costs =
            Self { messages: CostLine::default(), collectives: [CostLine::default(); 5] };
        let mut known = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |what| NotCosts { line: Some(number), what };
            let (name, value) = line
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()))
                .ok_or_else(|| wrong(format!("`{line}` is not of the form `name = number`")))?;
            let constant = constant(&mut costs, name)
                .ok_or_else(|| wrong(format!("there is no constant `{name}`")))?;
            *constant = value.parse().map_err(|_| {
                wrong(format!("`{name}` is `{value}`, but must be a whole number from 0 on"))
            })?;
            if known.contains(&name) {
                return Err(wrong(format!("`{name}` is there twice")));
            }
            known.push(name);
        }
        let names = costs.lines().flat_map(|(name, _)| PARTS.map(|part| format!("{name}.{part}")));
        match names.into_iter().find(|name| !known.contains(&&**name)) {
            Some(missing) => Err(NotCosts { line: None, what: format!("`{missing}` is missing") }),
            None => Ok(costs),
        }
    }
}

fn constant<'a>(costs: &'a mut Costs, name: &str) -> Option<&'a mut u64> {
    let (name, part) = name.split_once('.')?;
    let position = PARTS.iter().position(|known| *known == part)?;
    let [once, step, byte] = costs.line_mut(name)?.parts_mut();
    [once, step, byte].into_iter().nth(position)
}

impl fmt::Display for NotCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for NotCosts {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let line = |at: u64| CostLine { once: at, step: at + 1, byte: 3 * at };
        let costs = Costs { messages: line(7), collectives: [10, 20, 30, 40, 50].map(line) };
        let text = costs.to_string();
        assert!(text.starts_with("message.once.ns = 7\nmessage.step.ns = 8\n"), "{text}");
        assert!(text.contains("\nall-gather.once.ns = 20\n"), "{text}");
        assert_eq!(text.parse(), Ok(costs));
        let spaced =
            format!("# a machine\n\n{}", text.replace(" = ", "=").replace('\n', " # ns\n"));
        assert_eq!(spaced.parse(), Ok(costs));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let good = Costs::default().to_string();
        let parse = |text: &str| text.parse::<Costs>().unwrap_err().to_string();
        assert_eq!(parse(""), "`message.once.ns` is missing");
        let without = good.lines().filter(|line| !line.starts_with("scatter.byte"));
        let without: Vec<_> = without.collect();
        assert_eq!(parse(&without.join("\n")), "`scatter.byte.ps` is missing");
        for (line, what) in [
            ("message", "`message` is not of the form `name = number`"),
            ("message.once = 4", "there is no constant `message.once`"),
            ("reduce.once.ns = 4", "there is no constant `reduce.once.ns`"),
            (
                "gather.step.ns = -1",
                "`gather.step.ns` is `-1`, but must be a whole number from 0 on",
            ),
            (
                "gather.step.ns = 1.5",
                "`gather.step.ns` is `1.5`, but must be a whole number from 0 on",
            ),
            ("gather.step.ns =", "`gather.step.ns` is ``, but must be a whole number from 0 on"),
        ] {
            assert_eq!(parse(&format!("# here\n{line}\n{good}")), format!("line 2: {what}"));
        }
        let twice = format!("{good}gather.byte.ps = 1\n");
        assert_eq!(parse(&twice), "line 19: `gather.byte.ps` is there twice");
    }
}
