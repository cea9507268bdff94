//! Kernels that keep an array in memory of each thread, since a loop over it is not unrolled. LLVM unrolls what becomes
//! small by it, and for GPUs never asks what an array in memory costs: a step of D3Q19 in loops over nineteen directions
//! took eight times as long as by hand. With everything unrolled that can be, other kernels become slower, which keep
//! rows in registers. So entry points that keep something in memory are compiled once more, with other limits, and whichever
//! keeps less is taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::entry_points::{EntryText, entry_points, rewritten};
use crate::merge::merge;

/// For the second time. The number is how large a loop may become.
pub(crate) const FLAG: &str = "-Cllvm-args=-unroll-threshold=3000";

/// What names in the second compilation end with.
const SUFFIX: &str = "_unrolled";

/// How an entry point declares what its threads keep in memory.
const LOCAL: &str = ".local ";

/// The entry points that keep something in memory of each thread.
pub(crate) fn in_memory(ptx: &str) -> Vec<String> {
    let entries = entry_points(ptx).filter(|entry| local_bytes(entry.text) > 0);
    entries.map(|entry| entry.name.to_owned()).collect()
}

/// `ptx` with those entry points of `unrolled` that keep less in memory.
pub(crate) fn take(ptx: String, unrolled: &str) -> String {
    let kept: BTreeMap<_, _> =
        entry_points(&ptx).map(|EntryText { name, text }| (name, local_bytes(text))).collect();
    let is_better = |entry: &EntryText<'_>| {
        kept.get(entry.name).is_some_and(|&kept| local_bytes(entry.text) < kept)
    };
    let better: BTreeSet<_> =
        entry_points(unrolled).filter(is_better).map(|entry| entry.name).collect();
    if better.is_empty() {
        return ptx;
    }
    let only = |of, taken| {
        rewritten(of, |text, entry| {
            if better.contains(entry.name) == taken {
                text.push_str(entry.text);
            }
        })
    };
    merge(only(&ptx, false), &only(unrolled, true), SUFFIX)
}

/// Bytes of memory of a thread.
fn local_bytes(entry: &str) -> u64 {
    let sizes = entry.lines().filter(|line| line.trim_start().starts_with(LOCAL)).map(|line| {
        let size = line.rsplit_once('[').and_then(|(_, size)| size.split(']').next());
        size.and_then(|size| size.parse().ok()).unwrap_or(u64::MAX)
    });
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that keeps so many bytes in memory, and refers to data.
    fn entry(name: &str, bytes: u32, data: &str) -> String {
        let local = match bytes {
            0 => String::new(),
            bytes => format!("\t.local .align 8 .b8 \t__local_depot0[{bytes}];\n"),
        };
        format!(
            ".visible .entry {name}(\n\t.param .b64 p\n)\n{{\n{local}\tmov.u64 %rd1, {data};\n}}\n"
        )
    }

    fn module(data: &str, entries: &[String]) -> String {
        let data = format!(".global .align 1 .b8 table[2] = {{{data}}};\n");
        [".version 7.1\n", &data]
            .into_iter()
            .map(str::to_owned)
            .chain(entries.iter().cloned())
            .collect()
    }

    #[test]
    fn entry_points_that_keep_something_are_found() {
        let ptx = module(
            "1, 2",
            &[entry("a", 0, "table"), entry("b", 24, "table"), entry("c$narrow", 8, "table")],
        );
        assert_eq!(in_memory(&ptx), ["b", "c$narrow"]);
        assert_eq!(in_memory(&module("1, 2", &[])), [""; 0]);
    }

    #[test]
    fn what_keeps_less_is_taken_with_what_it_refers_to() {
        let [a, b, c] =
            [("a", 0), ("b", 24), ("c", 8)].map(|(name, bytes)| entry(name, bytes, "table"));
        let ptx = module("1, 2", &[a.clone(), b.clone(), c.clone()]);
        // The same name stands for something else, as in code that was compiled by itself.
        let unrolled = module("3, 4", &[entry("b", 0, "table"), entry("c", 8, "table")]);
        let taken = take(ptx.clone(), &unrolled);
        let data = ".global .align 1 .b8 table_unrolled[2] = {3, 4};\n";
        let expected = [
            module("1, 2", &[a, "\n".to_owned(), c]),
            data.to_owned(),
            entry("b", 0, "table_unrolled"),
        ];
        let lines = |text: &str| {
            text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&taken), lines(&expected.concat()));
        assert_eq!(in_memory(&taken), ["c"]);
        let worse = module("3, 4", &[entry("b", 32, "table"), entry("c", 8, "table")]);
        assert_eq!(take(ptx.clone(), &worse), ptx);
    }
}
