//! What entry points with many parameters need: a module says of itself which version of the language it is written in, and
//! more than 4 KiB of parameters came with one that not all drivers know that know the compiler's.

use crate::entry_points::entry_points;

/// Bytes of parameters that every version allows.
const MOST: u64 = 4096;

/// The version that allows 32,764, on architectures from 7.0 on: of drivers of CUDA 12.1.
const VERSION: &str = "8.1";

/// `ptx`, as of that version if an entry point takes more than all versions allow.
pub(crate) fn allow(ptx: String) -> String {
    if entry_points(&ptx).all(|entry| parameter_bytes(entry.text) <= MOST) {
        return ptx;
    }
    let is_older = |version: &str| numbers(version) < numbers(VERSION);
    let lines = ptx.split_inclusive('\n').map(|line| match line.strip_prefix(".version ") {
        Some(version) if is_older(version.trim()) => format!(".version {VERSION}\n"),
        _ => line.to_owned(),
    });
    lines.collect()
}

/// A version, to compare.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Bytes of an entry point's parameters: `.param .u64 a` has 8, `.param .align 8 .b8 a[184]` 184.
fn parameter_bytes(entry: &str) -> u64 {
    let head = entry.split_once("\n{").map_or(entry, |(head, _)| head);
    let of_one = |line: &str| {
        let words = line.trim().trim_end_matches(',').strip_prefix(".param ")?;
        let (ty, name) = words.rsplit_once(' ')?;
        let mut types = ty.split_whitespace().filter_map(|word| word.strip_prefix('.'));
        let bits: u64 = types.find_map(|word| word.get(1..)?.parse().ok())?;
        let count = match name.split_once('[') {
            Some((_, count)) => count.trim_end_matches(']').parse().ok()?,
            None => 1,
        };
        Some(bits / 8 * count)
    };
    head.lines().filter_map(of_one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(blocks: usize) -> String {
        let parameters: String = (0..blocks)
            .map(|n| {
                format!("\t.param .u64 .ptr .global .align 4 k_param_{n},\n\t.param .align 8 .b8 k_block_{n}[184],\n")
            })
            .collect();
        format!(
            "//\n.version 7.1\n.target sm_80\n.visible .entry k(\n{parameters}\t.param .f32 k_rate\n)\n{{\n\t.param .b32 a[99999];\n}}\n"
        )
    }

    #[test]
    fn parameters_are_counted_by_what_they_are_declared_as() {
        for (blocks, bytes) in [(0, 4), (1, 196), (38, 38 * 192 + 4)] {
            let ptx = module(blocks);
            let entry = entry_points(&ptx).next().unwrap();
            assert_eq!(parameter_bytes(entry.text), bytes);
        }
    }

    #[test]
    fn a_module_is_of_a_later_version_if_it_has_to_be() {
        assert_eq!(allow(module(21)), module(21));
        assert_eq!(allow(module(22)), module(22).replace("7.1", "8.1"));
        let later = module(22).replace("7.1", "8.3");
        assert_eq!(allow(later.clone()), later);
    }
}
