//! The Parallel Research Kernels: each validates on every cluster, at sizes that do not come out even
//! and at the least ones; what it prints; and errors in the suite's words.

use crate::{CLUSTERS, fail, on_cluster, succeed};

/// A kernel of the suite and its arguments, which take no long.
const RUNS: [&str; 21] = [
    "nstream 3 1001 0",
    "nstream 1 12 7",
    "stencil 3 37",
    "stencil 2 24 star 5",
    "stencil 2 29 grid 3",
    "stencil 1 5 grid 2",
    "transpose 3 96",
    "transpose 2 15 5",
    "transpose 2 13 0",
    "transpose 2 61 0",
    "transpose 2 128 64 --kernel group",
    "transpose 2 160 --kernel group",
    "reduce 3 101",
    "reduce 1 1",
    "sparse 3 4 2",
    "dgemm 2 36 12 1",
    "dgemm 2 35 7 0",
    "dgemm 1 128 64 1 --kernel group",
    "p2p 3 31 23",
    "p2p 2 13 40 7",
    "pic 5 24 500 1 2 GEOMETRIC 0.9",
];

#[test]
fn all_kernels_validate_on_every_cluster() {
    for arguments in RUNS {
        for (nodes, devices) in CLUSTERS {
            let mut run = on_cluster("prk", nodes, devices);
            run.args(arguments.split(' ')).env("CELERITY_CHECK", "on");
            let output = succeed(&mut run);
            assert!(output.contains("\nSolution validates\nRate ("), "{arguments}: {output}");
            let ranks = output.lines().find(|line| line.starts_with("Number of ranks"));
            let ranks = ranks.and_then(|line| line.rsplit(' ').next());
            assert_eq!(ranks, Some((nodes * devices).to_string().as_str()), "{output}");
        }
    }
}

#[test]
fn a_matrix_is_transposed_by_messages_from_all_to_all() {
    for kernel in ["row", "group"] {
        let mut run = on_cluster("prk", 3, 1);
        run.env("CELERITY_PRINT_GRAPHS", "on").env("CELERITY_COLLECTIVES", "off");
        let output = run.args(["transpose", "1", "96", "32", "--kernel", kernel]).output().unwrap();
        let graphs = String::from_utf8_lossy(&output.stderr);
        for (node, others) in [("N0", ["N1", "N2"]), ("N1", ["N0", "N2"]), ("N2", ["N0", "N1"])] {
            let is_push = |line: &&str| {
                line.starts_with(&format!("{node} C"))
                    && line.contains(" push ")
                    && line.contains("\"a\"")
                    && others.iter().all(|other| line.contains(&format!("to {other}")))
            };
            // The first time, too, which warms up.
            assert_eq!(graphs.lines().filter(is_push).count(), 2, "{kernel}, {node}: {graphs}");
        }
    }
}

#[test]
fn particles_are_placed_as_the_suite_places_them() {
    let cases = [
        // As many as the suite's MPI program places with these arguments.
        ("pic 2 100 10000 1 0 GEOMETRIC 0.99", 9643),
        ("pic 2 50 20000 0 1 SINUSOIDAL", 19995),
        ("pic 2 50 5000 2 3 LINEAR 1.0 3.0", 5037),
        ("pic 2 50 5000 0 0 PATCH 3 20 10 45", 5004),
    ];
    for (arguments, placed) in cases {
        let output = succeed(on_cluster("prk", 2, 1).args(arguments.split(' ')));
        let line = format!("Number of particles placed         = {placed}\n");
        assert!(output.contains(&line), "{arguments}: {output}");
    }
}

#[test]
fn a_group_of_lines_is_called_what_the_suite_calls_it() {
    let output = succeed(on_cluster("prk", 2, 1).args("p2p 2 20 20 5".split(' ')));
    assert!(output.contains("Group factor                   = 5 (cheating!)"), "{output}");
    let rate = output.lines().last().unwrap();
    assert!(rate.starts_with("Rate (MFlops/s): -") && rate.contains("Avg time (s): -"), "{rate}");
}

#[test]
fn refuses_what_does_not_go_together() {
    let cases = [
        ("nstream 0 10 0", "<ITERATIONS>"),
        ("nstream 1 3 0", "Invalid vector length: 3"),
        ("stencil 1 4", "Stencil radius 2 exceeds grid size 4"),
        ("stencil 1 1 star 2", "grid size 1 must be at least # ranks: 4"),
        ("transpose 1 3", "matrix order 3 should at least # procs 4"),
        ("transpose 1 33", "should be divisible by tile size 32"),
        ("transpose 1 48 16 --kernel group", "multiples of 32, not 48 and 16"),
        ("reduce 1 0", "<LENGTH>"),
        ("sparse 1 1 0", "Grid size 2 must be at least equal to # procs 4"),
        ("sparse 1 2 2", "Grid extent 4 smaller than stencil diameter 2*2+1= 5"),
        ("dgemm 1 3 1 1", "matrix order too small: 3"),
        ("dgemm 1 10 4 1", "should be divisible by block size 4"),
        ("dgemm 1 96 32 1 --kernel group", "multiples of 64, not 96 and 32"),
        ("p2p 1 4 9", "First grid dimension 4 must be >= number of ranks 4"),
        ("pic 1 7 10 0 0 SINUSOIDAL", "must be positive and even: 7"),
        ("pic 1 8 10 5 0 SINUSOIDAL", "k-value too large: 5"),
        ("pic 1 8 10 0 9 SINUSOIDAL", "m-value too large: 9"),
        ("pic 1 8 10 0 0 GEOMETRIC", "Not enough arguments for GEOMETRIC"),
        ("pic 1 8 10 0 0 LINEAR 2 1", "negative particle density"),
        ("pic 1 8 10 0 0 PATCH 3 2 0 1", "inconsistent initial patch"),
        ("pic 1 1000 1 0 0 PATCH 0 1 0 1000000", "inconsistent initial patch"),
        ("pic 1 8 1 0 0 GEOMETRIC inf", "no particles were placed"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("prk", 2, 2).args(arguments.split(' ')));
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

#[test]
fn dry_runs_schedule_all_kernels_for_many_nodes() {
    for arguments in RUNS.iter().filter(|run| run.ends_with("1001 0") || run.contains("96")) {
        let mut run = on_cluster("prk", 1, 1);
        run.env("CELERITY_DRY_RUN_NODES", "12").args(arguments.split(' '));
        assert_eq!(succeed(&mut run), "", "{arguments} prints results that it does not have");
    }
}
