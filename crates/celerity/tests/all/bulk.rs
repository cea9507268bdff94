//! Buffers that are filled and copied without a kernel: whole and in parts, in all dimensionalities,
//! on several nodes and devices, and what is wrong about it.

use std::sync::Mutex;

use celerity::prelude::*;
use celerity::{DeclareError, Error, Result, Sum};

use crate::common::{clusters, contents, everywhere, values};

/// Nodes and devices.
const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 3], [2, 1], [2, 2], [5, 1]];

/// Where an element is, row-major.
fn position<const D: usize>(index: [usize; D], range: [usize; D]) -> usize {
    index.iter().zip(range).fold(0, |position, (index, size)| position * size + index)
}

/// All indices of a part, in order.
fn indices<const D: usize>(part: Subrange<D>) -> Vec<[usize; D]> {
    let count = part.range.iter().product();
    let index = |mut position: usize| {
        let mut index = part.offset;
        for dim in (0..D).rev() {
            index[dim] += position % part.range[dim];
            position /= part.range[dim];
        }
        index
    };
    (0..count).map(index).collect()
}

/// Fills a part of a buffer, and copies a part of another one, beside loops.
fn filled_and_copied<const D: usize>(
    (to, from): ([usize; D], [usize; D]),
    part: Subrange<D>,
    offset: [usize; D],
) {
    let (size, other) = (to.iter().product(), from.iter().product());
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let u = queue.buffer_from(to, values(size))?;
        let v = queue.buffer_from(from, values(other))?;
        // Somewhere on a device, by now.
        queue.task("add").parallel_for(from, v.read_write(one_to_one()), |_, v| *v += 10_000)?;
        u.fill_part(Subrange { offset, range: part.range }, -5)?;
        let filled = contents(queue, &u)?;
        u.copy_part(&v, part, offset)?;
        Ok((filled, contents(queue, &u)?, contents(queue, &v)?))
    });
    let source: Vec<_> = values(other).into_iter().map(|value| value + 10_000).collect();
    let (mut filled, mut copied) = (values(size), values(size));
    let there = indices(Subrange { offset, range: part.range });
    for (here, there) in indices(part).into_iter().zip(there) {
        filled[position(there, to)] = -5;
        copied[position(there, to)] = source[position(here, from)];
    }
    assert_eq!(found, (filled, copied, source), "{part} of {from:?} to {offset:?} of {to:?}");
}

#[test]
fn parts_are_filled_and_copied_in_every_dimensionality() {
    filled_and_copied(([], []), Subrange { offset: [], range: [] }, []);
    filled_and_copied(([20], [30]), Subrange::new([7], [15]), [2]);
    filled_and_copied(([20], [20]), Subrange::new([0], [20]), [0]);
    filled_and_copied(([5], [300]), Subrange::new([299], [1]), [4]);
    filled_and_copied(([9, 8], [12, 5]), Subrange::new([3, 1], [6, 4]), [1, 4]);
    filled_and_copied(([9, 8], [12, 5]), Subrange::new([0, 4], [9, 1]), [0, 0]);
    filled_and_copied(([4, 5, 6], [6, 5, 4]), Subrange::new([2, 1, 1], [3, 4, 3]), [1, 0, 3]);
    filled_and_copied(([4, 5, 6], [6, 5, 7]), Subrange::new([0, 0, 1], [4, 5, 6]), [0, 0, 0]);
}

#[test]
fn whole_buffers_of_any_elements() {
    #[derive(Clone, Copy, Debug, PartialEq, celerity::PlainData)]
    #[repr(C)]
    struct Odd {
        bytes: [u8; 3],
        more: [u8; 8],
    }
    let odd = |i: u8| Odd { bytes: [i, 1, 2], more: [i; 8] };
    let (odds, shorts, large) = everywhere(clusters(CLUSTERS), |queue| {
        let a = queue.buffer::<Odd, 2>([7, 3]);
        a.fill(odd(9))?;
        let b = queue.buffer::<Odd, 2>([7, 3]);
        b.copy_from(&a)?;
        b.fill_part(Subrange::new([6, 0], [1, 2]), odd(1))?;
        let shorts = queue.buffer::<u16, 1>(1000);
        shorts.fill(0xabcd)?;
        let large = queue.buffer::<[f64; 200], 1>(3);
        large.fill([0.5; 200])?;
        Ok((contents(queue, &b)?, contents(queue, &shorts)?, contents(queue, &large)?))
    });
    assert_eq!(odds[..18], [odd(9); 18]);
    assert_eq!(odds[18..], [odd(1), odd(1), odd(9)]);
    assert_eq!(shorts, [0xabcd; 1000]);
    assert_eq!(large, [[0.5; 200]; 3]);
}

#[test]
fn what_has_no_elements_needs_no_task() {
    everywhere(clusters(CLUSTERS), |queue| {
        let nothing = queue.buffer::<u32, 2>([0, 4]);
        nothing.fill(3)?;
        nothing.copy_from(&queue.buffer([0, 4]))?;
        let some = queue.buffer_from(3, vec![1_u32, 2, 3])?;
        // Nothing has written the other one, and nothing of it is read.
        some.copy_part(&queue.buffer(3), Subrange::new([1], [0]), [2])?;
        some.fill_part(Subrange::new([3], [0]), 7)?;
        assert_eq!(contents(queue, &some)?, [1, 2, 3]);
        contents(queue, &nothing)
    });
}

#[test]
fn a_buffer_is_copied_within_itself() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let rows = queue.buffer_from([6, 4], values(24))?;
        for row in 0..4 {
            rows.copy_part(&rows, Subrange::new([row, 0], [1, 4]), [row + 2, 0])?;
        }
        contents(queue, &rows)
    });
    assert_eq!(found, [&values(24)[..8], &values(24)[..8], &values(24)[..8]].concat());
}

#[test]
fn fills_and_copies_follow_and_precede_reductions() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let numbers = queue.buffer::<i64, 1>(5_000);
        numbers.fill(3)?;
        let sum = queue.buffer::<i64, 0>([]);
        let add = || {
            let accesses = (numbers.read(one_to_one()), sum.reduce(Sum));
            queue.task("add").parallel_for(5_000, accesses, |_, (number, sum)| sum.combine(*number))
        };
        add()?;
        let kept = queue.buffer::<i64, 0>([]);
        kept.copy_from(&sum)?;
        add()?;
        sum.fill(1)?;
        Ok((contents(queue, &kept)?, contents(queue, &sum)?))
    });
    assert_eq!(found, (vec![15_000], vec![1]));
}

fn refused(program: impl Fn(&Queue) -> Result<()> + Sync) -> Error {
    Config::default().nodes(2).run(program).expect_err("it is refused")
}

#[test]
fn what_does_not_fit_is_named() {
    let error = refused(|queue| {
        let u = queue.buffer::<f32, 2>([4, 5]).named("u");
        let v = queue.buffer_from([5, 4], vec![0.0; 20])?.named("v");
        u.copy_from(&v).map(drop)
    });
    let text = error.to_string();
    assert!(matches!(error, Error::CopyRange { .. }), "{text}");
    for part in ["\"u\" of [4, 5]", "\"v\" of [5, 4]", "bulk.rs:", "copy_part"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let copy = |part: Subrange<1>, offset: usize| {
        refused(move |queue| {
            let u = queue.buffer_from(8, vec![1_u8; 8])?.named("u");
            let v = queue.buffer_from(8, vec![1_u8; 8])?.named("v");
            u.copy_part(&v, part, [offset]).map(drop)
        })
    };
    for part in [Subrange::new([6], [3]), Subrange::new([usize::MAX], [2])] {
        let error = copy(part, 0);
        assert!(matches!(error, Error::CopyPart { .. }), "{error}");
        assert!(error.to_string().contains("\"v\" of [8]"), "{error}");
    }
    let error = copy(Subrange::new([0], [4]), 6);
    assert!(
        matches!(&error, Error::Declare(inner) if matches!(**inner, DeclareError::OutOfBounds { .. })),
        "{error}"
    );
    let error = copy(Subrange::new([0], [4]), usize::MAX - 1);
    assert!(matches!(error, Error::Offset { .. }), "{error}");
}

#[test]
fn what_cannot_be_read_or_shared_is_named() {
    let error = refused(|queue| {
        let (u, v) = (queue.buffer::<u8, 1>(8), queue.buffer::<u8, 1>(8).named("v"));
        v.fill_part(Subrange::new([0], [7]), 1)?;
        u.copy_from(&v).map(drop)
    });
    let text = error.to_string();
    assert!(
        matches!(&error, Error::Declare(it) if matches!(**it, DeclareError::UninitializedRead { .. })),
        "{text}"
    );
    let error = refused(|queue| {
        let u = queue.buffer_from(8, vec![1_u8; 8])?;
        u.copy_part(&u, Subrange::new([0], [4]), [2]).map(drop)
    });
    assert!(
        matches!(&error, Error::Declare(it) if matches!(**it, DeclareError::ConflictingAccesses { .. })),
        "{error}"
    );
    let error = refused(|queue| {
        let u = queue.buffer_from(8, vec![1_u8; 8])?;
        u.copy_from(&u).map(drop)
    });
    assert!(matches!(error, Error::Declare(_)), "{error}");
}

#[test]
fn buffers_of_other_runs_are_refused() {
    let left = Mutex::new(None);
    Config::default()
        .run(|queue| {
            let u = queue.buffer_from(2, vec![1, 2])?.named("left");
            *left.lock().unwrap() = Some(u);
            Ok(())
        })
        .unwrap();
    let left = left.into_inner().unwrap().unwrap();
    let error = left.fill(1).unwrap_err();
    assert!(matches!(error, Error::RunOver { .. }) && error.to_string().contains("\"left\""));
    let foreign =
        Config::default().run(|queue| queue.buffer::<i32, 1>(2).copy_from(&left).map(drop));
    assert!(matches!(foreign, Err(Error::ForeignBuffer { .. })), "{foreign:?}");
}
