//! Random neighbourhoods over random spaces on random clusters, in both forms of
//! kernel, against a sequential loop.

use celerity::Result;
use celerity::prelude::*;
use proptest::prelude::*;

/// A stencil and where to run it.
#[derive(Clone, Debug)]
struct Case {
    nodes: usize,
    devices: usize,
    range: [usize; 2],
    border: [usize; 2],
    along_axes: bool,
    tiled: bool,
    /// Offsets inside of the border, along an axis if that is all there is.
    offsets: Vec<[isize; 2]>,
}

fn cases() -> impl Strategy<Value = Case> {
    let cluster = (1_usize..=4, 1_usize..=3, any::<bool>());
    let shape = ([1_usize..14, 1_usize..14], [0_usize..4, 0_usize..4], any::<bool>());
    let offsets = proptest::collection::vec((any::<[u8; 2]>(), any::<bool>()), 1..6);
    (cluster, shape, offsets).prop_map(|(cluster, shape, offsets)| {
        let ((nodes, devices, tiled), (range, border, along_axes)) = (cluster, shape);
        let within = |byte: u8, border: usize| byte as isize % (border as isize + 1);
        let offsets = offsets.into_iter().map(|([dy, dx], flip)| {
            let sign = if flip { -1 } else { 1 };
            let offset = [sign * within(dy, border[0]), within(dx, border[1])];
            match along_axes {
                true if flip => [offset[0], 0],
                true => [0, -offset[1]],
                false => offset,
            }
        });
        let offsets = offsets.collect();
        Case { nodes, devices, range, border, along_axes, tiled, offsets }
    })
}

fn initial([h, w]: [usize; 2]) -> Vec<i64> {
    (0..(h * w) as i64).map(|i| (i * 7919 + 13) % 1009).collect()
}

/// What each term contributes: the clamped element, and -1 for each one outside.
fn term(clamped: i64, inside: bool, index: usize) -> i64 {
    (index as i64 + 1) * clamped - i64::from(!inside)
}

fn sequential(case: &Case) -> Vec<i64> {
    let ([h, w], u) = (case.range, initial(case.range));
    let at = |y: isize, x: isize| {
        let clamp = |i: isize, size: usize| i.clamp(0, size as isize - 1);
        let (cy, cx) = (clamp(y, h), clamp(x, w));
        (u[cy as usize * w + cx as usize], (cy, cx) == (y, x))
    };
    let value = |y: usize, x: usize| {
        let terms = case.offsets.iter().enumerate().map(|(index, [dy, dx])| {
            let (clamped, inside) = at(y as isize + dy, x as isize + dx);
            term(clamped, inside, index)
        });
        terms.sum()
    };
    (0..h).flat_map(|y| (0..w).map(move |x| (y, x))).map(|(y, x)| value(y, x)).collect()
}

/// Results of the item kernel and of the row kernel.
fn on_cluster(case: &Case) -> Result<[Vec<i64>; 2]> {
    let near = match case.along_axes {
        true => neighborhood_along_axes(case.border),
        false => neighborhood(case.border),
    };
    let hint = if case.tiled { Hint::TiledSplit } else { Hint::BandSplit };
    Config::default().nodes(case.nodes).devices(case.devices).run(|queue| {
        let u = queue.buffer_from(case.range, initial(case.range))?;
        let [items, rows] = [(), ()].map(|()| queue.buffer::<i64, 2>(case.range));
        let offsets = case.offsets.clone();
        let accesses = (items.write(one_to_one()), u.read(near));
        queue.task("items").hint(hint).parallel_for(case.range, accesses, move |_, (sum, u)| {
            let terms = offsets.iter().enumerate();
            *sum =
                terms.map(|(i, &offset)| term(u.clamped(offset), u.get(offset).is_some(), i)).sum();
        })?;
        let offsets = case.offsets.clone();
        let accesses = (rows.write(one_to_one()), u.read(near));
        queue.task("rows").hint(hint).parallel_for_rows(
            case.range,
            accesses,
            move |_, (sum, u)| {
                sum.fill(0);
                for (index, &offset) in offsets.iter().enumerate() {
                    let (clamped, inside) = (u.clamped(offset), u.get(offset).is_some());
                    for (sum, &clamped) in sum.iter_mut().zip(clamped) {
                        *sum += term(clamped, inside, index);
                    }
                }
            },
        )?;
        Ok([queue.fence(&items)?.wait()?.into_vec(), queue.fence(&rows)?.wait()?.into_vec()])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn both_forms_agree_with_a_loop(case in cases()) {
        let [items, rows] = on_cluster(&case).expect("stencils run");
        let expected = sequential(&case);
        prop_assert_eq!(&items, &expected);
        prop_assert_eq!(&rows, &expected);
    }
}
