//! What kernels ask of the driver's compiler, which the compiler of kernels has no word for: a line for
//! each, left in the assembly, becomes a directive of its entry point.

use std::collections::BTreeMap;

/// How a line begins: the entry point's name follows, and how many registers.
const START: &str = "// celerity: ";
const LIMIT: &str = " has at most ";

/// `ptx` with a directive for each limit. A name that is no entry point's has none.
pub(crate) fn apply(ptx: String) -> String {
    let limits: BTreeMap<_, _> = ptx.lines().filter_map(limit).collect();
    if limits.is_empty() {
        return ptx;
    }
    let (mut text, mut limit) = (String::with_capacity(ptx.len()), None);
    for line in ptx.lines() {
        if let Some((_, rest)) = line.split_once(".entry ") {
            limit = limits.get(rest.split('(').next().unwrap_or(rest));
        }
        if line.starts_with('{')
            && let Some(registers) = limit.take()
        {
            text.push_str(&format!(".maxnreg {registers}\n"));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn limit(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim().strip_prefix(START)?.split_once(LIMIT)?;
    Some((name, rest.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_point_has_its_own_limit() {
        let ptx = "\t// celerity: b has at most 128 registers\n\
                   .visible .entry a(\n)\n{\n}\n.visible .entry b(\n)\n{\n}\n";
        let (before, after) = ptx.rsplit_once("{").unwrap();
        assert_eq!(apply(ptx.to_owned()), format!("{before}.maxnreg 128\n{{{after}"));
    }

    #[test]
    fn without_limits_nothing_changes() {
        let ptx = "// celerity: fast\n.visible .entry a(\n)\n{\n}";
        assert_eq!(apply(ptx.to_owned()), ptx);
    }
}
