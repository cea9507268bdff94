//! What threads leave for a panic: their launch, in shared memory, where the function that handles panics finds it.
//! An entry point that calls nothing has its checks end the thread right there, and they can look for the launch where the
//! entry point itself does: among its parameters. So nothing has to be left: three stores of 16 bytes are a good part of a
//! thread that computes one item.

use std::collections::BTreeMap;

use crate::entry_points::{EntryText, rewritten};
use crate::instruction::split;

const STORE: &str = "st.shared.v2.u64 [celerity_launch";
const LOAD: &str = "ld.shared.v2.u64 ";

/// `ptx`, in which entry points without calls leave nothing.
pub(crate) fn keep(ptx: &str) -> String {
    rewritten(ptx, |text, EntryText { text: entry, .. }| match left(entry) {
        Some(left) => push_kept(text, entry, &left),
        None => text.push_str(entry),
    })
}

/// What an entry point leaves, by where: pairs of registers. Nothing if it calls a function, or leaves something else on another
/// way through it.
fn left(entry: &str) -> Option<BTreeMap<&str, [&str; 2]>> {
    let mut left = BTreeMap::new();
    for line in entry.lines().map(str::trim_start) {
        if line.starts_with("call") {
            return None;
        }
        if let Some((place, registers)) = stored(line)
            && left.insert(place, registers).is_some()
        {
            return None;
        }
    }
    // Edges of rows are left by some threads alone.
    left.remove("+48");
    Some(left)
}

/// The entry point without these stores, and without what is loaded from there.
fn push_kept(text: &mut String, entry: &str, left: &BTreeMap<&str, [&str; 2]>) {
    for line in entry.split_inclusive('\n') {
        let instruction = line.trim_start();
        if stored(instruction).is_some_and(|(place, _)| left.contains_key(place)) {
            continue;
        }
        match loaded(instruction).and_then(|(place, to)| Some((to, left.get(place)?))) {
            Some((to, from)) => {
                for (to, from) in to.into_iter().zip(from) {
                    push_found_again(text, entry, to, from);
                }
            }
            None => text.push_str(line),
        }
    }
}

/// What puts into `to` what `from` has been given, so that no register holds it on the way: a parameter, a number or an address.
fn push_found_again(text: &mut String, entry: &str, to: &str, from: &str) {
    let mut gives = entry.lines().filter_map(|line| given(line, from));
    match (gives.next(), gives.next()) {
        (Some((operation @ "cvta.global.u64", what)), None) => {
            push_found_again(text, entry, to, what);
            text.push_str(&format!("\t{operation} {to}, {to};\n"));
        }
        (Some((operation @ ("ld.param.b64" | "mov.b64"), what)), None)
            if !what.starts_with('%') =>
        {
            text.push_str(&format!("\t{operation} {to}, {what};\n"));
        }
        _ => text.push_str(&format!("\tmov.b64 {to}, {from};\n")),
    }
}

/// Of `ld.param.b64 %rd1, [a_param_0+8];`, the operation and what it gives to the register, if that is the one.
fn given<'a>(line: &'a str, register: &str) -> Option<(&'a str, &'a str)> {
    let (operation, rest) = split(line.trim_start())?;
    let what = rest.strip_prefix(register)?.strip_prefix(", ")?.strip_suffix(';')?;
    Some((operation, what))
}

/// Of `st.shared.v2.u64 [celerity_launch+16], {%rd1, %rd2};`, the place and the registers.
fn stored(line: &str) -> Option<(&str, [&str; 2])> {
    let (place, registers) = line.strip_prefix(STORE)?.split_once("], ")?;
    Some((place, pair(registers)?))
}

/// The same of `ld.shared.v2.u64 {%rd1, %rd2}, [celerity_launch+16];`.
fn loaded(line: &str) -> Option<(&str, [&str; 2])> {
    let (registers, place) = line.strip_prefix(LOAD)?.split_once(", [celerity_launch")?;
    Some((place.split(']').next()?, pair(registers)?))
}

fn pair(registers: &str) -> Option<[&str; 2]> {
    let (first, second) = registers
        .trim()
        .trim_end_matches(';')
        .strip_prefix('{')?
        .strip_suffix('}')?
        .split_once(", ")?;
    Some([first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "\
.visible .entry a(
)
{
\tmov.b64 \t%rd8, alloc_a;
\tcvta.global.u64 \t%rd1, %rd8;
\tmov.b64 \t%rd2, 4294967301;
\tld.param.b64 \t%rd3, [a_param_0+8];
\t// begin inline asm
\tst.shared.v2.u64 [celerity_launch], {%rd1, %rd2};
st.shared.v2.u64 [celerity_launch+16], {%rd3, %rd4};
\t// end inline asm
\t@%p1 bra $L1;
\t// begin inline asm
\tst.shared.v2.u64 [celerity_launch+48], {%rd5, %rd6};
st.shared.u64 [celerity_launch+64], %rd7;
\t// end inline asm
$L1:
\t// begin inline asm
\tld.shared.v2.u64 {%rd11, %rd12}, [celerity_launch];
ld.shared.v2.u64 {%rd13, %rd14}, [celerity_launch+16];
ld.shared.v2.u64 {%rd15, %rd16}, [celerity_launch+48];
\t// end inline asm
\tret;
}
";

    #[test]
    fn what_would_be_left_is_found_again() {
        let changes = [
            ("\tst.shared.v2.u64 [celerity_launch], {%rd1, %rd2};\n", ""),
            ("st.shared.v2.u64 [celerity_launch+16], {%rd3, %rd4};\n", ""),
            (
                "\tld.shared.v2.u64 {%rd11, %rd12}, [celerity_launch];\n",
                "\tmov.b64 %rd11, alloc_a;\n\tcvta.global.u64 %rd11, %rd11;\n\tmov.b64 %rd12, 4294967301;\n",
            ),
            (
                "ld.shared.v2.u64 {%rd13, %rd14}, [celerity_launch+16];\n",
                "\tld.param.b64 %rd13, [a_param_0+8];\n\tmov.b64 %rd14, %rd4;\n",
            ),
        ];
        let expected = changes.into_iter().fold(ENTRY.to_owned(), |entry, (from, to)| {
            assert!(entry.contains(from), "{from}");
            entry.replace(from, to)
        });
        assert_eq!(keep(ENTRY), expected);
    }

    #[test]
    fn what_a_function_may_look_for_is_left() {
        let calling = ENTRY.replace("\tret;", "\tcall.uni rust_begin_unwind;");
        assert_eq!(keep(&calling), calling);
        let twice = ENTRY.replace("[celerity_launch+16], {%rd3", "[celerity_launch], {%rd3");
        assert_eq!(keep(&twice), twice);
        let both = [&calling, ENTRY].concat();
        assert_eq!(keep(&both), [&calling[..], &keep(ENTRY)].concat());
        let function = ENTRY.replace(".visible .entry a", ".func f");
        assert_eq!(keep(&function), function);
    }
}
