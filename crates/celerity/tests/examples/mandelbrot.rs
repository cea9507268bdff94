//! The Mandelbrot set: the same on every cluster and in all ways to cut it, squares at their limits, and
//! what its picture must show.

use std::fs;

use crate::{CLUSTERS, Folder, cluster, fail, on_cluster, succeed};

#[test]
fn equals_its_sequential_twin_on_every_cluster() {
    let folder = Folder::new("mandelbrot_clusters");
    for precision in ["single", "double"] {
        let mut pictures = Vec::new();
        for (bands, chunks, fast) in [("1", "1", false), ("5", "3", false), ("2", "1", true)] {
            for (nodes, devices) in CLUSTERS {
                let picture = folder.path(&format!("{bands}_{nodes}_{devices}.png"));
                let mut run = on_cluster("mandelbrot", nodes, devices);
                run.args(["--size", "23", "--limit", "300", "--verify", "--precision", precision]);
                run.args(["--bands", bands, "--oversubscribe", chunks]).env("CELERITY_CHECK", "on");
                if fast {
                    run.arg("--fast");
                }
                let output = succeed(run.arg("--out").arg(&picture));
                // CPUs compute fast kernels as strict ones.
                let verified = if fast { "all but 0.00e0 of" } else { "every point equals" };
                assert!(output.contains(verified), "{output}");
                assert!(output.contains(&cluster(nodes, devices)), "{output}");
                pictures.push(fs::read(picture).unwrap());
            }
        }
        assert!(pictures.windows(2).all(|pair| pair[0] == pair[1]), "pictures differ");
    }
}

#[test]
fn takes_one_point_one_step_and_more_bands_than_rows() {
    let folder = Folder::new("mandelbrot_small");
    for (size, limit, bands) in [("1", "50", "1"), ("5", "1", "3"), ("3", "50", "1024")] {
        let mut run = on_cluster("mandelbrot", 2, 2);
        run.args(["--verify", "--size", size, "--limit", limit, "--bands", bands]);
        succeed(run.arg("--out").arg(folder.path("small.png")));
    }
}

#[test]
fn shows_the_set_black_and_what_is_around_it_in_colours() {
    let folder = Folder::new("mandelbrot_picture");
    let path = folder.path("set.png");
    let mut run = on_cluster("mandelbrot", 2, 1);
    succeed(run.args(["--size", "50", "--out"]).arg(&path));
    let picture = image::open(&path).unwrap().into_rgb8();
    // 0 and -1 are of the set, the left corners far away.
    let pixel = |re: f64| picture.get_pixel(((re + 2.0) / 2.5 * 50.0) as u32, 25).0;
    assert_eq!([pixel(0.0), pixel(-1.0)], [[0; 3]; 2]);
    let [red, _, blue] = picture.get_pixel(0, 0).0;
    assert!(blue > red, "{red}, {blue}");
    // More points than pixels.
    let mut run = on_cluster("mandelbrot", 1, 2);
    succeed(run.args(["--size", "1500", "--limit", "20", "--out"]).arg(&path));
    assert_eq!(image::open(&path).unwrap().into_rgb8().dimensions(), (1024, 1024));
}

#[test]
fn rejects_bad_input() {
    let cases: [(&[&str], &str); 8] = [
        (&["--size", "0"], "--size"),
        (&["--limit", "0"], "--limit"),
        (&["--bands", "0"], "--bands"),
        (&["--reach", "0"], "above 0"),
        (&["--centre", "0", "inf"], "give a number"),
        (&["--reach", "1e-9"], "or --precision double"),
        (&["--reach", "1e-20", "--precision", "double"], "are the same in double precision"),
        (&["--out", "missing/out.png"], "cannot write"),
    ];
    for (arguments, expected) in cases {
        let message = fail(on_cluster("mandelbrot", 1, 1).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
