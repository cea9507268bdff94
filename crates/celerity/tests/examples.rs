//! The example programs as their users meet them: verified runs over nodes and
//! devices, equal results, and clear errors for bad input.

#[path = "examples/cahn_hilliard.rs"]
mod cahn_hilliard;
#[path = "examples/mandelbrot.rs"]
mod mandelbrot;
#[path = "examples/mesh.rs"]
mod mesh;
#[path = "examples/pendulum.rs"]
mod pendulum;
#[path = "examples/prk.rs"]
mod prk;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Nodes and devices of the verified runs.
const CLUSTERS: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 2), (3, 1), (4, 3)];

/// As the programs print it: `2 nodes × 1 device`.
fn cluster(nodes: usize, devices: usize) -> String {
    let plural = |count| if count == 1 { "" } else { "s" };
    format!("{nodes} node{} × {devices} device{}", plural(nodes), plural(devices))
}

#[test]
fn wave_sim_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("wave_sim_clusters");
    let mut pictures = Vec::new();
    for (kernel, cut) in [("row", "bands"), ("item", "bands"), ("row", "tiles")] {
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{kernel}_{cut}_{nodes}_{devices}.png"));
            let mut run = on_cluster("wave_sim", nodes, devices);
            run.args([
                "--size", "61", "--steps", "40", "--verify", "--kernel", kernel, "--cut", cut,
            ]);
            let output = succeed(run.arg("--out").arg(&picture));
            assert!(output.contains("bit for bit"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
            pictures.push(fs::read(picture).unwrap());
        }
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
}

#[test]
fn wave_sim_writes_a_sequence_of_different_frames() {
    let folder = Folder::new("wave_sim_frames");
    let mut run = on_cluster("wave_sim", 2, 1);
    run.args(["--size", "48", "--steps", "30", "--frames", "3"]);
    succeed(run.arg("--out").arg(folder.path("frame.png")));
    let frames = [0, 1, 2].map(|frame| fs::read(folder.path(&format!("frame_00{frame}.png"))));
    let frames = frames.map(Result::unwrap);
    assert!(frames[0] != frames[1] && frames[1] != frames[2]);
    assert!(!folder.path("frame_003.png").exists());
}

#[test]
fn wave_sim_draws_one_cell_and_no_steps() {
    let folder = Folder::new("wave_sim_small");
    for (size, steps) in [("1", "3"), ("5", "0"), ("2", "1")] {
        let mut run = on_cluster("wave_sim", 2, 2);
        run.args(["--verify", "--size", size, "--steps", steps]);
        succeed(run.arg("--out").arg(folder.path("small.png")));
    }
}

#[test]
fn the_environment_asks_for_checks_and_graphs() {
    let folder = Folder::new("wave_sim_graphs");
    let mut run = on_cluster("wave_sim", 2, 1);
    run.args(["--size", "16", "--steps", "2", "--out"]).arg(folder.path("out.png"));
    run.env("CELERITY_CHECK", "on").env("CELERITY_LOOKAHEAD", "infinite");
    run.env("CELERITY_PROFILE_KERNEL", "on");
    let output = run.env("CELERITY_PRINT_GRAPHS", "on").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    for line in ["task graph:\nT0 epoch init", "command graph of N1:", "instruction graph of N0:"] {
        assert!(printed.contains(line), "{printed}");
    }
    let (_, table) = printed.split_once("kernels on N0 to N1:\n").expect(&printed);
    let step = table.lines().find(|line| line.starts_with("first_step ")).expect(table);
    // A launch on each of two nodes.
    assert_eq!(step.split_whitespace().nth(1), Some("2"), "{table}");
    let picture = folder.path("graphs.svg");
    succeed(run.env("CELERITY_PRINT_GRAPHS", &picture));
    assert!(fs::read_to_string(picture).unwrap().contains("&quot;up&quot;"));
    let output = run.env("CELERITY_PRINT_GRAPHS", "graphs.png").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && printed.contains(".svg, .dot or .txt"), "{printed}");
    run.env_remove("CELERITY_PRINT_GRAPHS");
    let output = run.env("CELERITY_CHECK", "maybe").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && printed.contains("off, cheap or on"), "{printed}");
}

#[test]
fn wave_sim_rejects_bad_input() {
    let folder = Folder::new("wave_sim_bad");
    let out = folder.path("out.png");
    let cases: [(&[&str], &str); 7] = [
        (&["--cut", "circles"], "--cut"),
        (&["--size", "0"], "--size"),
        (&["--size", "many"], "--size"),
        (&["--steps", "-1"], "-1"),
        (&["--frames", "few"], "--frames"),
        (&["--frames", "9", "--steps", "8"], "9 frames need at least as many steps"),
        (&["--kernel", "magic"], "--kernel"),
    ];
    for (arguments, expected) in cases {
        let mut run = on_cluster("wave_sim", 1, 1);
        let message = fail(run.args(arguments).arg("--out").arg(&out));
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?} left a picture");
    }
}

#[test]
fn wave_sim_without_frames_draws_nothing() {
    let out = Folder::new("wave_sim_blind").path("out.png");
    let mut run = on_cluster("wave_sim", 1, 1);
    let arguments = ["--size", "32", "--steps", "5", "--frames", "0", "--verify"];
    assert!(succeed(run.args(arguments).arg("--out").arg(&out)).contains("verified"));
    assert!(!out.exists(), "there is a picture");
}

#[test]
fn game_of_life_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("game_of_life_clusters");
    let mut pictures = Vec::new();
    for (kernel, cut) in [("row", "bands"), ("item", "bands"), ("row", "tiles"), ("item", "tiles")]
    {
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{kernel}_{cut}_{nodes}_{devices}.png"));
            let mut run = on_cluster("game_of_life", nodes, devices);
            run.args(["--size", "37", "--steps", "50", "--verify", "--kernel", kernel]);
            run.args(["--cut", cut]).env("CELERITY_CHECK", "on");
            let output = succeed(run.arg("--out").arg(&picture));
            assert!(output.contains("every cell equals"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
            pictures.push(fs::read(picture).unwrap());
        }
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
}

#[test]
fn game_of_life_goes_around_in_worlds_that_are_no_wider_than_a_border() {
    let folder = Folder::new("game_of_life_small");
    for (size, steps) in [("1", "3"), ("2", "4"), ("3", "5"), ("5", "0")] {
        // Bands by their former name.
        for cut in ["rows", "tiles"] {
            let mut run = on_cluster("game_of_life", 2, 2);
            run.args(["--verify", "--size", size, "--steps", steps, "--cut", cut]);
            succeed(run.arg("--out").arg(folder.path("small.png")));
        }
    }
}

#[test]
fn game_of_life_writes_a_sequence_of_different_frames() {
    let folder = Folder::new("game_of_life_frames");
    let mut run = on_cluster("game_of_life", 2, 1);
    run.args(["--size", "48", "--steps", "30", "--frames", "3"]);
    succeed(run.arg("--out").arg(folder.path("frame.png")));
    let frames = [0, 1, 2].map(|frame| fs::read(folder.path(&format!("frame_00{frame}.png"))));
    let frames = frames.map(Result::unwrap);
    assert!(frames[0] != frames[1] && frames[1] != frames[2]);
    assert!(!folder.path("frame_003.png").exists());
}

#[test]
fn game_of_life_rejects_bad_input() {
    let folder = Folder::new("game_of_life_bad");
    let out = folder.path("out.png");
    let cases: [(&[&str], &str); 4] = [
        (&["--size", "0"], "--size"),
        (&["--steps", "-1"], "-1"),
        (&["--frames", "9", "--steps", "8"], "9 frames need at least as many steps"),
        (&["--cut", "diagonally"], "--cut"),
    ];
    for (arguments, expected) in cases {
        let mut run = on_cluster("game_of_life", 1, 1);
        let message = fail(run.args(arguments).arg("--out").arg(&out));
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?} left a picture");
    }
}

#[test]
fn unwritable_outputs_are_errors_before_any_work() {
    let folder = Folder::new("unwritable");
    let nowhere = folder.path("missing/out");
    for (example, option) in [("wave_sim", "--out"), ("nbody", "--out"), ("nbody", "--plot")] {
        for path in [nowhere.as_path(), folder.0.as_path()] {
            // So many steps would take hours.
            let mut run = on_cluster(example, 1, 1);
            let message = fail(run.args(["--steps", "1000000000"]).arg(option).arg(path));
            assert!(message.contains("cannot write"), "{message}");
            assert!(message.contains(&path.display().to_string()), "{message}");
        }
    }
}

#[test]
fn nbody_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("nbody_clusters");
    let mut states = Vec::new();
    for (nodes, devices) in CLUSTERS {
        let state = folder.path(&format!("{nodes}_{devices}.csv"));
        let mut run = on_cluster("nbody", nodes, devices);
        run.args(["--steps", "24", "--dt", "14400", "--verify"]);
        let output = succeed(run.arg("--out").arg(&state));
        assert!(output.contains("bit for bit"), "{output}");
        assert!(output.contains("relative drift"), "{output}");
        states.push(fs::read(state).unwrap());
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "final states differ");
}

#[test]
fn nbody_brings_the_earth_back_after_a_sidereal_year() {
    let output = succeed(on_cluster("nbody", 1, 2).arg("--verify"));
    assert!(output.contains("from where DE430 has it"), "{output}");
}

#[test]
fn nbody_says_that_coarse_steps_lose_the_earth() {
    let message = fail(on_cluster("nbody", 1, 1).args(["--verify", "--steps", "100"]));
    assert!(message.contains("verification failed"), "{message}");
    assert!(message.contains("take more --steps"), "{message}");
}

#[test]
fn nbody_runs_random_stars() {
    let run = |seed| {
        let mut run = on_cluster("nbody", 2, 2);
        run.args(["--random", "300", "--steps", "5", "--verify", "--seed", seed]);
        let output = succeed(&mut run);
        output.lines().find(|line| line.starts_with("energy")).map(str::to_owned).unwrap()
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn nbody_computes_the_same_in_groups() {
    let mut run = on_cluster("nbody", 2, 2);
    run.args(["--random", "384", "--steps", "3", "--kernel", "group", "--verify"]);
    assert!(succeed(&mut run).contains("bit for bit"));
    let message = fail(on_cluster("nbody", 1, 1).args(["--kernel", "group"]));
    assert!(message.contains("[27] items in groups of [128]"), "{message}");
}

#[test]
fn nbody_continues_from_what_it_wrote_and_draws() {
    let folder = Folder::new("nbody_files");
    let (state, picture) = (folder.path("state.csv"), folder.path("orbits.png"));
    let mut run = on_cluster("nbody", 1, 1);
    run.args(["--steps", "10", "--dt", "3600"]).arg("--out").arg(&state);
    succeed(run.arg("--plot").arg(&picture));
    assert!(fs::read(picture).unwrap().starts_with(b"\x89PNG"));

    let again = folder.path("again.csv");
    let mut run = on_cluster("nbody", 2, 1);
    run.args(["--steps", "0"]).arg("--bodies").arg(&state);
    succeed(run.arg("--out").arg(&again));
    let bodies = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&state), bodies(&again));
    assert_eq!(bodies(&state).len(), 28, "a header and 27 bodies");
}

#[test]
fn nbody_points_at_what_is_wrong_with_a_file() {
    const HEADER: &str = "name,mass_kg,x_m,y_m,z_m,vx_m_s,vy_m_s,vz_m_s";
    let folder = Folder::new("nbody_bad");
    let cases = [
        (String::new(), ": no bodies"),
        ("# nothing\n".to_owned(), ": no bodies"),
        (format!("{HEADER}\n"), ": no bodies"),
        ("a,b\n1,2\n".to_owned(), ":1: expected the header"),
        (format!("{HEADER}\nSun,1,2,3\n"), ":2: expected 8 fields"),
        (
            format!("# c\n{HEADER}\nSun,1,0,zero,0,0,0,0\n"),
            ":3:9: expected a finite number for y_m, found \"zero\"",
        ),
        (
            format!("{HEADER}\nSun,-1,0,0,0,0,0,0\n"),
            ":2:5: expected a finite number that is not negative for mass_kg",
        ),
        (format!("{HEADER}\nSun,1,0,0,0,0,0,inf\n"), ":2:17: expected a finite number for vz_m_s"),
        (format!("{HEADER}\n,1,0,0,0,0,0,0\n"), ":2:1: expected a name"),
        (
            format!("{HEADER}\nSun,1,0,0,0,0,0,0\nMoon,1,1,0,0,0,0,0\nVulcan,1,-0,0,0,1,1,1\n"),
            ":4: \"Vulcan\" is at the same place as \"Sun\"",
        ),
    ];
    for (text, expected) in cases {
        let path = folder.path("bodies.csv");
        fs::write(&path, &text).unwrap();
        let message = fail(on_cluster("nbody", 1, 1).arg("--bodies").arg(&path));
        let expected = format!("{}{expected}", path.display());
        assert!(message.contains(&expected), "{text:?}: expected {expected:?} in {message}");
    }
}

#[test]
fn nbody_rejects_bad_options() {
    let folder = Folder::new("nbody_options");
    let missing = folder.path("missing.csv");
    let message = fail(on_cluster("nbody", 1, 1).arg("--bodies").arg(&missing));
    assert!(message.contains(&format!("cannot read \"{}\"", missing.display())), "{message}");

    let cases: [(&[&str], &str); 5] = [
        (&["--random", "0"], "--random"),
        (&["--dt", "0"], "greater than zero"),
        (&["--dt", "NaN"], "greater than zero"),
        (&["--steps", "1.5"], "--steps"),
        (&["--random", "5", "--bodies", "x.csv"], "cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("nbody", 1, 1).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn matmul_equals_its_sequential_twin_on_every_cluster() {
    for (kernel, size) in [("group", "80"), ("item", "80"), ("panel", "288")] {
        for (nodes, devices) in CLUSTERS {
            let mut run = on_cluster("matmul", nodes, devices);
            run.args(["--size", size, "--steps", "2", "--verify", "--kernel", kernel]);
            let output = succeed(&mut run);
            assert!(output.contains("bit for bit"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
        }
    }
}

#[test]
fn matmul_rejects_bad_input() {
    let cases: [(&[&str], &str); 6] = [
        (&["--size", "0"], "--size"),
        (&["--size", "80", "--kernel", "panel"], "a multiple of 32, not 80"),
        (&["--kernel", "magic"], "--kernel"),
        (&["--cublas", "--kernel", "item"], "--cublas"),
        // Here is none, and no GPU: either is said.
        (&["--cublas"], "cuBLAS"),
        (&["--size", "100"], "[100, 100] items in groups of [16, 16]"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("matmul", 1, 1).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn kernel_cost_compares_its_forms_and_prints_a_rate_for_each() {
    let mut run = on_cluster("kernel_cost", 1, 2);
    let output = succeed(run.args(["--size", "40", "--steps", "1", "--rounds", "1"]));
    assert_eq!(output.matches(" GB/s").count(), 11, "{output}");
    let mut run = on_cluster("kernel_cost", 2, 1);
    run.args(["--size", "20", "--steps", "1", "--rounds", "1", "--stencils"]);
    let output = succeed(run.args(["--space", "5", "3", "12"]));
    assert_eq!(output.matches(" GB/s").count(), 19, "{output}");
    let shapes =
        ["--size", "24", "--steps", "1", "--rounds", "1", "--shapes", "--space", "6", "6", "6"];
    let output = succeed(on_cluster("kernel_cost", 2, 1).args(shapes));
    assert_eq!(output.matches(" GB/s").count(), 12, "{output}");
    let [one, two] = [1, 2]
        .map(|nodes| succeed(on_cluster("kernel_cost", nodes, 2).args(shapes).arg("--checksum")));
    assert_eq!(one.matches(" checksum=").count(), 11, "{one}");
    assert_eq!(one, two);
    let output = succeed(on_cluster("kernel_cost", 2, 1).arg("--verify"));
    assert!(output.contains("bit for bit") && !output.contains("GB/s"), "{output}");
}

#[test]
fn reduce_cost_compares_bits_and_prints_a_rate_for_each_form() {
    let mut run = on_cluster("reduce_cost", 1, 2);
    let output = succeed(run.args(["--log2", "12", "--steps", "2", "--rounds", "1"]));
    assert_eq!(output.matches(" GB/s").count(), 7, "{output}");
    let output = succeed(on_cluster("reduce_cost", 2, 1).arg("--verify"));
    assert!(output.contains("bit for bit") && !output.contains("GB/s"), "{output}");
}

#[test]
fn black_scholes_equals_its_sequential_twin_on_every_cluster() {
    for (nodes, devices) in CLUSTERS {
        let mut run = on_cluster("black_scholes", nodes, devices);
        let output = succeed(run.args(["--options", "5003", "--steps", "90", "--verify"]));
        for what in ["bit for bit", "double precision"] {
            assert!(output.contains(what), "{output}");
        }
    }
    for (option, value) in [("--options", "0"), ("--steps", "91")] {
        let message = fail(on_cluster("black_scholes", 1, 1).args([option, value]));
        assert!(message.contains(option), "{message}");
    }
}

#[test]
fn distr_io_writes_the_same_file_on_every_cluster() {
    let folder = Folder::new("distr_io");
    let mut files = Vec::new();
    for (nodes, devices) in CLUSTERS {
        // Rows that nodes cannot share out evenly; fewer than there are nodes; one.
        for (rows, columns) in [("61", "7"), ("3", "100"), ("1", "1")] {
            let file = folder.path(&format!("{rows}_{nodes}_{devices}.bin"));
            let mut run = on_cluster("distr_io", nodes, devices);
            run.args(["--rows", rows, "--columns", columns, "--verify", "--out"]);
            let output = succeed(run.arg(&file));
            for what in ["byte by byte", "what was written", &cluster(nodes, devices)] {
                assert!(output.contains(what), "{output}");
            }
            files.push((rows, fs::read(file).unwrap()));
        }
    }
    for (rows, bytes) in [("61", 61 * 7 * 8), ("3", 3 * 100 * 8), ("1", 8)] {
        let of_size: Vec<_> = files.iter().filter(|(of, _)| *of == rows).collect();
        assert!(of_size.windows(2).all(|pair| pair[0] == pair[1]), "files of {rows} rows differ");
        assert_eq!(of_size[0].1.len(), bytes);
    }
    let mut run = on_cluster("distr_io", 2, 1);
    let message = fail(run.arg("--out").arg(folder.path("none").join("file")));
    assert!(
        message.contains("cannot write") && message.contains("choose another path"),
        "{message}"
    );
    let message = fail(on_cluster("distr_io", 1, 1).args(["--rows", "0"]));
    assert!(message.contains("--rows"), "{message}");
}

#[test]
fn rsim_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("rsim_clusters");
    let mut pictures = Vec::new();
    for (nodes, devices) in CLUSTERS {
        let picture = folder.path(&format!("{nodes}_{devices}.png"));
        let mut run = on_cluster("rsim", nodes, devices);
        run.args(["--edge", "5", "--steps", "30", "--verify"]);
        let output = succeed(run.arg("--out").arg(&picture));
        assert!(output.contains("bit for bit"), "{output}");
        pictures.push(fs::read(picture).unwrap());
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
    for (option, value) in [("--edge", "0"), ("--steps", "0"), ("--out", "missing/out.png")] {
        let message = fail(on_cluster("rsim", 1, 1).args([option, value]));
        assert!(message.contains(option) || message.contains("cannot write"), "{message}");
    }
}

#[test]
fn both_examples_explain_themselves() {
    for example in ["wave_sim", "nbody"] {
        let help = succeed(on_cluster(example, 1, 1).arg("--help"));
        for option in ["--steps", "--out", "--verify", "CELERITY_NODES"] {
            assert!(help.contains(option), "{example} does not mention {option}");
        }
    }
}

#[test]
fn bad_configuration_is_named() {
    let folder = Folder::new("configuration");
    let mut run = on_cluster("wave_sim", 1, 1);
    run.env("CELERITY_DEVICES", "none").arg("--out").arg(folder.path("out.png"));
    let message = fail(&mut run);
    assert!(message.contains("CELERITY_DEVICES") && message.contains("none"), "{message}");
}

/// A new folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("examples_{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program and what makes it small.
const SMALL: [(&str, &[&str]); 17] = [
    ("black_scholes", &["--options", "4096"]),
    ("cahn_hilliard", &["--size", "16", "--steps", "3"]),
    ("cg", &["--edge", "20", "--steps", "20"]),
    ("distr_io", &["--rows", "200", "--columns", "10"]),
    ("game_of_life", &["--size", "64", "--steps", "4"]),
    ("histogram", &[]),
    ("jacobi", &["--size", "64", "--steps", "5"]),
    ("kernel_cost", &["--size", "64"]),
    ("mandelbrot", &["--size", "64", "--bands", "4"]),
    ("matmul", &["--size", "64"]),
    ("mesh", &["--sphere", "2", "--steps", "4"]),
    ("nbody", &["--steps", "4"]),
    ("patterns", &["--pattern", "gather-broadcast"]),
    ("pendulum", &["--size", "16", "--steps", "9"]),
    ("reduce_cost", &["--log2", "10"]),
    ("rsim", &["--edge", "4", "--steps", "4"]),
    ("wave_sim", &["--size", "4096", "--steps", "10"]),
];

#[test]
fn dry_runs_schedule_every_program_for_many_nodes() {
    let folder = Folder::new("dry_runs");
    for (example, small) in SMALL {
        let dry = || {
            let mut run = on_cluster(example, 2, 4);
            run.env("CELERITY_DRY_RUN_NODES", "100").current_dir(folder.path("")).args(small);
            run
        };
        let Output { status, stdout, stderr } = dry().output().unwrap();
        let (said, printed) = (String::from_utf8_lossy(&stderr), String::from_utf8_lossy(&stdout));
        assert!(status.success(), "{example}: {said}");
        assert!(said.contains("celerity: dry run as N0 of 100 nodes: "), "{example}: {said}");
        assert_eq!(printed, "", "{example} prints results that it does not have");
        let refused = fail(dry().arg("--verify"));
        assert!(refused.contains("--verify needs results, and this is a dry run"), "{refused}");
    }
    let left = fs::read_dir(folder.path("")).unwrap().count();
    assert_eq!(left, 0, "a dry run writes no files");
}

/// Programs that are told how their index spaces are cut, and what makes them small.
const CUT: [(&str, &[&str]); 10] = [
    ("cahn_hilliard", &["--size", "11", "--steps", "6"]),
    ("game_of_life", &["--size", "37", "--steps", "9"]),
    ("jacobi", &["--size", "41", "--steps", "30"]),
    ("mandelbrot", &["--size", "31", "--bands", "2"]),
    ("matmul", &["--size", "80", "--steps", "2"]),
    ("matmul", &["--size", "80", "--steps", "2", "--kernel", "item"]),
    ("matmul", &["--size", "288", "--kernel", "panel"]),
    ("matmul", &["--size", "384", "--kernel", "block"]),
    ("pendulum", &["--size", "17", "--steps", "200"]),
    ("wave_sim", &["--size", "61", "--steps", "20"]),
];

#[test]
fn programs_compute_the_same_in_bands_in_tiles_and_in_chunks() {
    let folder = Folder::new("cuts");
    for (example, small) in CUT {
        let run = |cut: &str, chunks: &str| {
            let mut run = on_cluster(example, 2, 2);
            run.env("CELERITY_CHECK", "on").current_dir(folder.path("")).args(small);
            run.args(["--verify", "--checksum", "--cut", cut, "--oversubscribe", chunks]);
            let output = succeed(&mut run);
            assert!(output.contains("verified"), "{output}");
            let (_, checksum) = output.split_once("checksum=").expect("there is a RESULT line");
            checksum.split_whitespace().next().unwrap().to_owned()
        };
        let whole = run("bands", "1");
        for (cut, chunks) in [("bands", "3"), ("tiles", "1"), ("tiles", "3")] {
            assert_eq!(run(cut, chunks), whole, "{example} in {cut}, {chunks} per device");
        }
        for wrong in [["--cut", "circles"], ["--oversubscribe", "0"], ["--oversubscribe", "65"]] {
            let message = fail(on_cluster(example, 1, 1).args(wrong));
            assert!(message.contains(wrong[0]), "{message}");
        }
    }
}

#[test]
fn programs_are_cut_as_they_are_told() {
    let folder = Folder::new("cut_graphs");
    let path = folder.path("graphs.txt");
    // Of groups of 128 × 128 elements there are not enough for chunks.
    for (example, small) in CUT.into_iter().filter(|(_, small)| !small.contains(&"block")) {
        let graphs = |[cut, chunks]: [&str; 2]| {
            let mut run = on_cluster(example, 4, 1);
            run.env("CELERITY_PRINT_GRAPHS", &path).current_dir(folder.path("")).args(small);
            succeed(run.args(["--cut", cut, "--oversubscribe", chunks]));
            fs::read_to_string(&path).unwrap()
        };
        let ways = [["bands", "1"], ["bands", "3"], ["tiles", "1"], ["tiles", "3"]];
        let different: std::collections::BTreeSet<_> = ways.into_iter().map(graphs).collect();
        assert_eq!(different.len(), ways.len(), "{example} {small:?}");
    }
}

/// An example, to be run on so many nodes of so many devices.
fn on_cluster(example: &str, nodes: usize, devices: usize) -> Command {
    let mut command = Command::new(examples().join(example));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CELERITY_") {
            command.env_remove(name);
        }
    }
    command.env("CELERITY_NODES", nodes.to_string());
    command.env("CELERITY_DEVICES", devices.to_string());
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Standard output of a run that must succeed.
fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Standard error of a run that must fail, and not by a panic.
fn fail(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(matches!(status.code(), Some(1 | 2)), "{command:?}: {status}\n{stderr}");
    assert!(!stderr.contains("panicked at"), "{command:?}: {stderr}");
    stderr
}

/// The folder of the built examples.
///
/// Whether they are built beside the tests depends on how the tests are
/// started, and what lies there may be of an older build. So they are built
/// here, with the same profile into the same target folder; that costs a
/// fraction of a second if nothing has changed. After a build of the whole
/// workspace, the whole is built here, too: the features of what examples
/// depend on are then the same, and nothing is compiled twice.
fn examples() -> &'static Path {
    static EXAMPLES: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile_folder = test.ancestors().nth(2).expect("tests lie in target/profile/deps");
        let profile = match profile_folder.file_name().and_then(OsStr::to_str) {
            Some("debug") => "dev",
            Some(other) => other,
            None => unreachable!("cargo's folders have names"),
        };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--examples", "--profile", profile]);
        build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        build.arg("--target-dir").arg(profile_folder.parent().expect("profiles lie in a folder"));
        if std::env::var_os("XTASK_WHOLE_WORKSPACE").is_some() {
            build.arg("--workspace");
        }
        let status = build.status().unwrap();
        assert!(status.success(), "the examples do not build");
        profile_folder.join("examples")
    })
}

#[test]
fn jacobi_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("jacobi_clusters");
    let mut pictures = Vec::new();
    for (nodes, devices) in CLUSTERS {
        let picture = folder.path(&format!("{nodes}_{devices}.png"));
        let mut run = on_cluster("jacobi", nodes, devices);
        run.args(["--size", "41", "--tolerance", "1e-3", "--verify"]);
        let output = succeed(run.arg("--out").arg(&picture));
        assert!(output.contains("bit for bit"), "{output}");
        pictures.push(fs::read(picture).unwrap());
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
}

#[test]
fn jacobi_stops_where_its_tolerance_says_however_far_ahead_it_is() {
    let folder = Folder::new("jacobi_ahead");
    let steps = |ahead: &str| -> usize {
        let mut run = on_cluster("jacobi", 2, 1);
        run.args(["--size", "24", "--tolerance", "0.01", "--ahead", ahead, "--verify"]);
        let output = succeed(run.arg("--out").arg(folder.path("out.png")));
        let (_, steps) = output.split_once("steps=").expect("there is a RESULT line");
        steps.split_whitespace().next().unwrap().parse().unwrap()
    };
    let first = steps("0");
    assert!(first > 5, "{first} steps");
    assert_eq!([steps("1"), steps("7")], [first + 1, first + 7]);
    let mut run = on_cluster("jacobi", 1, 1);
    let message = fail(run.args(["--tolerance", "0"]));
    assert!(message.contains("above 0"), "{message}");
}

#[test]
fn histogram_counts_what_a_loop_counts() {
    let folder = Folder::new("histogram");
    let text = folder.path("text.txt");
    fs::write(&text, "a\nab\nabc\n".repeat(100)).unwrap();
    for ((nodes, devices), kernel) in
        CLUSTERS.iter().flat_map(|&cluster| ["item", "group"].map(|kernel| (cluster, kernel)))
    {
        let out = folder.path("out.png");
        let mut run = on_cluster("histogram", nodes, devices);
        run.arg(&text).args(["--verify", "--kernel", kernel, "--out"]);
        let output = succeed(run.arg(&out));
        assert!(output.contains("verified") && output.contains("900 bytes"), "{output}");
        let mut run = on_cluster("histogram", nodes, devices);
        run.args(["--random", "20000", "--steps", "2", "--verify", "--kernel", kernel, "--out"]);
        assert!(succeed(run.arg(&out)).contains("verified"));
    }
    fs::write(&text, "").unwrap();
    let message = fail(on_cluster("histogram", 1, 1).arg(&text));
    assert!(message.contains("no bytes to count"), "{message}");
    let message = fail(on_cluster("histogram", 1, 1).arg(folder.path("none")));
    assert!(message.contains("cannot read"), "{message}");
}

#[test]
fn groups_of_histogram_find_the_ends_of_their_parts() {
    let folder = Folder::new("histogram_groups");
    let text = folder.path("text.bin");
    // One byte and none of a pair; around what an item loads at once; several groups; counts that are handed on.
    let texts = [1, 2, 31, 32, 33, 34, 1000, 300_001].map(|len| vec![b'\n'; len]);
    let mixed: Vec<u8> = (0..200_000_u64).map(|at| (at * at / 128) as u8).collect();
    for (bytes, cluster) in
        texts.iter().chain([&mixed]).zip([(1, 1), (2, 2), (1, 3)].iter().cycle())
    {
        fs::write(&text, bytes).unwrap();
        let mut run = on_cluster("histogram", cluster.0, cluster.1);
        run.arg(&text).args(["--kernel", "group", "--verify", "--out"]);
        assert!(succeed(run.arg(folder.path("out.png"))).contains("verified"), "{}", bytes.len());
    }
}

#[test]
fn patterns_compute_what_a_loop_computes() {
    for pattern in ["all-gather", "gather-scatter", "gather-broadcast", "all-to-all", "stencil"] {
        for (nodes, devices) in CLUSTERS {
            // More nodes than elements, a share that does not come out even, and one that does.
            for size in ["1", "37", "48"] {
                let mut run = on_cluster("patterns", nodes, devices);
                run.args(["--pattern", pattern, "--size", size, "--steps", "5", "--verify"]);
                let output = succeed(run.env("CELERITY_CHECK", "on"));
                assert!(output.contains("verified"), "{output}");
                assert!(output.contains(&cluster(nodes, devices)), "{output}");
            }
        }
    }
    let mut run = on_cluster("patterns", 1, 1);
    let message = fail(run.args(["--pattern", "stencil", "--size", "20000"]));
    assert!(message.contains("less than 16,384"), "{message}");
}

#[test]
fn cg_equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("cg_clusters");
    for (edge, dims) in [("30", "2"), ("9", "3"), ("200", "1")] {
        let mut found = Vec::new();
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{dims}_{nodes}_{devices}.png"));
            let mut run = on_cluster("cg", nodes, devices);
            run.args(["--edge", edge, "--dims", dims, "--verify", "--checksum"]);
            let output = succeed(run.env("CELERITY_CHECK", "on").arg("--out").arg(&picture));
            assert!(output.contains("bit for bit"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
            let (_, checksum) = output.split_once("checksum=").expect("there is a RESULT line");
            let checksum = checksum.split_whitespace().next().map(str::to_owned);
            found.push((checksum, fs::read(picture).unwrap()));
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{dims} dimensions differ");
    }
}

#[test]
fn cg_solves_the_smallest_systems_and_ends_where_it_is_told() {
    let folder = Folder::new("cg_small");
    let steps = |arguments: &[&str]| -> usize {
        let mut run = on_cluster("cg", 2, 2);
        let output =
            succeed(run.args(arguments).arg("--verify").arg("--out").arg(folder.path("out.png")));
        let (_, steps) = output.split_once("steps=").expect("there is a RESULT line");
        steps.split_whitespace().next().unwrap().parse().unwrap()
    };
    // One unknown is found in one step, and stays as it is.
    assert_eq!(steps(&["--edge", "1", "--dims", "3", "--steps", "5"]), 5);
    assert_eq!(steps(&["--edge", "2", "--steps", "1"]), 1);
    assert_eq!(steps(&["--edge", "12", "--steps", "7", "--tolerance", "1e-30"]), 7);
    // It looks at every third residual, and at one while it computes on.
    let [often, seldom] = ["1", "3"].map(|look| steps(&["--edge", "12", "--look", look]));
    assert!(often < 40 && seldom % 3 == 0 && seldom >= often, "{often} and {seldom} steps");
    let cases: [(&[&str], &str); 4] = [
        (&["--edge", "0"], "--edge"),
        (&["--dims", "4"], "--dims"),
        (&["--tolerance", "0"], "above 0"),
        (&["--edge", "1000", "--dims", "3"], "1000000000 unknowns are too many"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("cg", 1, 1).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
