//! Crates of kernels outside of this workspace: one that is right, and some that are not.
//!
//! Needs a compiler for devices. Everything is built in one folder below the target folder, so
//! that what the crates depend on is built once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RIGHT: &str = "\
#[celerity_kernel::kernel]
pub fn grow(item: Item<1>, x: &mut f32, by: f32) {
    *x += math::exp(by) + item[0] as f32;
}
";

/// Compiles for hosts, where `std` has these methods, and not for devices.
const METHODS_OF_STD: &str = "\
#[celerity_kernel::kernel]
pub fn grow(_item: Item<1>, x: &mut f32, by: f32) {
    *x += by.sqrt() + f32::sin(by);
}
";

/// By a path that hosts have alone, in a function that a kernel calls.
const MEASURES_BY_STD: &str = "
fn bytes() -> usize {
    std::mem::size_of::<f32>()
}
#[celerity_kernel::kernel]
pub fn measure(_item: Item<1>, x: &mut f32) {
    *x = bytes() as f32;
}
";

/// The same in a kernel.
const USES_STD_IN_A_KERNEL: &str = "
#[celerity_kernel::kernel]
pub fn measure(_item: Item<1>, x: &mut f32) {
    *x = std::mem::size_of::<f32>() as f32;
}
";

const RECURSIVE: &str = "\
#[inline(never)]
fn collatz(n: u32) -> u32 {
    match n {
        0 | 1 => 0,
        n if n % 2 == 0 => 1 + steps(n / 2),
        n => 1 + steps(3 * n + 1),
    }
}

#[inline(never)]
fn steps(n: u32) -> u32 {
    collatz(n) ^ n
}

#[celerity_kernel::kernel]
pub fn count(item: Item<1>, x: &mut u32) {
    *x = steps(item[0] as u32);
}
";

const CHANGING: &str = "\
use core::sync::atomic::{AtomicU32, Ordering};

static mut LAST: u32 = 0;
static CALLS: AtomicU32 = AtomicU32::new(0);
static TABLE: [u32; 4] = [3, 1, 4, 1];

/// For hosts: no kernel calls it.
pub fn calls() -> u32 {
    CALLS.load(Ordering::Relaxed)
}
";

const USES_STATIC_MUT: &str = "\
#[celerity_kernel::kernel]
pub fn follow(item: Item<1>, x: &mut u32) {
    #[allow(unsafe_code)]
    unsafe {
        *x = LAST;
        LAST = TABLE[item[0] % 4];
    }
}
";

const CALLS_WHAT_USES_ATOMIC: &str = "\
#[inline(never)]
fn next(n: u32) -> u32 {
    n + CALLS.fetch_add(1, Ordering::Relaxed)
}

#[celerity_kernel::kernel]
pub fn draw(_item: Item<1>, x: &mut u32) {
    *x = next(*x);
}
";

const USES_CONSTANT: &str = "\
#[celerity_kernel::kernel]
pub fn look_up(item: Item<1>, x: &mut u32) {
    *x = TABLE[item[0] % 4];
}
";

const FOREIGN: &str = "\
#[allow(unsafe_code)]
unsafe extern \"C\" {
    safe fn elsewhere(x: f32) -> f32;
}

#[celerity_kernel::kernel]
pub fn call(_item: Item<1>, x: &mut f32) {
    *x = elsewhere(*x);
}
";

/// Kernels of one item each, and what their code must and must not have in it: `x` is the item's
/// element.
const NATIVE: [(&str, &str, &str, &[&str]); 19] = [
    ("ones", "u32", "x.count_ones()", &["popc.b32"]),
    ("ones_64", "u64", "u64::from(x.count_ones())", &["popc.b64"]),
    ("leading", "u32", "x.leading_zeros()", &["clz.b32"]),
    ("leading_64", "u64", "u64::from(x.leading_zeros())", &["clz.b64"]),
    // The bits below the lowest one, counted: as few instructions as reversing and counting.
    ("trailing", "u32", "x.trailing_zeros()", &["popc.b32"]),
    ("rotated", "u32", "x.rotate_left(7)", &["shf.l.wrap.b32"]),
    ("rotated_64", "u64", "x.rotate_left(7)", &["shf.l.wrap.b32"]),
    ("reversed", "u32", "x.reverse_bits()", &["brev.b32"]),
    ("reversed_64", "u64", "x.reverse_bits()", &["brev.b64"]),
    ("swapped", "u32", "x.swap_bytes()", &["prmt.b32"]),
    ("swapped_64", "u64", "x.swap_bytes()", &["prmt.b32"]),
    ("saturating", "u32", "x.saturating_add(77)", &["min.u32"]),
    ("checked", "u64", "x.checked_mul(x).unwrap_or(3)", &["mul.hi.u64", "mul.lo.s64"]),
    ("wrapping", "u64", "x.wrapping_mul(0x9e37_79b9_7f4a_7c15)", &["mul.lo.s64"]),
    ("upper_half", "u64", "((u128::from(x) * u128::from(x ^ 5)) >> 64) as u64", &["mul.hi.u64"]),
    ("wide", "u128", "x.wrapping_mul(x ^ 7)", &["mul.hi.u64", "ld.global.nc.v2."]),
    // Small vectors are loaded and stored at once.
    ("four", "[f32; 4]", "x.map(|x| x * 2.0)", &["ld.global.nc.v4.", "st.global.v4."]),
    ("two", "[f64; 2]", "x.map(|x| x * 2.0)", &["ld.global.nc.v2.", "st.global.v2."]),
    (
        "aligned",
        "Quad",
        "Quad { x: x.w, y: x.z, z: x.y, w: x.x }",
        &["ld.global.nc.v4.", "st.global.v4."],
    ),
];

/// All of [`NATIVE`].
fn native() -> String {
    let quad = "#[derive(Clone, Copy, Debug, celerity_kernel::PlainData)]\n\
                #[repr(C, align(16))]\npub struct Quad { x: f32, y: f32, z: f32, w: f32 }\n";
    let kernel = |(name, ty, value, _): (&str, &str, &str, _)| {
        format!(
            "#[celerity_kernel::kernel]\npub fn {name}(_item: Item<1>, (x, out): (&{ty}, &mut \
             {ty})) {{ let x = *x; *out = {value}; }}\n"
        )
    };
    quad.to_owned() + &NATIVE.map(kernel).concat()
}

#[test]
fn a_crate_of_kernels_is_compiled_or_says_why_not() {
    let project = Project::new();
    let output = project.build(RIGHT, &[]);
    assert!(output.status.success(), "{}", stderr(&output));

    let wrong = project.build(METHODS_OF_STD, &[]);
    let message = stderr(&wrong);
    assert!(!wrong.status.success() && message.contains("src/lib.rs:7:"), "{message}");
    assert!(message.contains("the kernels of `outside-kernels` did not compile"), "{message}");
    for call in ["sqrt", "sin"].map(|name| format!("call `celerity_kernel::math::{name}(x)`")) {
        assert!(message.contains(&call), "{message}");
    }
    // Nothing else is in the way: no trait to import, no warning that is not the user's.
    assert!(!message.contains("ealed") && !message.contains("unused import"), "{message}");

    let careless = project.build_under("", RIGHT, &[]);
    assert!(careless.status.success(), "{}", stderr(&careless));
    let needs_std = stderr(&project.build_under("", MEASURES_BY_STD, &[]));
    assert!(needs_std.contains("help: devices have no `std`"), "{needs_std}");
    assert_eq!(needs_std.matches("error[E").count(), 1, "{needs_std}");
    let refused = stderr(&project.build(USES_STD_IN_A_KERNEL, &[]));
    assert!(refused.contains("cannot use `std`, which devices lack"), "{refused}");
    assert!(!refused.contains("unused import") && !refused.contains("error[E"), "{refused}");

    let recursive = stderr(&project.build(RECURSIVE, &[]));
    assert!(recursive.contains("kernels cannot be recursive"), "{recursive}");
    for function in ["`collatz` (src/lib.rs:6) -> `steps`", "`steps` (src/lib.rs:15) -> `collatz`"]
    {
        assert!(recursive.contains(function), "{recursive}");
    }

    let variable = stderr(&project.build(&[CHANGING, USES_STATIC_MUT].concat(), &[]));
    let what = "kernel `follow` uses `LAST` (src/lib.rs:7), a static variable that can change";
    assert!(variable.contains(what), "{variable}");
    let atomic = stderr(&project.build(&[CHANGING, CALLS_WHAT_USES_ATOMIC].concat(), &[]));
    assert!(atomic.contains("kernel `draw` uses `CALLS` (src/lib.rs:8)"), "{atomic}");
    let constant = project.build(&[CHANGING, USES_CONSTANT].concat(), &[]);
    assert!(constant.status.success(), "{}", stderr(&constant));

    let foreign = stderr(&project.build(FOREIGN, &[]));
    assert!(foreign.contains("`elsewhere` is called on devices"), "{foreign}");

    let unusable = project.build(RIGHT, &[("CELERITY_DEVICE_RUSTC", "no-such-rustc")]);
    let message = stderr(&unusable);
    assert!(message.contains("CELERITY_DEVICE_RUSTC is no-such-rustc"), "{message}");

    let other = project.source_of_core("1.0.0");
    let unpaired = project.build(RIGHT, &[("CELERITY_DEVICE_RUST_SRC", &other)]);
    let message = stderr(&unpaired);
    assert!(message.contains("is version 1.0.0: install both in one version"), "{message}");

    let native = project.build(&native(), &[]);
    assert!(native.status.success(), "{}", stderr(&native));
    let ptx = Project::ptx();
    for (name, _, _, instructions) in NATIVE {
        let body = ptx.split_once(&format!(".entry {name}(")).expect("the kernel is there").1;
        let body = body.split_once("\n}").expect("it ends").0;
        for instruction in instructions {
            assert!(body.contains(instruction), "{name} has no {instruction}: {body}");
        }
        assert!(!body.contains("call") && !body.contains(".local"), "{name}: {body}");
    }

    // What failed in between has left nothing behind.
    let again = project.build(RIGHT, &[]);
    assert!(again.status.success(), "{}", stderr(&again));
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A temporary Cargo project, removed when dropped.
struct Project {
    dir: PathBuf,
}

impl Project {
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("celerity-kernels-{}", std::process::id()));
        fs::create_dir_all(dir.join("src")).unwrap();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = |name: &str| crates.join(name).display().to_string();
        let manifest = format!(
            "[package]\nname = \"outside-kernels\"\nedition = \"2024\"\n[workspace]\n\
             [dependencies]\ncelerity-kernel = {{ path = {:?} }}\n\
             [build-dependencies]\ncelerity-kernel-build = {{ path = {:?} }}\n",
            path("kernel"),
            path("kernel-build")
        );
        fs::write(dir.join("Cargo.toml"), manifest).unwrap();
        fs::write(dir.join("build.rs"), "fn main() { celerity_kernel_build::build(); }").unwrap();
        // The same versions as in the workspace: they are known to work, and already downloaded.
        fs::copy(crates.join("../Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        Self { dir }
    }

    /// A folder that claims to hold the source of `core`, of the given version.
    fn source_of_core(&self, version: &str) -> String {
        let library = self.dir.join("rust/library");
        fs::create_dir_all(library.join("core/src")).unwrap();
        fs::write(library.join("core/src/lib.rs"), "").unwrap();
        fs::write(self.dir.join("rust/version"), version).unwrap();
        library.display().to_string()
    }

    /// What was compiled for devices by the latest build that went well.
    fn ptx() -> String {
        let built = Self::target().join("debug/build");
        let scripts = fs::read_dir(built).unwrap().map(|entry| entry.unwrap().path());
        let modules = scripts.map(|script| script.join("out/kernels_80.ptx"));
        let newest = modules.filter(|module| module.exists());
        let newest = newest.max_by_key(|module| fs::metadata(module).unwrap().modified().unwrap());
        fs::read_to_string(newest.expect("something was compiled")).unwrap()
    }

    fn target() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-kernels")
    }

    /// Builds the crate with these kernels.
    fn build(&self, kernels: &str, variables: &[(&str, &str)]) -> Output {
        self.build_under("#![no_std]\n", kernels, variables)
    }

    /// The same below these attributes.
    fn build_under(&self, attributes: &str, kernels: &str, variables: &[(&str, &str)]) -> Output {
        let root = "use celerity_kernel::{Item, math};\ncelerity_kernel::module!();\n";
        let anything = "const _: fn(f32) -> f32 = math::sqrt;\n";
        let source = format!("{attributes}{root}{anything}{kernels}");
        fs::write(self.dir.join("src/lib.rs"), source).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--target-dir"]).arg(Self::target()).current_dir(&self.dir);
        cargo.envs(variables.iter().copied()).env_remove("RUSTFLAGS");
        cargo.output().expect("Cargo starts")
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // What is left behind in the folder for temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
