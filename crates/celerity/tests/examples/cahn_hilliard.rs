//! The alloy that separates: the same mixture on every cluster, boxes narrower than a neighbourhood,
//! and errors for what cannot be stable.

use std::fs;

use crate::{CLUSTERS, Folder, cluster, fail, on_cluster, succeed};

#[test]
fn equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("cahn_hilliard_clusters");
    let mut pictures = Vec::new();
    for (kernel, cut) in [("row", "bands"), ("item", "bands"), ("row", "tiles"), ("item", "tiles")]
    {
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{kernel}_{cut}_{nodes}_{devices}.png"));
            let mut run = on_cluster("cahn_hilliard", nodes, devices);
            run.args(["--size", "11", "--steps", "12", "--verify", "--kernel", kernel]);
            run.args(["--cut", cut, "--oversubscribe", "2"]).env("CELERITY_CHECK", "on");
            let output = succeed(run.arg("--out").arg(&picture));
            assert!(output.contains("bit for bit"), "{output}");
            assert!(output.contains(&cluster(nodes, devices)), "{output}");
            pictures.push(fs::read(picture).unwrap());
        }
    }
    assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
}

#[test]
fn goes_around_in_boxes_that_are_no_wider_than_a_border() {
    let folder = Folder::new("cahn_hilliard_small");
    for (size, steps) in [("1", "3"), ("2", "4"), ("3", "5"), ("4", "0")] {
        // Bands by their former name.
        for cut in ["slabs", "tiles"] {
            let mut run = on_cluster("cahn_hilliard", 2, 2);
            run.args(["--verify", "--size", size, "--steps", steps, "--cut", cut]);
            succeed(run.arg("--out").arg(folder.path("small.png")));
        }
    }
}

#[test]
fn draws_frames_that_differ_and_none_if_it_is_told_so() {
    let folder = Folder::new("cahn_hilliard_frames");
    let draw = |frames: &str| {
        let mut run = on_cluster("cahn_hilliard", 2, 1);
        run.args(["--size", "8", "--steps", "40", "--frames", frames, "--mean", "-0.3"]);
        succeed(run.arg("--out").arg(folder.path("frame.png")));
    };
    draw("0");
    assert!(!folder.path("frame.png").exists(), "there is a picture");
    draw("2");
    let frames = [0, 1].map(|frame| fs::read(folder.path(&format!("frame_00{frame}.png"))));
    let [first, second] = frames.map(Result::unwrap);
    assert!(first != second);
}

#[test]
fn rejects_bad_input() {
    let folder = Folder::new("cahn_hilliard_bad");
    let out = folder.path("out.png");
    let cases: [(&[&str], &str); 6] = [
        (&["--size", "0"], "--size"),
        (&["--frames", "9", "--steps", "8"], "9 frames need at least as many steps"),
        (&["--mean", "1.5"], "from -1 to 1"),
        (&["--gamma", "0"], "above 0"),
        (&["--rate", "0.03"], "choose a --rate of at most 0.0208"),
        (&["--cut", "diagonally"], "--cut"),
    ];
    for (arguments, expected) in cases {
        let mut run = on_cluster("cahn_hilliard", 1, 1);
        let message = fail(run.args(arguments).arg("--out").arg(&out));
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?} left a picture");
    }
}
