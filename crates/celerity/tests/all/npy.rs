//! Files of NumPy: written by several nodes, read by several nodes, and what is wrong with them.
#![cfg(feature = "npy")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity::half::f16;
use celerity::num_complex::Complex;
use celerity::prelude::*;
use celerity::{Error, NpyElement, NpyError, Result, RunError};

use crate::common::contents;

/// A file of its own, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("celerity-npy-test-{}-{number}.npy", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn with(bytes: impl AsRef<[u8]>) -> Self {
        let scratch = Self::new();
        fs::write(&scratch.0, bytes).unwrap();
        scratch
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A file as NumPy 1.26 writes it.
fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

const CLUSTERS: [[usize; 2]; 4] = [[1, 1], [1, 2], [2, 2], [5, 1]];

fn cluster([nodes, devices]: [usize; 2]) -> Config {
    Config::default().nodes(nodes).devices(devices)
}

/// What a buffer has that was read from a file, on every cluster; and the file that is written
/// of it has the same bytes.
fn there_and_back<T: NpyElement + PartialEq + std::fmt::Debug, const D: usize>(
    range: [usize; D],
    expected: &[T],
    bytes: &[u8],
) {
    for shape in CLUSTERS {
        let (given, written) = (Scratch::with(bytes), Scratch::with([9; 4096]));
        let found = cluster(shape).run(|queue| {
            let buffer = queue.buffer_from_npy::<T, D>(&given)?;
            assert_eq!(buffer.range(), range);
            buffer.write_npy(&written)?;
            contents(queue, &buffer)
        });
        assert_eq!(found.unwrap(), expected, "{shape:?}");
        let written = fs::read(&written).unwrap();
        assert_eq!(parts(&written), parts(bytes), "{shape:?}");
    }
}

/// A file's length, what it says without spaces and commas, of which there may be more, and its data.
fn parts(bytes: &[u8]) -> (usize, Vec<u8>, &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').expect("a header");
    let says = bytes[..end].iter().copied().filter(|byte| !b" ,".contains(byte)).collect();
    (bytes.len(), says, &bytes[end..])
}

fn words<const N: usize>(words: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    words.into_iter().flatten().collect()
}

#[test]
fn arrays_come_and_go_in_every_dimensionality() {
    let floats = |count: u16| (0..count).map(|i| f32::from(i) * 0.5 - 3.0).collect::<Vec<_>>();
    let bytes = |count| words(floats(count).into_iter().map(f32::to_le_bytes));
    there_and_back([], &floats(1), &file("<f4", false, "()", &bytes(1)));
    there_and_back([7], &floats(7), &file("<f4", false, "(7,)", &bytes(7)));
    there_and_back([7, 3], &floats(21), &file("<f4", false, "(7, 3)", &bytes(21)));
    there_and_back([1, 40], &floats(40), &file("<f4", false, "(1, 40)", &bytes(40)));
    there_and_back([2, 3, 4], &floats(24), &file("<f4", false, "(2, 3, 4)", &bytes(24)));
    there_and_back([300, 70], &floats(21_000), &file("<f4", false, "(300, 70)", &bytes(21_000)));
    there_and_back::<f32, 1>([0], &[], &file("<f4", false, "(0,)", &[]));
    there_and_back::<f32, 2>([3, 0], &[], &file("<f4", false, "(3, 0)", &[]));
}

#[test]
fn numbers_keep_their_bits() {
    there_and_back([3], &[1_u8, 2, 255], &file("|u1", false, "(3,)", &[1, 2, 255]));
    there_and_back([2], &[-1_i8, 5], &file("|i1", false, "(2,)", &[255, 5]));
    let longs = [u64::MAX, 1 << 40];
    there_and_back([2], &longs, &file("<u8", false, "(2,)", &words(longs.map(u64::to_le_bytes))));
    let shorts = [-3_i16, 700];
    there_and_back([2], &shorts, &file("<i2", false, "(2,)", &words(shorts.map(i16::to_le_bytes))));
    let halves = [f16::from_f32(1.5), f16::NEG_INFINITY];
    there_and_back([2], &halves, &file("<f2", false, "(2,)", &words(halves.map(f16::to_le_bytes))));
    let complex = [Complex::new(1.0_f64, -2.0), Complex::new(0.25, 1e300)];
    let parts = complex.iter().flat_map(|z| [z.re, z.im]).map(f64::to_le_bytes);
    there_and_back([2], &complex, &file("<c16", false, "(2,)", &words(parts)));
}

#[test]
fn the_other_order_of_bytes_is_read() {
    let read = |bytes: Vec<u8>| {
        let given = Scratch::with(bytes);
        cluster([2, 1]).run(|queue| {
            let buffer = queue.buffer_from_npy::<Complex<f32>, 1>(&given)?;
            contents(queue, &buffer)
        })
    };
    let parts = words([1.0_f32, -2.0, 3.5, 4.0].map(f32::to_be_bytes));
    let found = read(file(">c8", false, "(2,)", &parts)).unwrap();
    assert_eq!(found, [Complex::new(1.0, -2.0), Complex::new(3.5, 4.0)]);
}

#[test]
fn along_one_dimension_both_orders_are_the_same() {
    for (fortran, shape) in [(true, "(1, 3)"), (false, "(1, 3)")] {
        let given = Scratch::with(file("|u1", fortran, shape, &[4, 5, 6]));
        let found = cluster([2, 1]).run(|queue| {
            let buffer = queue.buffer_from_npy::<u8, 2>(&given)?;
            contents(queue, &buffer)
        });
        assert_eq!(found.unwrap(), [4, 5, 6]);
    }
}

/// Of more elements than are read of a file at a time, and in the other order of bytes.
#[test]
fn large_arrays_in_fortran_order_are_read() {
    let [planes, rows, columns] = [70, 90, 20];
    let element = |z: usize, y: usize, x: usize| ((z * rows + y) * columns + x) as f32;
    let mut bytes = Vec::new();
    for (x, y) in (0..columns).flat_map(|x| (0..rows).map(move |y| (x, y))) {
        bytes.extend((0..planes).flat_map(|z| element(z, y, x).to_be_bytes()));
    }
    let given = Scratch::with(file(">f4", true, "(70, 90, 20)", &bytes));
    for shape in CLUSTERS {
        let found = cluster(shape).run(|queue| {
            let buffer = queue.buffer_from_npy::<f32, 3>(&given)?;
            contents(queue, &buffer)
        });
        let found = found.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        let elements = (0..planes * rows * columns).map(|place| place as f32);
        assert!(found.iter().copied().eq(elements), "{shape:?}");
    }
}

/// What is said of a file of floats in two dimensions.
fn refused(given: &Scratch) -> (NpyError, String) {
    let result: Result<()> =
        cluster([2, 1]).run(|queue| queue.buffer_from_npy::<f32, 2>(given).map(drop));
    let error = result.unwrap_err();
    let text = error.to_string();
    let Error::Npy(error) = error else { panic!("{text}") };
    assert!(text.contains(&given.0.display().to_string()), "{text}");
    (*error, text)
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let (error, _) = refused(&Scratch::new());
    assert!(matches!(error, NpyError::Open { .. }), "{error}");

    let (error, _) = refused(&Scratch::with("not of NumPy"));
    assert!(matches!(error, NpyError::Header { .. }), "{error}");

    let (error, text) = refused(&Scratch::with(file("<f8", false, "(1, 2)", &[0; 16])));
    assert!(matches!(error, NpyError::Type { .. }), "{error}");
    assert!(["[1, 2]", "`<f8`", "`f4`", "`f32`"].iter().all(|it| text.contains(it)), "{text}");

    let (error, text) = refused(&Scratch::with(file("<f4", false, "(2,)", &[0; 8])));
    assert!(matches!(error, NpyError::Dimensions { dims: 2, .. }), "{error}");
    assert!(text.contains("[2]") && text.contains("2 dimensions"), "{text}");

    let (error, _) = refused(&Scratch::with(file("<f4", true, "(2, 3)", &[0; 23])));
    assert!(matches!(error, NpyError::Length { .. }), "{error}");

    let (error, text) = refused(&Scratch::with(file("<f4", false, "(2, 3)", &[0; 23])));
    assert!(matches!(error, NpyError::Length { .. }), "{error}");
    assert!(text.contains("[2, 3]") && text.contains("`barrier`"), "{text}");

    let huge = file("<f4", false, "(4611686018427387904, 4)", &[]);
    let (error, _) = refused(&Scratch::with(huge));
    assert!(matches!(error, NpyError::Length { .. } | NpyError::Header { .. }), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_ends_the_run() {
    let nowhere = std::env::temp_dir().join("celerity-no-such-folder").join("u.npy");
    for range in [[4, 2], [0, 2]] {
        let result = cluster([2, 1]).run(|queue| {
            let u = queue.buffer::<u16, 2>(range).named("u");
            u.fill(1)?;
            u.write_npy(&nowhere).map(drop)
        });
        let error = result.unwrap_err();
        let text = format!("{error:?}");
        assert!(
            matches!(&error, Error::Run(inner) if matches!(**inner, RunError::TaskFailed { .. })),
            "{text}"
        );
        for part in ["write u to ", "npy.rs:", "cannot write ", "celerity-no-such-folder"] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }
}
