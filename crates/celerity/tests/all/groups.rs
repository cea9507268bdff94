//! Kernels over items in groups, on CPU devices: results that do not depend on the
//! cluster, and errors that name the kernel and the sizes.

use celerity::prelude::*;
use celerity::{AtomicView, Error, Group, Local, NdItem, NeighborhoodItem, kernel, kernels};
use celerity_example_kernels::groups::{BINS, SUMMANDS, TILE, group_sum, histogram, matmul};

const CLUSTERS: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 2), (3, 1), (4, 2)];

fn on_cluster<R: Send>(
    (nodes, devices): (usize, usize),
    program: impl Fn(&Queue) -> celerity::Result<R> + Sync,
) -> celerity::Result<R> {
    Config::default().nodes(nodes).devices(devices).run(program)
}

#[test]
fn groups_sum_in_local_memory() {
    let values: Vec<f64> = (0..6 * SUMMANDS).map(|i| (i * i % 101) as f64).collect();
    let expected: Vec<f64> = values
        .chunks(SUMMANDS)
        .flat_map(|group| vec![group.iter().sum::<f64>(); SUMMANDS])
        .collect();
    for cluster in CLUSTERS {
        let sums = on_cluster(cluster, |queue| {
            let values = queue.buffer_from(values.len(), values.clone())?;
            let sums = queue.buffer::<f64, 1>(values.range());
            let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
            queue.task("sum").launch(nd_range(values.range(), SUMMANDS), accesses, group_sum)?;
            Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(sums.unwrap(), expected, "{cluster:?}");
    }
}

/// The largest value of each tile of 3 × 4 items, which is an element for all of them.
#[kernel]
fn largest(
    item: NdItem<'_, 2>,
    (out, value): (AtomicView<'_, u32, 2>, &u32),
    values: Local<'_, u32, 12>,
) {
    let (at, group) = (item.local_linear_id(), item.group());
    values.set(at, *value);
    group.barrier();
    if at == 0 {
        let all = (0..group.len()).map(|other| values.get(other));
        out.at(group.id()).store(all.fold(0, u32::max));
    }
}

#[test]
fn a_tile_has_a_result_of_its_own() {
    let (tiles, range) = ([7, 5], [21, 20]);
    let values: Vec<u32> = (0..420_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
    let of_tile = |y: usize, x: usize| {
        let items = (3 * y..3 * y + 3).flat_map(|y| (4 * x..4 * x + 4).map(move |x| [y, x]));
        items.map(|[y, x]| values[20 * y + x]).max()
    };
    let expected = (0..7).flat_map(|y| (0..5).map(move |x| [y, x]));
    let expected: Vec<u32> = expected.filter_map(|[y, x]| of_tile(y, x)).collect();
    for cluster in CLUSTERS {
        let found = on_cluster(cluster, |queue| {
            let values = queue.buffer_from(range, values.clone())?;
            let out = queue.buffer_from(tiles, vec![0; 35])?;
            let share = per_dimension([Side::share(0), Side::share(1)]);
            let task = queue.task("largest").hint(Hint::TiledSplit);
            let accesses = (out.update(share), values.read(one_to_one()));
            task.launch(nd_range(range, [3, 4]), accesses, largest)?;
            Ok(queue.fence(&out)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(found.unwrap(), expected, "{cluster:?}");
    }
}

#[test]
fn a_tiled_product_equals_the_naive_one() {
    let (rows, shared, columns) = (3 * TILE, 2 * TILE + 5, 2 * TILE);
    let matrix = |rows: usize, columns: usize, seed: usize| -> Vec<f32> {
        (0..rows * columns).map(|i| ((i * 7 + seed) % 23) as f32 / 8.0 - 1.0).collect()
    };
    let (a, b) = (matrix(rows, shared, 1), matrix(shared, columns, 2));
    let mut expected = Vec::new();
    for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
        let products = (0..shared).map(|k| a[y * shared + k] * b[k * columns + x]);
        expected.push(products.fold(0.0, |sum, product| sum + product));
    }
    for cluster in CLUSTERS {
        let product = on_cluster(cluster, |queue| {
            let a = queue.buffer_from([rows, shared], a.clone())?;
            let b = queue.buffer_from([shared, columns], b.clone())?;
            let c = queue.buffer::<f32, 2>([rows, columns]);
            let accesses = (c.write(one_to_one()), a.read(slice(1)), b.read(slice(0)));
            queue.task("matmul").hint(Hint::TiledSplit).launch(
                nd_range([rows, columns], [TILE, TILE]),
                accesses,
                matmul { shared },
            )?;
            Ok(queue.fence(&c)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(product.unwrap(), expected, "{cluster:?}");
    }
}

#[test]
fn items_of_a_group_count_together() {
    let values: Vec<u32> = (0..4 * BINS as u32).map(|i| i * i % 100).collect();
    let mut expected = vec![0; values.len()];
    for (at, value) in values.iter().enumerate() {
        expected[at / BINS * BINS + *value as usize % BINS] += 1;
    }
    for cluster in CLUSTERS {
        let counts = on_cluster(cluster, |queue| {
            let values = queue.buffer_from(values.len(), values.clone())?;
            let counts = queue.buffer::<u32, 1>(values.range());
            let accesses = (counts.write(one_to_one()), values.read(one_to_one()));
            queue.task("count").launch(nd_range(values.range(), BINS), accesses, histogram)?;
            Ok(queue.fence(&counts)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(counts.unwrap(), expected, "{cluster:?}");
    }
}

/// Where an item is, its group and its place in it, as one number; after a barrier,
/// for the item at the mirrored place of the group.
#[kernel]
fn mirror(item: NdItem<'_, 3>, out: &mut u64, places: Local<'_, u64, 24>) {
    let group: Group<'_, 3> = item.group();
    let [a, b, c] = group.id().map(|index| index as u64);
    let at = item.local_linear_id();
    places.set(at, ((a * 10 + b) * 10 + c) * 100 + at as u64);
    group.barrier();
    *out = places.get(group.len() - 1 - at);
}

#[test]
fn items_meet_the_others_of_their_group_and_nobody_else() {
    let (range, size) = ([4, 6, 8], [2, 3, 4]);
    let mirrored = on_cluster((2, 2), |queue| {
        let out = queue.buffer::<u64, 3>(range);
        queue.task("mirror").launch(nd_range(range, size), out.write(one_to_one()), mirror)?;
        Ok(queue.fence(&out)?.wait()?.as_slice().to_vec())
    });
    let mirrored = mirrored.unwrap();
    for (at, found) in mirrored.into_iter().enumerate() {
        let id = [at / 48, at / 8 % 6, at % 8];
        let group: Vec<_> = (0..3).map(|dim| id[dim] / size[dim]).collect();
        let inside: Vec<_> = (0..3).map(|dim| id[dim] % size[dim]).collect();
        let place = 23 - ((inside[0] * 3 + inside[1]) * 4 + inside[2]);
        let expected = ((group[0] * 10 + group[1]) * 10 + group[2]) * 100 + place;
        assert_eq!(found, expected as u64, "{id:?}");
    }
}

/// A three-point average, computed from what the group has loaded.
#[kernel]
fn smooth(
    item: NdItem<'_, 1>,
    (out, u): (&mut f32, NeighborhoodItem<'_, f32, 1>),
    left: Local<'_, f32, 8>,
) {
    let [at] = item.local_id();
    left.set(at, u.clamped([-1]));
    item.group().barrier();
    *out = left.get(at) + u.clamped([1]);
}

#[test]
fn groups_see_the_surroundings_of_their_items() {
    let u: Vec<f32> = (0..32).map(|i| (i * i) as f32).collect();
    let smoothed = on_cluster((2, 1), |queue| {
        let (u, out) = (queue.buffer_from(32, u.clone())?, queue.buffer::<f32, 1>(32));
        let accesses = (out.write(one_to_one()), u.read(neighborhood([1])));
        queue.task("smooth").launch(nd_range(32, 8), accesses, smooth)?;
        Ok(queue.fence(&out)?.wait()?.as_slice().to_vec())
    });
    let expected: Vec<_> =
        (0..32_usize).map(|i| u[i.saturating_sub(1)] + u[(i + 1).min(31)]).collect();
    assert_eq!(smoothed.unwrap(), expected);
}

fn error_of<W>(range: usize, group: usize, kernel: W) -> Error
where
    W: for<'a> kernels::GroupKernel<1, &'a mut u32>,
{
    let run = on_cluster((2, 1), |queue| {
        let out = queue.buffer::<u32, 1>(range);
        queue.task("step").launch(nd_range(range, group), out.write(one_to_one()), kernel)?;
        queue.barrier()
    });
    run.expect_err("the task is wrong")
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    let missing: Vec<_> = parts.iter().filter(|part| !message.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} missing in: {message}");
}

#[kernel]
fn mark(_item: NdItem<'_, 1>, out: &mut u32) {
    *out = 1;
}

#[test]
fn groups_that_cannot_be_are_refused_at_submission() {
    for (range, group, reason) in [
        (100, 8, "no multiple of the group's"),
        (64, 0, "1 to 1024 items"),
        (4096, 2048, "1 to 1024 items"),
    ] {
        let error = error_of(range, group, mark);
        assert!(matches!(error, Error::Groups { .. }), "{error}");
        let sizes = [format!("[{range}]"), format!("[{group}]")];
        assert_says(&error, &["\"step\"", "`mark`", &sizes[0], &sizes[1], reason]);
    }
}

#[test]
fn groups_begin_where_the_index_space_does() {
    let marks = |offset: usize| {
        on_cluster((2, 1), |queue| {
            let marks = queue.buffer_from(48, vec![0; 48])?;
            let task = queue.task("mark").offset(offset);
            task.launch(nd_range(32, 8), marks.write(one_to_one()), mark)?;
            Ok(queue.fence(&marks)?.wait()?.as_slice().to_vec())
        })
    };
    assert_eq!(marks(16).unwrap(), [vec![0; 16], vec![1; 32]].concat());
    assert_says(&marks(4).unwrap_err(), &["`mark`", "where the items begin in dimension 0"]);
}

#[test]
fn chunks_end_where_groups_do() {
    // Thirds of 80 items, or multiples of 6, would cut groups, which is noticed.
    for granularity in [1, 6] {
        let marks = on_cluster((3, 1), |queue| {
            let marks = queue.buffer::<u32, 1>(80);
            let task = queue.task("mark").granularity(granularity);
            task.launch(nd_range(80, 16), marks.write(one_to_one()), mark)?;
            Ok(queue.fence(&marks)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(marks.unwrap(), [1; 80]);
    }
}

/// Waits where `#[kernel]` cannot see it.
fn meet(item: &NdItem<'_, 2>) {
    item.group().barrier();
}

/// A kernel whose items wait by `$wait`: in loops and branches, with values of theirs that live on, and beside exchanges
/// of warps, two of them without a barrier in between.
macro_rules! weave {
    ($name:ident, $item:ident, $wait:expr) => {
        #[kernel]
        fn $name(
            $item: NdItem<'_, 2>,
            (out, from): (&mut u64, &u64),
            cells: Local<'_, u64, 48>,
            turns: u64,
        ) {
            let (at, warp) = ($item.local_linear_id(), $item.warp());
            let len = $item.group().len();
            let (mut kept, mut sum) = ([*from; 3], 0_u64);
            for turn in 0..turns {
                cells.set(at, kept[0].wrapping_mul(turn + 3));
                $wait;
                for other in 0..len {
                    sum = sum.rotate_left(5) ^ cells.get(other);
                }
                if turn % 2 == 0 {
                    let far = warp.shuffle(sum, (warp.lane() + 5) % warp.len());
                    kept[1] ^= warp.shuffle(far, (warp.lane() + 1) % warp.len());
                } else {
                    $wait;
                }
                kept[(turn % 3) as usize] ^= sum;
                $wait;
            }
            let mut left = 3;
            while warp.any(left > 0) {
                left -= 1;
                kept[2] /= 3;
                $wait;
            }
            let odd = warp.ballot(kept[0] % 2 == 1);
            *out = kept[0] ^ kept[1].rotate_left(9) ^ u64::from(odd);
            let (even, high) = (warp.all(sum % 2 == 0), warp.sum(sum >> 8));
            if even {
                return;
            }
            *out ^= kept[2] ^ high;
        }
    };
}

weave!(woven_here, item, item.group().barrier());
weave!(woven_there, item, meet(&item));

#[test]
fn items_come_to_the_same_however_they_wait() {
    type Views<'a> = (&'a mut u64, &'a u64);
    const fn needs_stack<W: for<'a> kernels::GroupKernel<2, Views<'a>>>(_: &W) -> bool {
        <W as kernels::GroupKernel<2, Views<'static>>>::NEEDS_STACK
    }
    let (here, there) = (woven_here { turns: 7 }, woven_there { turns: 7 });
    assert_eq!((needs_stack(&here), needs_stack(&there)), (false, true));
    let range = [12, 16];
    let from: Vec<u64> =
        (1..=192_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7).collect();
    let run = |cluster, group, is_here: bool| {
        on_cluster(cluster, |queue| {
            let from = queue.buffer_from(range, from.clone())?;
            let out = queue.buffer::<u64, 2>(range);
            let accesses = (out.write(one_to_one()), from.read(one_to_one()));
            let (task, space) = (queue.task("weave"), nd_range(range, group));
            match is_here {
                true => task.launch(space, accesses, here)?,
                false => task.launch(space, accesses, there)?,
            };
            Ok(queue.fence(&out)?.wait()?.as_slice().to_vec())
        })
        .unwrap()
    };
    // Whole warps, parts of them, and items that are alone.
    for group in [[6, 8], [4, 8], [3, 4], [1, 1]] {
        let expected = run((1, 1), group, false);
        for cluster in CLUSTERS {
            assert_eq!(run(cluster, group, true), expected, "{cluster:?} {group:?}");
        }
    }
}

/// A barrier for one half of each group.
#[kernel]
fn half_waits(item: NdItem<'_, 1>, out: &mut u32) {
    if item.local_id()[0] < 4 {
        item.group().barrier();
    }
    *out = 1;
}

#[test]
fn a_barrier_that_only_some_reach_names_kernel_sizes_and_place() {
    let error = error_of(64, 8, half_waits);
    let parts = ["\"step\"", "`half_waits`", "[64]", "groups of [8]", "4 of its 8 items"];
    assert_says(&error, &parts);
    assert_says(&error, &["tests/all/groups.rs:", "the others have ended"]);
}

/// The same, out of sight.
#[kernel]
fn half_waits_elsewhere(item: NdItem<'_, 1>, out: &mut u32) {
    fn wait(item: NdItem<'_, 1>) {
        item.group().barrier();
    }
    if item.local_id()[0] < 4 {
        wait(item);
    }
    *out = 1;
}

#[test]
fn a_barrier_out_of_sight_is_named_as_well() {
    let error = error_of(64, 8, half_waits_elsewhere);
    assert_says(&error, &["`half_waits_elsewhere`", "4 of its 8 items", "tests/all/groups.rs:"]);
}

/// Two barriers, each for one half.
#[kernel]
fn halves_wait_apart(item: NdItem<'_, 1>, out: &mut u32) {
    match item.local_id()[0] < 4 {
        true => item.group().barrier(),
        false => item.group().barrier(),
    }
    *out = 1;
}

#[test]
fn two_barriers_are_not_one() {
    let error = error_of(64, 8, halves_wait_apart);
    assert_says(&error, &["`halves_wait_apart`", "of its 8 items", "others at the one at"]);
}

/// An item panics while the others of its group wait for it.
#[kernel]
fn one_panics(item: NdItem<'_, 1>, out: &mut u32) {
    item.group().barrier();
    assert!(item.id() != [13], "thirteen");
    item.group().barrier();
    *out = 1;
}

#[test]
fn a_panic_beside_a_barrier_ends_the_task_with_an_error() {
    assert_says(&error_of(64, 8, one_panics), &["\"step\"", "panicked", "item [13]: thirteen"]);
}

/// Asks for more than the group has.
#[kernel]
fn beyond(_item: NdItem<'_, 1>, out: &mut u32, memory: Local<'_, u32, 8>) {
    *out = memory.get(8);
}

#[test]
fn an_index_outside_of_local_memory_is_named() {
    assert_says(&error_of(64, 8, beyond), &["local memory has 8 values, so none at 8"]);
}
