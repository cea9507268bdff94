//! Range mappers beyond the plain ones: what kernels see through them is what the buffer has, on
//! every cluster, in every dimensionality; and what does not fit is refused with reasons.

use celerity::prelude::*;
use celerity::{DeclareError, Error, PeriodicItem, PeriodicRow, Result};
use celerity_example_kernels::life::{initial, life_step, life_step_row};

use crate::common::{clusters, contents, everywhere, indices, values};

const CLUSTERS: [[usize; 2]; 6] = [[1, 1], [1, 3], [2, 1], [2, 2], [3, 1], [4, 3]];

/// The place at `offset` from `at`, around where `along` says so and clamped where not.
fn place<const D: usize>(
    at: [usize; D],
    offset: [isize; D],
    range: [usize; D],
    along: [bool; D],
) -> [usize; D] {
    std::array::from_fn(|dim| {
        let (to, size) = (at[dim] as isize + offset[dim], range[dim] as isize);
        (if along[dim] { to.rem_euclid(size) } else { to.clamp(0, size - 1) }) as usize
    })
}

fn slot<const D: usize>(at: [usize; D], range: [usize; D]) -> usize {
    (0..D).fold(0, |slot, dim| slot * range[dim] + at[dim])
}

/// All indices of a space.
fn all_of<const D: usize>(range: [usize; D]) -> Vec<[usize; D]> {
    let count: usize = range.iter().product();
    let index = |mut slot: usize| {
        let mut at = [0; D];
        for dim in (0..D).rev() {
            (at[dim], slot) = (slot % range[dim], slot / range[dim]);
        }
        at
    };
    (0..count).map(index).collect()
}

/// A sum that tells apart which element stands where.
fn weighted(elements: impl Iterator<Item = i64>) -> i64 {
    elements.zip(1..).map(|(element, weight)| element * weight).sum()
}

/// Reads the surroundings of each item, by items and by rows, twice in a row so that what is written
/// by one device is read by another.
fn check_surroundings<const D: usize, const N: usize>(
    range: [usize; D],
    border: [usize; D],
    dims: [usize; N],
    hint: Option<Hint>,
) where
    [usize; D]: celerity::IntoRange<D>,
{
    let mut along = [false; D];
    dims.iter().for_each(|&dim| along[dim] = true);
    let steps: Vec<[isize; D]> = all_of(border.map(|width| 2 * width + 1))
        .into_iter()
        .map(|step| std::array::from_fn(|dim| step[dim] as isize - border[dim] as isize))
        .collect();
    let mut expected = values(range.iter().product());
    for _ in 0..2 {
        let sum =
            |at| weighted(steps.iter().map(|&s| expected[slot(place(at, s, range, along), range)]));
        expected = all_of(range).into_iter().map(|at| sum(at) % 1009).collect();
    }
    for by_rows in [false, true] {
        let (steps, ring) = (steps.clone(), neighborhood(border).periodic_along(dims));
        let found = everywhere(clusters(CLUSTERS), move |queue| {
            let mut old = queue.buffer_from(range, values(range.iter().product()))?;
            let mut new = queue.buffer::<i64, D>(range);
            for _ in 0..2 {
                let accesses = (new.write(one_to_one()), old.read(ring));
                let task = queue.task("look around");
                let task = match hint {
                    Some(hint) => task.hint(hint),
                    None => task,
                };
                let steps = steps.clone();
                if by_rows {
                    task.parallel_for_rows(
                        range,
                        accesses,
                        move |_, (out, u): (&mut [i64], PeriodicRow<'_, i64, D>)| {
                            let rows: Vec<&[i64]> = steps.iter().map(|&step| u.at(step)).collect();
                            for (i, out) in out.iter_mut().enumerate() {
                                *out = weighted(rows.iter().map(|row| row[i])) % 1009;
                            }
                        },
                    )?;
                } else {
                    task.parallel_for(
                        range,
                        accesses,
                        move |_, (out, u): (&mut i64, PeriodicItem<'_, i64, D>)| {
                            *out = weighted(steps.iter().map(|&step| u.at(step))) % 1009;
                        },
                    )?;
                }
                std::mem::swap(&mut old, &mut new);
            }
            contents(queue, &old)
        });
        assert_eq!(found, expected, "{border:?} in {range:?} along {dims:?}, by rows: {by_rows}");
    }
}

#[test]
fn edges_meet_in_one_dimension() {
    for (range, border) in [([17], [1]), ([17], [3]), ([5], [5]), ([1], [1])] {
        check_surroundings(range, border, [0], None);
    }
}

#[test]
fn edges_meet_in_two_dimensions() {
    check_surroundings([9, 7], [1, 1], [0, 1], None);
    check_surroundings([9, 7], [1, 1], [0, 1], Some(Hint::TiledSplit));
    check_surroundings([9, 7], [2, 1], [0], None);
    check_surroundings([9, 7], [1, 2], [1], Some(Hint::TiledSplit));
    check_surroundings([2, 3], [2, 3], [0, 1], None);
}

#[test]
fn edges_meet_in_three_dimensions() {
    check_surroundings([5, 4, 6], [1, 1, 1], [0, 1, 2], None);
    check_surroundings([5, 4, 6], [1, 1, 1], [0, 1, 2], Some(Hint::TiledSplit));
    check_surroundings([5, 4, 6], [1, 0, 2], [0, 2], None);
}

#[test]
fn a_part_of_the_items_looks_around_the_whole_buffer() {
    for (offset, range) in [([0, 0], [3, 4]), ([2, 1], [4, 3]), ([5, 4], [3, 2])] {
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let u = queue.buffer_from([8, 6], values(48))?;
            let out = queue.buffer_from([8, 6], vec![0; 48])?;
            let cross = neighborhood_along_axes([2, 2]).periodic();
            let accesses = (out.read_write(one_to_one()), u.read(cross));
            let task = queue.task("part").offset(offset);
            task.parallel_for(range, accesses, |_, (out, u)| {
                *out = u.at([-2, 0]) + 2 * u.at([2, 0]) + 3 * u.at([0, -2]) + 4 * u.at([0, 2]);
            })?;
            contents(queue, &out)
        });
        let (u, around) = (values(48), [true; 2]);
        for at in indices([8, 6]) {
            let part = celerity::Bounds::new(offset, [offset[0] + range[0], offset[1] + range[1]]);
            let look = |offset| u[slot(place(at, offset, [8, 6], around), [8, 6])];
            let sum = look([-2, 0]) + 2 * look([2, 0]) + 3 * look([0, -2]) + 4 * look([0, 2]);
            let expected = if part.contains(at) { sum } else { 0 };
            assert_eq!(found[slot(at, [8, 6])], expected, "{at:?} of {part:?}");
        }
    }
}

#[test]
fn compiled_kernels_look_around_by_items_and_rows() {
    let world = |range| all_of(range).into_iter().map(|at| initial(at, 3)).collect::<Vec<u8>>();
    let range = [13, 10];
    let generations = |by_rows: bool| {
        everywhere(clusters(CLUSTERS), |queue| {
            let mut old = queue.buffer_from(range, world(range))?;
            let mut new = queue.buffer::<u8, 2>(range);
            for _ in 0..5 {
                let accesses = (new.write(one_to_one()), old.read(neighborhood([1, 1]).periodic()));
                match by_rows {
                    true => queue.task("rows").launch(range, accesses, life_step_row)?,
                    false => queue.task("items").launch(range, accesses, life_step)?,
                };
                std::mem::swap(&mut old, &mut new);
            }
            Ok(queue.fence(&old)?.wait()?.into_vec())
        })
    };
    let (by_items, by_rows) = (generations(false), generations(true));
    assert_eq!(by_items, by_rows);
    assert!(by_items != world(range) && by_items.contains(&1), "the world lives");
}

#[test]
fn dimensions_are_selected_permuted_and_shared_out() {
    let range = [4, 5, 3];
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let cube = queue.buffer_from(range, values(60))?;
        let line = queue.buffer_from(5, values(5))?;
        let turned = queue.buffer::<i64, 3>([3, 4, 5]);
        let accesses =
            (turned.write(one_to_one()), cube.read(select([1, 2, 0])), line.read(select([2])));
        queue.task("turn").parallel_for([3, 4, 5], accesses, |item, (out, cube, line)| {
            let [x, z, y] = item.id();
            *out = cube[[z, y, x]] * 10_000 + line[y];
        })?;
        contents(queue, &turned)
    });
    for [x, z, y] in all_of([3, 4, 5]) {
        let expected = values(60)[slot([z, y, x], range)] * 10_000 + values(5)[y];
        assert_eq!(found[slot([x, z, y], [3, 4, 5])], expected);
    }
}

#[test]
fn items_write_through_what_keeps_them_apart() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let turned = queue.buffer::<i64, 2>([4, 6]);
        let blocks = queue.buffer::<i64, 1>(18);
        let u = queue.buffer_from([6, 4], values(24))?;
        let accesses = (turned.write(transposed()), u.read(one_to_one()));
        queue.task("turn").parallel_for([6, 4], accesses, |item, (mut out, u)| {
            out[[item[1], item[0]]] = *u;
        })?;
        // Each item writes a block of three elements.
        let block = per_dimension([Side::along(0).stride(3)]);
        queue.task("blocks").parallel_for(6, blocks.write(block), |item, mut block| {
            (0..3).for_each(|nth| block[3 * item[0] + nth] = (100 * item[0] + nth) as i64);
        })?;
        Ok((contents(queue, &turned)?, contents(queue, &blocks)?))
    });
    let turned = indices([4, 6]).map(|[y, x]| values(24)[4 * x + y]).collect::<Vec<_>>();
    let blocks = (0..18).map(|i| 100 * (i / 3) + i % 3).collect::<Vec<i64>>();
    assert_eq!(found, (turned, blocks));
}

#[test]
fn windows_overlap_are_shifted_and_are_clamped() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let u = queue.buffer_from(20, values(20))?;
        let [pooled, shifted, near] = [6, 6, 20].map(|items| queue.buffer::<i64, 1>(items));
        let windows = per_dimension([Side::along(0).stride(3).window(5)]);
        let accesses = (pooled.write(one_to_one()), u.read(windows));
        queue.task("pool").parallel_for(6, accesses, |item, (out, u)| {
            *out = u[3 * item[0]..3 * item[0] + 5].iter().sum();
        })?;
        let accesses =
            (shifted.write(one_to_one()), u.read(per_dimension([Side::along(0).offset(7)])));
        queue.task("shift").parallel_for(6, accesses, |item, (out, u)| *out = u[item[0] + 7])?;
        let accesses =
            (near.write(one_to_one()), u.read(per_dimension([Side::along(0).border(2)])));
        queue.task("near").parallel_for(20, accesses, |item, (out, u)| {
            *out = u[item[0].saturating_sub(2)..(item[0] + 3).min(20)].iter().sum();
        })?;
        Ok([contents(queue, &pooled)?, contents(queue, &shifted)?, contents(queue, &near)?])
    });
    let u = values(20);
    let pooled = (0..6).map(|i| u[3 * i..3 * i + 5].iter().sum()).collect::<Vec<i64>>();
    let near =
        (0..20_usize).map(|i| u[i.saturating_sub(2)..(i + 3).min(20)].iter().sum()).collect();
    assert_eq!(found, [pooled, u[7..13].to_vec(), near]);
}

#[test]
fn blocks_at_the_edges_are_as_large_as_the_buffer_lets_them() {
    let cases: [([usize; 2], [usize; 2], usize); 4] =
        [([1, 1], [4, 4], 0), ([5, 7], [2, 3], 0), ([5, 7], [2, 3], 2), ([13, 2], [5, 9], 1)];
    for (range, size, more) in cases {
        // Blocks of which the last ones are beyond the buffer, too.
        let items = [0, 1].map(|dim| range[dim].div_ceil(size[dim]) + more);
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let blocks = blocks(size).clamped();
            let [by_item, by_row] = [(); 2].map(|()| queue.buffer::<i64, 2>(range));
            queue.task("number").parallel_for(
                items,
                by_item.write(blocks),
                |item, mut block| {
                    block.fill((10 * item[0] + item[1]) as i64);
                },
            )?;
            let accesses = (by_row.write(blocks), by_item.read(blocks));
            queue.task("copy").parallel_for_rows(items, accesses, move |_, (mut to, from)| {
                for at in all_of(range) {
                    if let Some(to) = to.get_mut(at) {
                        *to = 2 * from[at];
                    }
                }
            })?;
            contents(queue, &by_row)
        });
        let expected: Vec<i64> =
            indices(range).map(|[y, x]| 2 * (10 * (y / size[0]) + x / size[1]) as i64).collect();
        assert_eq!(found, expected, "{range:?} in blocks of {size:?}, {more} more");
    }
    let error = error_through(blocks([1, 2]));
    assert_says(&error, &["per_dimension(i0, 2*i1..+2)", "the buffer is {[0..4, 0..3]}"]);
}

#[test]
fn even_shares_are_written_and_leave_nothing_out() {
    for (items, granularity) in [(1, 1), (3, 1), (4, 3), (13, 1)] {
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let out = queue.buffer::<i64, 2>([10, 2]);
            let share = per_dimension([Side::share(0).granularity(granularity), Side::all()]);
            queue.task("share").parallel_for(items, out.write(share), |item, mut part| {
                part.fill(item[0] as i64);
            })?;
            contents(queue, &out)
        });
        let owner = |row: usize| {
            let granules = 10_usize.div_ceil(granularity);
            (0..items).rfind(|item| item * granules / items <= row / granularity).unwrap()
        };
        let expected: Vec<i64> = (0..20).map(|slot| owner(slot / 2) as i64).collect();
        assert_eq!(found, expected, "{items} items, granules of {granularity}");
    }
}

#[test]
fn mappers_compare_and_hash() {
    let set = std::collections::HashSet::from([select([1, 0]), transposed(), select([0, 1])]);
    assert_eq!(set.len(), 2);
    assert_eq!(neighborhood([1, 1]).periodic(), neighborhood([1, 1]).periodic_along([0, 1]));
    assert_ne!(neighborhood([1, 1]).periodic(), neighborhood_along_axes([1, 1]).periodic());
    assert_ne!(Side::along(0), Side::along(0).stride(2));
}

/// The error of a program that reads a matrix of 4 × 3 through a mapper.
fn error_through<M>(mapper: M) -> Error
where
    M: Copy + Send + Sync + 'static,
    celerity::ReadAccess<i64, 2, M>: celerity::KernelAccess<2, ItemView<'static>: Sized>,
{
    let error = Config::default().nodes(2).run(|queue| {
        let u = queue.buffer_from([4, 3], values(12))?.named("u");
        queue.task("look").parallel_for([4, 3], u.read(mapper), |_, _| {})?;
        Ok(())
    });
    error.expect_err("the mapper does not fit")
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    for part in parts.iter().chain(&["\"look\"", "range_mappers.rs", "\"u\""]) {
        assert!(message.contains(part), "\"{message}\" does not say \"{part}\"");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_reasons() {
    let wide = error_through(neighborhood([1, 4]).periodic());
    assert!(
        matches!(&wide, Error::Declare(error) if matches!(**error, DeclareError::Mapper { .. }))
    );
    assert_says(&wide, &["border of 4 along dimension 1", "3 elements", "narrower"]);
    let error = error_through(neighborhood([1, 1]).periodic_along([2]));
    assert!(matches!(error, Error::PeriodicDimension { dim: 2, dims: 2, .. }));
    assert_says(&error, &["dimension 2", "2 dimensions"]);
    let error = error_through(select([0, 2]));
    assert_says(&error, &["follows dimension 2 of the index space", "2 dimensions"]);
    let error = error_through(select([1, 1]));
    assert_says(&error, &["follows dimension 1 of the index space twice"]);
    let error = error_through(per_dimension([Side::along(0).offset(-2), Side::all()]));
    assert_says(&error, &["begins 2 in front of the buffer along dimension 0", "clamp"]);
    let error = error_through(per_dimension([Side::all(), Side::along(1).offset(1)]));
    assert!(
        matches!(&error, Error::Declare(error) if matches!(**error, DeclareError::OutOfBounds { .. }))
    );
    assert_says(&error, &["[0..4, 1..4]"]);
    let error = error_through(per_dimension([Side::all(), Side::along(1).stride(3).window(2)]));
    assert!(matches!(error, Error::Gaps { stride: 3, window: 2, .. }));
    assert_says(&error, &["windows of 2", "stride of 3"]);
    // A border as wide as the buffer is not too wide.
    check_surroundings([4, 3], [1, 3], [0, 1], None);
}

#[test]
fn items_do_not_write_through_what_lets_them_meet() {
    for side in [Side::all(), Side::along(0).window(2), Side::along(0).stride(0)] {
        let error = Config::default().run(|queue| {
            let out = queue.buffer::<i64, 1>(9);
            queue.task("meet").parallel_for(8, out.write(per_dimension([side])), |_, _| {})
        });
        let message = error.expect_err("items meet").to_string();
        assert!(
            message.contains("\"meet\"") && message.contains("gives different chunks"),
            "{message}"
        );
    }
}

/// Reads through a mapper that leaves out chunks of one item, in so many tasks.
fn forgetful(queue: &Queue, tasks: usize) -> Result<()> {
    let u = queue.buffer_from(64, vec![1_i64; 64])?.named("u");
    for _ in 0..tasks {
        let forgetful = mapper("forgetful", |chunk: Chunk<1>, _: [usize; 1]| match chunk.range {
            [1] => Subrange { offset: [0], range: [0] },
            range => Subrange { offset: chunk.offset, range },
        });
        queue.task("look").parallel_for(64, u.read(forgetful), |_, _| {})?;
    }
    Ok(())
}

#[test]
fn a_users_mapper_is_held_to_its_laws_when_it_is_submitted() {
    use celerity::CheckLevel::{Cheap, Full};
    // Where everything is checked, the first task is; otherwise one of sixteen.
    for (level, tasks) in [(Full, 1), (Cheap, 16)] {
        for [nodes, devices] in CLUSTERS {
            let config = Config::default().nodes(nodes).devices(devices).check(level);
            let error = config.run(|queue| forgetful(queue, tasks)).expect_err("it forgets");
            assert_says(&error, &["forgetful", "is not additive", "[0..2]", "r(A ∪ B)"]);
            let Error::Declare(error) = error else { panic!("{error:?}") };
            assert!(matches!(*error, DeclareError::UnlawfulMapper { .. }), "{error:?}");
        }
    }
    let config = Config::default().check(celerity::CheckLevel::Off);
    config.run(|queue| forgetful(queue, 40)).expect("nobody asks for single items");
}

#[test]
fn so_is_that_of_a_host_task_that_is_distributed() {
    let config = Config::default().nodes(2).check(celerity::CheckLevel::Full);
    let error = config.run(|queue| {
        let numbers = queue.buffer_from(8, vec![1_u32; 8])?;
        let forgetful = mapper("forgetful", |chunk: Chunk<1>, _| match chunk.range {
            [1] => Subrange::new([0], [1]),
            _ => Subrange::new(chunk.offset, chunk.range),
        });
        queue.host_task("look").distributed(8).submit(numbers.read(forgetful), |_, _| ())?;
        Ok(())
    });
    let Err(Error::Declare(error)) = error else { panic!("{error:?}") };
    assert!(matches!(*error, DeclareError::UnlawfulMapper { .. }), "{error:?}");
}
