//! Heat on surfaces of triangles: the same temperatures on every cluster and in any number of parts,
//! surfaces with edges and of one triangle, finer surfaces, and errors that point into files.

#[path = "../../examples/mesh/obj.rs"]
#[expect(dead_code, reason = "nothing is read from files or drawn here")]
mod obj;

use std::fs;
use std::path::Path;
use std::process::Command;

use obj::{Mesh, MeshError};

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
fn spreads_heat_over_a_cow_and_finer_surfaces() {
    let folder = Folder::new("mesh_finer");
    let square = folder.path("square.obj");
    fs::write(&square, SQUARE).unwrap();
    let square = square.to_str().unwrap();
    let surfaces: [(&[&str], &str); 5] = [
        (&[], "5856 triangles"),
        (&["--refine", "1"], "23424 triangles"),
        (&["--mesh", square, "--refine", "5"], "2048 triangles"),
        (&["--sphere", "1", "--refine", "2"], "1280 triangles"),
        (&["--sphere", "3"], "1280 triangles"),
    ];
    let of_surface = |(surface, triangles): &(&[&str], &str)| {
        let on = |(nodes, devices)| {
            let mut run = on_cluster("mesh", nodes, devices);
            run.args(*surface).args(["--steps", "12", "--out"]).arg(folder.path("out.png"));
            assert!(succeed(&mut run).contains(triangles));
            checksum(&mut run)
        };
        let [one, four] = [(1, 1), (2, 2)].map(on);
        assert_eq!(one, four, "{surface:?}");
        one
    };
    let found = surfaces.each_ref().map(of_surface);
    assert_eq!(found[3], found[4], "a finer sphere is a sphere");
}

#[test]
fn finer_surfaces_have_the_same_area() {
    const SPOT: &str = include_str!("../../examples/data/spot.obj");
    let area =
        |mesh: &Mesh| -> f64 { (0..mesh.triangles.len()).map(|at| f64::from(mesh.area(at))).sum() };
    for (text, edges) in [(SPOT, 0), (SQUARE, 4)] {
        let mesh = |levels| Mesh::parse(Path::new("mesh.obj"), text, levels).unwrap();
        let coarse = mesh(0);
        for levels in 1..=3 {
            let fine = mesh(levels);
            assert_eq!(fine.triangles.len(), coarse.triangles.len() << (2 * levels));
            let (actual, expected) = (area(&fine), area(&coarse));
            // Corners are rounded to 24 bits, and sides are a hundredth long.
            assert!((actual - expected).abs() < 1e-5 * expected, "{actual} and {expected}");
            let open = fine.neighbours().into_iter().flatten().filter(Option::is_none).count();
            assert_eq!(open, edges << levels, "sides at an edge");
        }
    }
}

#[test]
fn refuses_more_triangles_than_there_can_be() {
    for (surface, triangles) in [
        (["--sphere", "12", "--refine", "1"], "1342177280 triangles are too many"),
        (["--parts", "1", "--refine", "8"], "383778816 triangles are too many"),
    ] {
        let message = fail(on_cluster("mesh", 1, 1).args(surface));
        assert!(
            message.contains(triangles) && message.contains("there may be 335544320"),
            "{message}"
        );
    }
    let message = fail(on_cluster("mesh", 1, 1).args(["--refine", "13"]));
    assert!(message.contains("--refine"), "{message}");
    let tiny = "v 1 0 0\nv 1.0000001 0 0\nv 0 1 0\n\nf 1 2 3\n";
    let error = Mesh::parse(Path::new("tiny.obj"), tiny, 3).unwrap_err();
    assert!(matches!(error, MeshError::Line { line: 5, .. }), "{error}");
    assert!(error.to_string().contains("cut into four 3 times"), "{error}");
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
    // How red pixels are, whatever light they are in.
    let reds = |picture: &image::RgbImage| {
        let red = |&image::Rgb([red, _, blue]): &image::Rgb<u8>| {
            8 * u32::from(red) / (u32::from(red) + u32::from(blue))
        };
        picture.pixels().map(red).collect::<std::collections::BTreeSet<_>>()
    };
    // Cold, nothing and warm; then what is in between.
    assert_eq!(Vec::from_iter(reds(&picture("0"))), [1, 4, 6]);
    assert!(reds(&picture("20")).len() > 4);
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
