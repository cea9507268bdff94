//! The pendulum over magnets: the same board on every cluster, boards and numbers of magnets at their
//! limits, and what a symmetric board must show.

use std::fs;

use crate::{CLUSTERS, Folder, cluster, fail, on_cluster, succeed};

#[test]
fn equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("pendulum_clusters");
    let mut pictures = Vec::new();
    for chunks in ["1", "4"] {
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{chunks}_{nodes}_{devices}.png"));
            let mut run = on_cluster("pendulum", nodes, devices);
            run.args(["--size", "17", "--steps", "400", "--verify", "--oversubscribe", chunks]);
            let output = succeed(run.env("CELERITY_CHECK", "on").arg("--out").arg(&picture));
            assert!(output.contains("every point equals"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
            pictures.push(fs::read(picture).unwrap());
        }
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
}

#[test]
fn takes_one_point_one_magnet_and_no_steps() {
    let folder = Folder::new("pendulum_small");
    for (size, steps, magnets) in [("1", "50", "3"), ("5", "0", "1"), ("2", "50", "64")] {
        let mut run = on_cluster("pendulum", 2, 2);
        run.args(["--verify", "--size", size, "--steps", steps, "--magnets", magnets]);
        succeed(run.arg("--out").arg(folder.path("small.png")));
    }
}

#[test]
fn shows_each_magnet_near_itself() {
    let folder = Folder::new("pendulum_picture");
    let path = folder.path("two.png");
    let mut run = on_cluster("pendulum", 2, 1);
    run.args(["--size", "20", "--magnets", "2", "--friction", "3"]);
    succeed(run.arg("--out").arg(&path));
    let picture = image::open(path).unwrap().into_rgb8();
    // So slow a pendulum goes to the magnet on its side: the first to the right.
    let (left, right) = (picture.get_pixel(5, 10).0, picture.get_pixel(14, 10).0);
    assert!(right[0] > right[2] && left[0] < left[2], "{left:?} {right:?}");
}

#[test]
fn rejects_bad_input() {
    let cases: [(&[&str], &str); 5] = [
        (&["--size", "0"], "--size"),
        (&["--magnets", "0"], "--magnets"),
        (&["--height", "0"], "above 0"),
        (&["--dt", "inf"], "above 0"),
        (&["--out", "missing/out.png"], "cannot write"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("pendulum", 1, 1).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
