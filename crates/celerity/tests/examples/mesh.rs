//! Heat on surfaces of triangles: the same temperatures on every cluster and in any number of parts,
//! surfaces with edges and of one triangle, and errors that point into files.

use std::fs;
use std::process::Command;

use crate::{CLUSTERS, Folder, cluster, fail, on_cluster, succeed};

/// Two triangles with a common side, in the words that the format allows.
const SQUARE: &str = "# a square\nv 0 0 0\nv 1 0 0\nvn 0 0 1\nv 1 1 0\n\nv 0 1 0 1.0\n\
                      f 1//1 2/7 3/7/1\nusemtl red\nf -4 -2 -1\n";

/// The checksum of a run that verifies.
fn checksum(run: &mut Command) -> String {
    let output = succeed(run.args(["--verify", "--checksum"]).env("CELERITY_CHECK", "on"));
    assert!(output.contains("bit for bit"), "{output}");
    let (_, checksum) = output.split_once("checksum=").expect("there is a RESULT line");
    checksum.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("mesh_clusters");
    let mut found = Vec::new();
    for parts in ["1", "3"] {
        for (nodes, devices) in CLUSTERS {
            let picture = folder.path(&format!("{parts}_{nodes}_{devices}.png"));
            let mut run = on_cluster("mesh", nodes, devices);
            run.args(["--sphere", "2", "--steps", "25", "--parts", parts, "--out"]).arg(&picture);
            found.push((checksum(&mut run), fs::read(picture).unwrap()));
            let output = succeed(&mut run);
            assert!(output.contains("320 triangles") && output.contains(&cluster(nodes, devices)));
        }
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "surfaces differ");
}

#[test]
fn reads_surfaces_with_edges_and_of_one_triangle() {
    let folder = Folder::new("mesh_small");
    let (square, one) = (folder.path("square.obj"), folder.path("one.obj"));
    fs::write(&square, SQUARE).unwrap();
    fs::write(&one, "v 0 0 0\nv 3 0 0\nv 0 0 1\nf 3 1 2\n").unwrap();
    for (file, triangles) in [(&square, "2 triangles"), (&one, "1 triangle,")] {
        for (nodes, devices) in CLUSTERS {
            let mut run = on_cluster("mesh", nodes, devices);
            run.args(["--steps", "7", "--out"]).arg(folder.path("small.png"));
            run.arg("--mesh").arg(file);
            checksum(&mut run);
            assert!(succeed(&mut run).contains(triangles));
        }
    }
}

#[test]
fn heat_goes_where_there_is_none() {
    let folder = Folder::new("mesh_heat");
    let picture = |steps: &str| {
        let path = folder.path(&format!("{steps}.png"));
        let mut run = on_cluster("mesh", 2, 2);
        run.args(["--sphere", "2", "--verify", "--steps", steps, "--out"]).arg(&path);
        succeed(&mut run);
        image::open(path).unwrap().into_rgb8()
    };
    let reds = |picture: &image::RgbImage| {
        picture
            .pixels()
            .map(|pixel| u64::from(pixel.0[0]))
            .collect::<std::collections::BTreeSet<_>>()
    };
    // Warm, cold and nothing; then much in between.
    assert_eq!(reds(&picture("0")).len(), 3);
    assert!(reds(&picture("20")).len() > 10);
}

#[test]
fn points_at_what_is_wrong_with_a_file() {
    const CORNERS: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 0 -1\n";
    let folder = Folder::new("mesh_bad");
    let file = folder.path("bad.obj");
    let cases = [
        ("", ": no triangles"),
        (CORNERS, ": no triangles"),
        ("v 0 0\n", ":1: expected 3 coordinates of a corner, found 2"),
        ("v 0 zero 0\n", ":1: expected a finite number, found \"zero\""),
        ("v 0 0 inf\n", ":1: expected a finite number, found \"inf\""),
        ("C\nf 1 2\n", ":7: expected the 3 corners of a triangle, found 2"),
        ("C\nf 1 2 3 4\n", "cut polygons into triangles"),
        ("C\nf 1 2 6\n", ":7: there is no corner 6: 5 have been named so far"),
        ("C\nf 1 2 0\n", ":7: there is no corner 0"),
        ("C\nf 1 2 -6\n", ":7: there is no corner -6"),
        ("C\nf 1 two 3\n", ":7: expected a corner's number, found \"two\""),
        ("C\nf 1 2 3\nf 1 2 2\n", ":8: a triangle without an area"),
        ("C\nf 1 2 3\nf 2 1 4\nf 1 2 5\n", ":9: a third triangle at a side"),
    ];
    for (text, expected) in cases {
        fs::write(&file, text.replace("C\n", &format!("{CORNERS}\n"))).unwrap();
        let mut run = on_cluster("mesh", 1, 1);
        run.arg("--out").arg(folder.path("out.png")).arg("--mesh").arg(&file);
        let message = fail(&mut run);
        assert!(message.contains("bad.obj") && message.contains(expected), "{text:?}: {message}");
    }
    let mut run = on_cluster("mesh", 1, 1);
    let message = fail(run.arg("--mesh").arg(folder.path("none.obj")));
    assert!(message.contains("cannot read") && message.contains("none.obj"), "{message}");
}
