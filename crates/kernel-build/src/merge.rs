//! Makes one module of two that were compiled from the same kernels: with strict arithmetic and with
//! fast, or with loops and with these unrolled. Each has entry points of its own; what else both have by one name,
//! functions that they call and data, gets another name in the second one.

use std::collections::BTreeSet;

/// The line that a fast kernel leaves in strict code.
const FAST: &str = "// celerity: fast";

/// What a module has once: the host's record, where a launch leaves what it needs, and what groups share.
const COMMON: [&str; 4] =
    ["celerity_record", "celerity_launch", "celerity_group", "celerity_local"];

/// What a module begins with.
const HEADER: [&str; 3] = [".version", ".target", ".address_size"];

/// What names in fast code end with.
pub(crate) const SUFFIX: &str = "_fast";

/// Whether strict code was compiled from kernels some of which are fast.
pub(crate) fn needs_fast(strict: &str) -> bool {
    strict.lines().any(|line| line.trim() == FAST)
}

/// `first`, and behind it what `second` has beyond the header and what is common, by names that end with `suffix`.
pub(crate) fn merge(first: String, second: &str, suffix: &str) -> String {
    let names: BTreeSet<_> = own_names(second).collect();
    let mut merged = first;
    for line in second.lines().filter(|line| !is_there(line)) {
        push_renamed(&mut merged, line, &names, suffix);
        merged.push('\n');
    }
    merged
}

/// Whether the first one has the same line.
fn is_there(line: &str) -> bool {
    let is_common = |name: &str| COMMON.contains(&name);
    HEADER.iter().any(|start| line.starts_with(start)) || variable(line).is_some_and(is_common)
}

/// The functions and variables that a module defines, without entry points and what is common.
fn own_names(ptx: &str) -> impl Iterator<Item = &str> {
    let mut lines = ptx.lines().peekable();
    let names = std::iter::from_fn(move || {
        let line = lines.next()?;
        let below = lines.peek().copied().unwrap_or_default();
        Some(variable(line).or_else(|| function(line, below)))
    });
    names.flatten().filter(|name| !COMMON.contains(name))
}

/// The name of the variable of the module that a line declares or defines.
fn variable(line: &str) -> Option<&str> {
    let rest = without_linkage(line);
    let is_variable = [".global", ".shared", ".const"].iter().any(|kind| rest.starts_with(kind));
    let head = rest.split(['=', '[', ';']).next().filter(|_| is_variable)?;
    head.split_whitespace().next_back()
}

/// The name of the function that begins in a line, or in the one below it.
fn function<'a>(line: &'a str, below: &'a str) -> Option<&'a str> {
    without_linkage(line).starts_with(".func").then(|| crate::link::function_name(line, below))
}

fn without_linkage(line: &str) -> &str {
    [".visible ", ".weak ", ".extern "]
        .iter()
        .find_map(|kind| line.strip_prefix(kind))
        .unwrap_or(line)
}

/// Appends a line in which those words that are `names` have the suffix.
fn push_renamed(text: &mut String, line: &str, names: &BTreeSet<&str>, suffix: &str) {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        text.push_str(word);
        if names.contains(word) {
            text.push_str(suffix);
        }
        let end = behind.find(is_of_name).unwrap_or(behind.len());
        text.push_str(&behind[..end]);
        rest = &behind[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: &str = "\
.version 7.1
.target sm_80
// celerity: fast
.shared .align 16 .b8 celerity_launch[80];
.visible .global .align 8 .b8 celerity_record[8];
.global .align 1 .b8 text[2] = {1, 2};
.func helper(
)
{
}
.visible .entry step(
)
{
\tcall.uni helper, ();
}
";

    #[test]
    fn what_both_have_is_there_in_either_arithmetic() {
        let fast = STRICT.replace("entry step", "entry dash").replace("// celerity: fast\n", "");
        let fast = fast.replace("call.uni helper", "mov.u64 %rd1, text;\n\tcall.uni helper");
        let merged = merge(STRICT.to_owned(), &fast, SUFFIX);
        assert!(merged.starts_with(STRICT));
        assert_eq!(
            merged[STRICT.len()..],
            *".global .align 1 .b8 text_fast[2] = {1, 2};\n.func helper_fast(\n)\n{\n}\n\
              .visible .entry dash(\n)\n{\n\tmov.u64 %rd1, text_fast;\n\tcall.uni helper_fast, ();\n}\n"
        );
    }

    #[test]
    fn a_second_compilation_is_needed_for_fast_kernels_alone() {
        assert!(needs_fast(STRICT));
        assert!(!needs_fast(&STRICT.replace(FAST, "")));
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        let ptx = "\
.func  (.param .b32 func_retval0) with_result(
.visible .func _R3below
(
.func panic_by_zero()
.noreturn
.func  (.param .b32 func_retval0) without_parameters()
.extern .shared .align 16 .b8 celerity_local[];
.const .align 4 .b8 $table$1[4];
.visible .entry step(
";
        let names: Vec<_> = own_names(ptx).collect();
        assert_eq!(
            names,
            ["with_result", "_R3below", "panic_by_zero", "without_parameters", "$table$1"]
        );
    }
}
