//! Public types that users may take apart completely: those that never get another variant or public field
//! without a new version that breaks programs.
//!
//! Owns the list of them, with the reasons. All others that programs could match on completely, or write down
//! field by field, are `#[non_exhaustive]`.

use std::collections::BTreeSet;

/// The beginning of the path at which a type is defined, up to the end of a name, and why the type is complete.
const COMPLETE: [(&str, &str); 7] = [
    ("celerity_regions::typed", "programs write subranges and chunks down, in every custom mapper"),
    ("celerity_tdag::mapper::relation::Windows", "mappers write it down"),
    ("celerity_tdag::mapper::relation::Share", "mappers write it down"),
    ("celerity_cdag::command::TransferId", "an id is what it consists of"),
    ("celerity_executor::call::DeviceStream", "backends make it; that is what libraries ask for"),
    (
        "celerity_kernel::abi",
        "what compiled kernels are called with: both sides of a program are of one version",
    ),
    ("celerity_kernel::module::Ptx", "build scripts of crates of kernels write it down"),
];

/// What is wrong with `exhaustive`, the paths of public types that are not `#[non_exhaustive]`: those that are
/// not in the list, and parts of the list that name none of them.
pub(super) fn faults(exhaustive: &BTreeSet<String>) -> Vec<String> {
    let listed = |path: &String| COMPLETE.iter().any(|(part, _)| is_part(part, path));
    let unlisted = exhaustive.iter().filter(|path| !listed(path)).map(|path| {
        format!(
            "{path} is not `#[non_exhaustive]`: make it so, or say in xtask/src/api/complete.rs why \
             nothing will be added to it"
        )
    });
    let unused = COMPLETE.iter().filter(|(part, _)| !exhaustive.iter().any(|at| is_part(part, at)));
    let unused = unused.map(|(part, _)| {
        format!(
            "xtask/src/api/complete.rs names `{part}`, but every type there may grow: strike it"
        )
    });
    unlisted.chain(unused).collect()
}

/// Whether a path is `part`, or lies below it.
fn is_part(part: &str, path: &str) -> bool {
    path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COMPLETE, faults};

    fn listed() -> BTreeSet<String> {
        COMPLETE.iter().map(|(part, _)| (*part).to_owned()).collect()
    }

    #[test]
    fn what_could_grow_and_is_not_listed_is_named() {
        assert_eq!(faults(&listed()), Vec::<String>::new());
        let mut exhaustive = listed();
        exhaustive.insert("celerity_tdag::mapper::relation::WindowsOfTime".to_owned());
        let found = faults(&exhaustive);
        assert!(found.len() == 1 && found[0].contains("WindowsOfTime is not"), "{found:?}");
    }

    #[test]
    fn the_list_holds_nothing_that_is_not_needed() {
        let mut exhaustive = listed();
        exhaustive.remove(COMPLETE[0].0);
        let found = faults(&exhaustive);
        assert!(found.len() == 1 && found[0].contains(COMPLETE[0].0), "{found:?}");
        exhaustive.insert(format!("{}::Chunk", COMPLETE[0].0));
        assert_eq!(faults(&exhaustive), Vec::<String>::new());
    }
}
