//! The rule that modules of a crate form no circle: what is below knows nothing of what is above.
//!
//! Looked at are modules side by side, each with all that is below it: if one names something of
//! another, and that of the first, in one or more steps, neither can be read, tested or moved
//! without the other. A module and those inside of it are one unit, and may name each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::modules::{Modules, Path};
use super::sources::SourceFile;
use crate::workspace::Workspace;

/// Finds circles in the crates of the workspace, tests, examples and benchmarks aside.
pub(super) fn check(workspace: &Workspace, files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &workspace.packages {
        let roots = package.targets.iter().filter(|target| is_production(&target.kind));
        let found: Vec<_> =
            roots.flat_map(|root| circles(&workspace.relative(&root.source), files)).collect();
        violations.extend(found.iter().map(|circle| {
            let advice = format!("modules form a circle: {circle}; put what they share below");
            Violation::new(&package.name, advice)
        }));
    }
    violations
}

fn is_production(kind: &str) -> bool {
    ["lib", "proc-macro", "bin"].contains(&kind)
}

/// Which modules, side by side, name which others, each with one place where it does.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The circles of one crate, each as the modules in it and where they stand.
fn circles(root: &str, files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for (parent, arrows) in side_by_side(&Modules::of(root, files)) {
        let mut seen = BTreeSet::new();
        for module in arrows.keys() {
            if seen.contains(module) {
                continue;
            }
            let above = reached(&arrows, module);
            let circle: Vec<_> = above
                .iter()
                .filter(|other| reached(&arrows, other).contains(module))
                .cloned()
                .collect();
            if !circle.is_empty() {
                found.push(describe(&parent, &arrows, &circle));
                seen.extend(circle);
            }
        }
    }
    found
}

/// `a, b in crate (a::c names b::d, b names a)`.
fn describe(parent: &Path, arrows: &Arrows, circle: &[String]) -> String {
    let place = [&["crate".to_owned()], parent.as_slice()].concat().join("::");
    let of = |module| arrows.get(module).into_iter().flatten();
    let inside = circle.iter().flat_map(of).filter(|(named, _)| circle.contains(named));
    let examples: Vec<_> = inside.map(|(_, example)| example.as_str()).collect();
    format!("{} in {place} ({})", circle.join(", "), examples.join(", "))
}

/// The arrows between modules of the same parent.
fn side_by_side(modules: &Modules) -> BTreeMap<Path, Arrows> {
    let mut all = BTreeMap::<Path, Arrows>::new();
    for (from, to) in modules.arrows() {
        let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        if let (Some(below), Some(above)) = (from.get(shared), to.get(shared)) {
            let arrows = all.entry(from[..shared].to_vec()).or_default();
            let example = [from, &to].map(|path| path[shared..].join("::")).join(" names ");
            arrows.entry(below.clone()).or_default().entry(above.clone()).or_insert(example);
        }
    }
    all
}

/// All that a module names, in one or more steps.
fn reached(arrows: &Arrows, from: &str) -> BTreeSet<String> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        for named in arrows.get(next).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(named.clone()) {
                left.push(named);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::assert_kept;
    use crate::tidy::sources::load;

    fn found(sources: &[(&str, &str)]) -> Vec<String> {
        let file = |&(path, text): &(&str, &str)| SourceFile {
            path: format!("a/src/{path}"),
            text: text.into(),
        };
        circles("a/src/lib.rs", &sources.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn modules_of_this_workspace_form_no_circle() {
        let workspace = Workspace::load().unwrap();
        assert_kept(&check(&workspace, &load(&workspace.root).unwrap()));
    }

    #[test]
    fn a_circle_is_noticed_however_it_is_spelled() {
        let root = ("lib.rs", "mod a; mod b; pub use b::{B, inner::C as D};");
        for in_a in [
            "use crate::b::B;",
            "use crate::{b::{self, B}, other};",
            "fn f() { super::b::f() }",
            "fn f() -> crate::D { todo() }",
            "mod c { use super::super::b; }",
            "pub(crate) use crate::B;",
        ] {
            let b = ("b.rs", "pub mod inner; use crate::a::A;");
            let found = found(&[root, ("a.rs", in_a), b, ("b/inner.rs", "pub struct C;")]);
            assert_eq!(found.len(), 1, "{in_a}");
            assert!(found[0].starts_with("a, b in crate (a"), "{in_a}: {found:?}");
            assert!(found[0].ends_with(", b names a)"), "{in_a}: {found:?}");
        }
    }

    #[test]
    fn longer_circles_and_those_further_inside_are_noticed() {
        let root = ("lib.rs", "mod a;");
        let a = ("a/mod.rs", "mod x; mod y; mod z; mod free;");
        let [x, y] = [("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use crate::a::z;")];
        let free = ("a/free.rs", "use super::x::X;");
        let circle = found(&[root, a, x, y, ("a/z.rs", "use super::x;"), free]);
        assert_eq!(circle, ["x, y, z in crate::a (x names y, y names z, z names x)"]);
        assert!(found(&[root, a, x, y, ("a/z.rs", "use std::x;"), free]).is_empty());
    }

    #[test]
    fn parents_tests_comments_and_texts_make_no_circle() {
        let root = ("lib.rs", "mod a; mod b; use a::A; use b::B;");
        let a = ("a.rs", "mod c; use crate::b::B; use c::C;");
        let c = ("a/c.rs", "use super::A; use crate::b;");
        for in_b in [
            "// crate::a\nfn f() -> &'static str { \"crate::a::A\" }",
            "#[cfg(test)]\nmod tests { use crate::a::A; }",
            "#[cfg(test)]\nmod tests;\n",
            "#[cfg(test)]\n#[expect(x)]\nuse crate::a::A;\nfn f(b: &[u8]) {}",
            "pub(in crate::b) struct B; impl B { fn f(self) -> Self { self.g() } }",
        ] {
            let tests = ("b/tests.rs", "use crate::a::A;");
            let circles = found(&[root, a, c, ("b.rs", in_b), tests]);
            assert!(circles.is_empty(), "{in_b}: {circles:?}");
        }
    }
}
