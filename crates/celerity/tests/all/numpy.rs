//! Files that NumPy itself has written (2.4.6, by `tests/numpy/make.py`): of each element's type, in
//! both orders of bytes and of elements.
#![cfg(feature = "npy")]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use celerity::num_complex::Complex;
use celerity::prelude::*;
use celerity::{Error, NpyElement, NpyError};

use crate::common::{clusters, contents, everywhere};

const CLUSTERS: [[usize; 2]; 4] = [[1, 1], [1, 2], [2, 2], [5, 1]];

fn given(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numpy").join(name).with_extension("npy")
}

/// What a file's header says without spaces and commas, of which there may be more, and its data.
fn parts(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').expect("a header");
    let says = bytes[10..end].iter().copied().filter(|byte| !b" ,".contains(byte)).collect();
    (says, &bytes[end..])
}

/// Reads a file on every cluster, and expects of element `k`, row-major, what `element(k)` is. The
/// first cluster writes it again: to a file like NumPy's own, but for the order of bytes and elements.
fn is_read<T, const D: usize>(name: &str, range: [usize; D], element: impl Fn(i32) -> T)
where
    T: NpyElement + PartialEq + Debug,
{
    let path = given(name);
    let expected: Vec<T> = (0..range.iter().product::<usize>() as i32).map(element).collect();
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let array = queue.buffer_from_npy::<T, D>(&path)?;
        assert_eq!(array.range(), range, "{name}");
        contents(queue, &array)
    });
    assert_eq!(found, expected, "{name}");

    let written = format!("celerity-numpy-test-{}-{name}.npy", std::process::id());
    let written = std::env::temp_dir().join(written);
    let cluster = Config::default().nodes(3);
    cluster.run(|queue| queue.buffer_from_npy::<T, D>(&path)?.write_npy(&written)).unwrap();
    let bytes = fs::read(&written).unwrap();
    fs::remove_file(&written).unwrap();
    if !name.contains("big_endian") && !name.contains("fortran") {
        assert_eq!(parts(&bytes), parts(&fs::read(&path).unwrap()), "{name}");
    }
}

fn half(k: i32) -> f64 {
    f64::from(k) * 0.5 - 3.0
}

fn long(k: i32) -> i64 {
    i64::from(k * 37 % 251 - 125)
}

fn byte(k: i32) -> u8 {
    u8::try_from(k * 37 % 251).unwrap()
}

fn complex(k: i32) -> Complex<f32> {
    Complex::new(k as f32, k as f32 * -0.25)
}

#[test]
fn arrays_in_row_major_order_are_read() {
    is_read("u8_1d", [5], byte);
    is_read("i64_2d", [2, 3], long);
    is_read("f32_0d", [], |k| half(k) as f32);
    is_read("f32_1d", [7], |k| half(k) as f32);
    is_read("f32_2d", [5, 3], |k| half(k) as f32);
    is_read("f32_empty", [3, 0], |k| half(k) as f32);
    is_read("f64_3d", [2, 3, 4], half);
    is_read("c64_2d", [3, 2], complex);
}

#[test]
fn numbers_that_begin_with_their_highest_byte_are_read() {
    is_read("f64_big_endian_2d", [5, 3], half);
    is_read("i64_big_endian_1d", [4], long);
    is_read("c64_big_endian_3d", [2, 1, 3], complex);
}

#[test]
fn arrays_in_fortran_order_are_read() {
    is_read("f64_fortran_2d", [5, 3], half);
    is_read("f32_fortran_3d", [2, 3, 4], |k| half(k) as f32);
    // One order, as one dimension alone is longer than 1.
    is_read("u8_fortran_row", [1, 5], byte);
}

#[test]
fn arrays_of_another_type_are_refused() {
    for cluster in clusters(CLUSTERS) {
        let read = |queue: &Queue| queue.buffer_from_npy::<f32, 3>(given("f64_3d")).map(drop);
        let error = cluster.run(read).unwrap_err();
        let Error::Npy(error) = error else { panic!("{error}") };
        assert!(matches!(*error, NpyError::Type { .. }), "{error}");
    }
}
