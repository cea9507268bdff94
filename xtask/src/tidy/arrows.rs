//! The rule that dependency arrows between our crates run one way.
//!
//! Only normal and build dependencies count: tests may look anywhere.

use super::Violation;
use crate::workspace::Package;

/// The layers, lowest first: a crate may depend on those before it.
const LAYERS: [&str; 11] = [
    "celerity-regions",
    "celerity-tdag",
    "celerity-cpd",
    "celerity-cdag",
    "celerity-idag",
    "celerity-views",
    "celerity-checker",
    "celerity-executor",
    "celerity-mpi",
    "celerity-cuda",
    "celerity",
];

/// What a kernel sees: beside the layers, depends on none of ours.
const KERNEL: &str = "celerity-kernel";

/// What turns functions into kernels: the attribute, and the compilation for devices. They run when
/// a program is built and depend on none of ours.
const KERNEL_TOOLS: [&str; 2] = ["celerity-kernel-macros", "celerity-kernel-build"];

/// Crates of kernels: they depend on [`KERNEL`] and [`KERNEL_TOOLS`] alone.
const KERNEL_CRATES: [&str; 1] = ["celerity-example-kernels"];

/// Beside the layers too: any of ours may depend on these, and they on none of ours.
const FOUNDATIONS: [&str; 3] = ["celerity-codec", "celerity-mutants", "celerity-trace"];

/// The layers that run kernels and therefore may depend on [`KERNEL`].
const KERNEL_USERS: [&str; 3] = ["celerity-executor", "celerity-cuda", "celerity"];

/// Commands for users: they depend on none of ours.
const COMMANDS: [&str; 1] = ["celerity-new"];

/// Never part of a user's program. Each may depend on everything above and on those before it
/// here; nothing else may depend on them.
const DEVELOPMENT: [&str; 8] = [
    "celerity-predict",
    "celerity-testkit",
    "celerity-book",
    "celerity-benches",
    "celerity-instructions",
    "celerity-baselines",
    "celerity-task-bench",
    "xtask",
];

/// Finds arrows that run the wrong way and crates that have no place in the order.
pub(super) fn check(packages: &[Package]) -> Vec<Violation> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Violation> {
    let name = package.name.as_str();
    if !is_ours(name) {
        let advice = "has no place among the layers; give it one in xtask/src/tidy/arrows.rs";
        return vec![Violation::new(name, advice)];
    }
    let backwards = |dependency: &&String| is_ours(dependency) && !may_depend(name, dependency);
    let advice = |dependency| format!("must not depend on {dependency}; arrows run one way");
    package
        .dependencies
        .iter()
        .filter(backwards)
        .map(|dependency| Violation::new(name, advice(dependency)))
        .collect()
}

fn is_ours(name: &str) -> bool {
    name == KERNEL
        || KERNEL_TOOLS.contains(&name)
        || KERNEL_CRATES.contains(&name)
        || FOUNDATIONS.contains(&name)
        || COMMANDS.contains(&name)
        || LAYERS.contains(&name)
        || DEVELOPMENT.contains(&name)
}

fn may_depend(from: &str, to: &str) -> bool {
    let position = |list: &[&str], name| list.iter().position(|&entry| entry == name);
    if let Some(from) = position(&DEVELOPMENT, from) {
        return position(&DEVELOPMENT, to).is_none_or(|to| to < from);
    }
    if FOUNDATIONS.contains(&to) {
        let below = [&FOUNDATIONS[..], &COMMANDS, &[KERNEL]];
        return !below.iter().any(|names| names.contains(&from));
    }
    if KERNEL_TOOLS.contains(&to) {
        return from == KERNEL || KERNEL_CRATES.contains(&from);
    }
    if to == KERNEL {
        return KERNEL_USERS.contains(&from) || KERNEL_CRATES.contains(&from);
    }
    match (position(&LAYERS, from), position(&LAYERS, to)) {
        (Some(from), Some(to)) => to < from,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::assert_kept;
    use crate::workspace::{Package, Workspace};

    fn violations(name: &str, dependency: &str) -> usize {
        let package = Package {
            name: name.into(),
            dependencies: vec![dependency.into(), "smallvec".into()],
            rust_version: None,
            is_published: false,
            targets: Vec::new(),
        };
        check(&[package]).len()
    }

    #[test]
    fn arrows_of_this_workspace_run_one_way() {
        assert_kept(&check(&Workspace::load().unwrap().packages));
    }

    #[test]
    fn arrows_to_the_left_are_allowed() {
        for (from, to) in [
            ("celerity-tdag", "celerity-regions"),
            ("celerity-regions", "celerity-codec"),
            ("celerity", "celerity-cdag"),
            ("celerity-executor", "celerity-kernel"),
            ("celerity-kernel", "celerity-kernel-macros"),
            ("celerity-example-kernels", "celerity-kernel"),
            ("celerity-example-kernels", "celerity-kernel-build"),
            ("celerity-testkit", "celerity-executor"),
            ("celerity-benches", "celerity-testkit"),
        ] {
            assert_eq!(violations(from, to), 0, "{from} -> {to}");
        }
    }

    #[test]
    fn arrows_to_the_right_are_noticed() {
        for (from, to) in [
            ("celerity-regions", "celerity-tdag"),
            ("celerity-idag", "celerity-executor"),
            ("celerity-cdag", "celerity-cdag"),
            ("celerity-kernel", "celerity-regions"),
            ("celerity-new", "celerity-trace"),
            ("celerity", "celerity-new"),
            ("celerity-kernel-macros", "celerity-kernel"),
            ("celerity-example-kernels", "celerity-regions"),
            ("celerity-codec", "celerity-mutants"),
            ("celerity-idag", "celerity-kernel"),
            ("celerity", "celerity-testkit"),
            ("celerity-testkit", "celerity-benches"),
        ] {
            assert_eq!(violations(from, to), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_noticed() {
        assert_eq!(violations("celerity-unplaced", "celerity-regions"), 1);
    }
}
