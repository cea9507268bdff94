//! Kernels that keep an array in memory of each thread are compiled once more, they alone, in ways that would be worse for others;
//! whichever entry point keeps less is taken. Knows assembly, and not who compiles.
//!
//! For GPUs, LLVM never asks what an array in memory costs: a step of D3Q19 in loops over nineteen directions took eight times as long as by
//! hand, since it unrolls only what becomes small by it, and a blur that zips arrays by value fifty times, since nothing
//! sees that an iterator that said `None` ends the loop.

use std::collections::{BTreeMap, BTreeSet};

use crate::entry_points::{EntryText, entry_points, rewritten};
use crate::merge::merge;

/// How kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// As all are.
    Usual,
    /// With large loops unrolled: else other kernels become slower, which keep rows in registers.
    Unrolled,
    /// That, and with jumps threaded in them and in `core`: where an iterator's `next` says `None`, its loop ends. It may copy
    /// what threads of a warp do together.
    Threaded,
}

impl Attempt {
    /// The ones after the usual one.
    pub(crate) const MORE: [Self; 2] = [Self::Unrolled, Self::Threaded];

    /// Flags for the crate of kernels. The number is how large a loop may become.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Unrolled | Self::Threaded => &["-Cllvm-args=-unroll-threshold=3000"],
        }
    }

    /// What names end with that come of it.
    fn suffix(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Unrolled => "_unrolled",
            Self::Threaded => "_threaded",
        }
    }

    /// The entry points of `ptx` that it is for: those that keep something in memory of each thread.
    pub(crate) fn entries(self, ptx: &str) -> Vec<String> {
        let functions_meet = rewritten(ptx, |_, _| ()).contains(TOGETHER);
        let may_meet =
            |text: &str| text.contains(TOGETHER) || functions_meet && text.contains(CALL);
        let is_for = |entry: &EntryText<'_>| {
            local_bytes(entry.text) > 0 && (self != Self::Threaded || !may_meet(entry.text))
        };
        entry_points(ptx).filter(is_for).map(|entry| entry.name.to_owned()).collect()
    }

    /// `ptx` with those entry points of this attempt that keep less in memory.
    pub(crate) fn take(self, ptx: String, attempt: &str) -> String {
        let kept: BTreeMap<_, _> =
            entry_points(&ptx).map(|EntryText { name, text }| (name, local_bytes(text))).collect();
        let is_better = |entry: &EntryText<'_>| {
            kept.get(entry.name).is_some_and(|&kept| local_bytes(entry.text) < kept)
        };
        let better: BTreeSet<_> =
            entry_points(attempt).filter(is_better).map(|entry| entry.name).collect();
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
        merge(only(&ptx, false), &only(attempt, true), self.suffix())
    }
}

/// What instructions have in their names for which threads of a warp wait for each other: barriers, shuffles, votes.
const TOGETHER: &str = ".sync";

/// How a function is called.
const CALL: &str = "call";

/// How an entry point declares what its threads keep in memory.
const LOCAL: &str = ".local ";

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
        for attempt in Attempt::MORE {
            assert_eq!(attempt.entries(&ptx), ["b", "c$narrow"]);
            assert_eq!(attempt.entries(&module("1, 2", &[])), [""; 0]);
        }
    }

    #[test]
    fn where_threads_meet_no_jumps_are_threaded() {
        let calling = entry("b", 8, "table").replace("mov.u64 %rd1,", "call.uni meet,");
        let meeting = entry("c", 8, "table").replace("mov.u64", "bar.sync");
        let entries = [entry("a", 8, "table"), calling, meeting];
        let ptx = module("1, 2", &entries);
        assert_eq!(Attempt::Unrolled.entries(&ptx), ["a", "b", "c"]);
        assert_eq!(Attempt::Threaded.entries(&ptx), ["a", "b"]);
        let ptx = format!("{ptx}.func meet(\n)\n{{\n\tbar.sync 0;\n}}\n");
        assert_eq!(Attempt::Threaded.entries(&ptx), ["a"]);
    }

    #[test]
    fn what_keeps_less_is_taken_with_what_it_refers_to() {
        let [a, b, c] =
            [("a", 0), ("b", 24), ("c", 8)].map(|(name, bytes)| entry(name, bytes, "table"));
        let ptx = module("1, 2", &[a.clone(), b.clone(), c.clone()]);
        // The same name stands for something else, as in code that was compiled by itself.
        let unrolled = module("3, 4", &[entry("b", 0, "table"), entry("c", 8, "table")]);
        let taken = Attempt::Unrolled.take(ptx.clone(), &unrolled);
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
        assert_eq!(Attempt::Unrolled.entries(&taken), ["c"]);
        let worse = module("3, 4", &[entry("b", 32, "table"), entry("c", 8, "table")]);
        assert_eq!(Attempt::Unrolled.take(ptx.clone(), &worse), ptx);
    }
}
