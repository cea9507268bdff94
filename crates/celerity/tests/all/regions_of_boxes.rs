//! Range mappers whose image of a chunk is several boxes: what kernels and host tasks see and write
//! through them is what the buffer has, on every cluster, in every dimensionality, and what lies
//! between is neither seen nor overwritten.

use celerity::prelude::*;
use celerity::{DeclareError, Error, MapperViolation, RegionView, Result, RunError, verify_mapper};

use crate::common::{clusters, contents, everywhere, indices, values};

const CLUSTERS: [[usize; 2]; 6] = [[1, 1], [1, 3], [2, 1], [2, 2], [3, 1], [5, 2]];

fn slot<const D: usize>(at: [usize; D], range: [usize; D]) -> usize {
    (0..D).fold(0, |slot, dim| slot * range[dim] + at[dim])
}

fn all_of<const D: usize>(range: [usize; D]) -> Vec<[usize; D]> {
    let index = |mut slot: usize| {
        let mut at = [0; D];
        for dim in (0..D).rev() {
            (at[dim], slot) = (slot % range[dim], slot / range[dim]);
        }
        at
    };
    (0..range.iter().product()).map(index).collect()
}

/// Windows of items, `stride` elements from one to the next in each dimension.
#[derive(Clone, Copy)]
struct Windows<const D: usize> {
    items: [usize; D],
    stride: [usize; D],
    window: [usize; D],
    first: [usize; D],
}

impl<const D: usize> Windows<D> {
    /// A buffer that holds all windows, and a little more.
    fn buffer(&self) -> [usize; D] {
        std::array::from_fn(|dim| self.first[dim] + self.items[dim] * self.stride[dim] + 1)
    }

    fn mapper(&self) -> celerity::Gapped<D> {
        let side = |dim| {
            let side = Side::along(dim).stride(self.stride[dim]).window(self.window[dim]);
            side.offset(self.first[dim] as isize)
        };
        per_dimension(std::array::from_fn(side)).with_gaps()
    }

    /// The elements of an item.
    fn of(&self, item: [usize; D]) -> Vec<[usize; D]> {
        let at = |in_window: [usize; D]| {
            std::array::from_fn(|dim| {
                self.first[dim] + item[dim] * self.stride[dim] + in_window[dim]
            })
        };
        all_of(self.window).into_iter().map(at).collect()
    }
}

/// Items read their windows of what others have written, and overwrite them: twice, by items and by
/// rows.
fn check_windows<const D: usize>(windows: Windows<D>, hint: Hint)
where
    [usize; D]: celerity::IntoRange<D>,
{
    let range = windows.buffer();
    let mut expected = values(range.iter().product());
    for _ in 0..2 {
        expected.iter_mut().for_each(|value| *value += 1);
        for item in all_of(windows.items) {
            let own = windows.of(item);
            let sum: i64 = own.iter().map(|&at| expected[slot(at, range)]).sum();
            own.iter().for_each(|&at| expected[slot(at, range)] = sum);
        }
    }
    for by_rows in [false, true] {
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let u = queue.buffer_from(range, values(range.iter().product()))?;
            let sums = queue.buffer::<i64, D>(windows.items);
            for _ in 0..2 {
                let all = u.read_write(one_to_one());
                queue.task("step").parallel_for(range, all, |_, value| *value += 1)?;
                let accesses = (sums.write(one_to_one()), u.read(windows.mapper()));
                let task = queue.task("sum").hint(hint);
                task.parallel_for(windows.items, accesses, move |item, (sum, u)| {
                    *sum = windows.of(item.id()).into_iter().map(|at| u[at]).sum();
                })?;
                let accesses = (sums.read(one_to_one()), u.write(windows.mapper()));
                let task = queue.task("spread").hint(hint);
                if by_rows {
                    task.parallel_for_rows(
                        windows.items,
                        accesses,
                        move |row, (sums, mut own)| {
                            for (i, sum) in sums.iter().enumerate() {
                                for at in windows.of(row.item(i).id()) {
                                    own[at] = *sum;
                                }
                            }
                        },
                    )?;
                } else {
                    task.parallel_for(windows.items, accesses, |_, (sum, mut own)| own.fill(*sum))?;
                }
            }
            contents(queue, &u)
        });
        assert_eq!(found, expected, "by rows: {by_rows}");
    }
}

#[test]
fn windows_with_gaps_in_one_dimension() {
    for items in [1, 2, 5, 40] {
        let line = |stride, window, first| Windows {
            items: [items],
            stride: [stride],
            window: [window],
            first: [first],
        };
        check_windows(line(2, 1, 0), Hint::BandSplit);
        check_windows(line(5, 3, 2), Hint::Oversubscribe(2));
    }
}

#[test]
fn windows_with_gaps_in_two_dimensions() {
    // Every second row; every third column; a checkerboard's one half.
    let plane = |stride, window, first| Windows { items: [6, 5], stride, window, first };
    check_windows(plane([2, 1], [1, 1], [0, 0]), Hint::BandSplit);
    check_windows(plane([1, 3], [1, 2], [0, 1]), Hint::TiledSplit);
    check_windows(plane([3, 4], [2, 2], [1, 1]), Hint::TiledSplit);
    check_windows(plane([2, 2], [1, 1], [0, 0]), Hint::SplitAlong(1));
}

#[test]
fn windows_with_gaps_in_three_dimensions() {
    let space = |stride, window| Windows { items: [4, 3, 5], stride, window, first: [0, 1, 0] };
    check_windows(space([2, 2, 2], [1, 1, 1]), Hint::TiledSplit);
    check_windows(space([1, 3, 1], [1, 2, 1]), Hint::BandSplit);
    check_windows(space([1, 1, 4], [1, 1, 3]), Hint::SplitAlong(2));
}

/// Red elements are computed from black ones and the other way around, in one buffer and in place:
/// each task writes every second element and reads only those between.
#[test]
fn red_and_black_take_turns_in_place() {
    const SIZE: usize = 41;
    let mean = |left: i64, right: i64| (left + 3 * right) % 1009;
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let u = queue.buffer_from(SIZE, values(SIZE))?;
        for color in (0..6).map(|step| 1 + step % 2) {
            let own = per_dimension([Side::along(0).stride(2).window(1).offset(color)]);
            let around = region_mapper("around", move |chunk: Chunk<1>, _: [usize; 1]| {
                let first = 2 * chunk.offset[0] + color as usize - 1;
                (0..=chunk.range[0]).map(move |nth| Subrange::new([first + 2 * nth], [1]))
            });
            let items = (SIZE - color as usize) / 2;
            let accesses = (u.write(own.with_gaps()), u.read(around));
            queue.task("relax").parallel_for(items, accesses, move |item, (mut own, u)| {
                let at = 2 * item[0] + color as usize;
                own[at] = mean(u[at - 1], u[at + 1]);
            })?;
        }
        contents(queue, &u)
    });
    let mut expected = values(SIZE);
    for color in (0..6).map(|step| 1 + step % 2) {
        for at in (color..SIZE - 1).step_by(2) {
            expected[at] = mean(expected[at - 1], expected[at + 1]);
        }
    }
    assert_eq!(found, expected);
}

/// Blocks of 2 × 3 elements, those of one colour of a checkerboard.
fn checkerboard(chunk: Chunk<2>, _: [usize; 2]) -> Vec<Subrange<2>> {
    let blocks = all_of(chunk.range).into_iter();
    let blocks = blocks.map(|[y, x]| [chunk.offset[0] + y, chunk.offset[1] + x]);
    let black = blocks.filter(|[y, x]| (y + x) % 2 == 0);
    black.map(|[y, x]| Subrange::new([2 * y, 3 * x], [2, 3])).collect()
}

#[test]
fn a_checkerboard_of_boxes_is_read_by_items_rows_and_parts() {
    let (grid, range) = ([5, 6], [10, 18]);
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let u = queue.buffer_from(range, values(180))?;
        queue.task("step").parallel_for(range, u.read_write(one_to_one()), |_, u| *u += 1)?;
        let [by_item, by_row] = [(); 2].map(|()| queue.buffer::<i64, 2>(grid));
        let board = region_mapper("checkerboard", checkerboard);
        let accesses = (by_item.write(one_to_one()), u.read(board.clone()));
        let task = queue.task("items").hint(Hint::TiledSplit);
        task.parallel_for(grid, accesses, |item, (sum, u)| {
            let [y, x] = item.id();
            assert_eq!(u.get([2 * y, 3 * x]).is_some(), (y + x) % 2 == 0);
            *sum = u.part_at([2 * y, 3 * x]).map_or(-1, |part| part.rows().flatten().sum());
        })?;
        let accesses = (by_row.write(one_to_one()), u.read(board.clone()));
        queue.task("rows").parallel_for_rows(
            grid,
            accesses,
            |row, (sums, u): (&mut [i64], RegionView<'_, i64, 2>)| {
                for (sum, item) in sums.iter_mut().zip(row.items()) {
                    let at = [2 * item[0] + 1, 3 * item[1] + 2];
                    *sum = u.part_at(at).map_or(-1, |part| part.rows().flatten().sum());
                }
            },
        )?;
        let total = queue.buffer::<i64, 1>(1);
        let split = queue.host_task("count").distributed(grid);
        let count = queue.buffer::<i64, 2>(grid);
        split.submit((count.write(one_to_one()), u.read(board)), |part, (mut count, u)| {
            let all: i64 = u.parts().map(|part| part.len() as i64).sum();
            assert_eq!(all, u.len() as i64);
            let Subrange { offset, range } = part.subrange();
            for [y, x] in indices(range).map(|[y, x]| [offset[0] + y, offset[1] + x]) {
                count[[y, x]] = u.get([2 * y, 3 * x]).map_or(0, |_| 6);
            }
        })?;
        let corners = region_mapper("corners", |_: Chunk<0>, [h, w]: [usize; 2]| {
            [[0, 0], [0, w - 1], [h - 1, 0], [h - 1, w - 1]].map(|at| Subrange::new(at, [1, 1]))
        });
        queue.host_task("corners").once(
            (total.write(all()), u.read(corners)),
            |(mut total, u)| {
                assert_eq!(u.boxes().len(), 4);
                total[0] = u.parts().map(|corner| corner[corner.bounds().min()]).sum();
            },
        )?;
        Ok((
            [contents(queue, &by_item)?, contents(queue, &by_row)?, contents(queue, &count)?],
            contents(queue, &total)?,
        ))
    });
    let u = |[y, x]: [usize; 2]| values(180)[18 * y + x] + 1;
    let sum = |[y, x]: [usize; 2]| match (y + x) % 2 {
        0 => indices([2, 3]).map(|[dy, dx]| u([2 * y + dy, 3 * x + dx])).sum(),
        _ => -1,
    };
    let sums: Vec<i64> = indices(grid).map(sum).collect();
    let counts = indices(grid).map(|[y, x]| if (y + x) % 2 == 0 { 6 } else { 0 }).collect();
    let corners = [[0, 0], [0, 17], [9, 0], [9, 17]].map(u).iter().sum();
    assert_eq!(found, ([sums.clone(), sums, counts], vec![corners]));
}

/// What lies 3 or 4 rows in front of a chunk and behind it, and nothing of the chunk itself.
fn far_rows(chunk: Chunk<2>, [h, w]: [usize; 2]) -> [Subrange<2>; 2] {
    let (first, end) = (chunk.offset[0], chunk.offset[0] + chunk.range[0]);
    let before = first.saturating_sub(4)..end.saturating_sub(3);
    let behind = (first + 3).min(h)..(end + 4).min(h);
    [before, behind].map(|rows| Subrange::new([rows.start, 0], [rows.len(), w]))
}

#[test]
fn halos_apart_from_each_other_are_exchanged_in_each_step() {
    for range in [[30, 3], [9, 4], [2, 2], [1, 1]] {
        let sum = |at: [usize; 2], u: &dyn Fn([usize; 2]) -> Option<i64>| {
            let near = [[-4, 1], [-3, 2], [3, 3], [4, 4]].map(|[dy, weight]: [i64; 2]| {
                let y = usize::try_from(at[0] as i64 + dy).ok();
                y.and_then(|y| u([y, at[1]])).map_or(0, |value| weight * value)
            });
            near.iter().sum::<i64>() % 1009
        };
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let mut old = queue.buffer_from(range, values(range[0] * range[1]))?;
            let mut new = queue.buffer::<i64, 2>(range);
            for _ in 0..3 {
                let halos = region_mapper("far rows", far_rows);
                let accesses = (new.write(one_to_one()), old.read(halos));
                queue.task("step").parallel_for(range, accesses, move |item, (out, u)| {
                    *out = sum(item.id(), &|at| u.get(at).copied());
                })?;
                std::mem::swap(&mut old, &mut new);
            }
            contents(queue, &old)
        });
        let mut expected = values(range[0] * range[1]);
        for _ in 0..3 {
            let at = |[y, x]: [usize; 2]| (y < range[0]).then(|| expected[y * range[1] + x]);
            expected = indices(range).map(|index| sum(index, &at)).collect();
        }
        assert_eq!(found, expected, "{range:?}");
    }
}

/// Hundreds of elements far apart, as a table says: each chunk reads some of everybody's.
#[test]
fn what_a_table_names_is_exchanged_in_each_step() {
    for range in [[24, 40], [31, 17], [1, 700], [3, 2]] {
        // One step of a walk that comes everywhere, or nearly so.
        let place = move |[y, x]: [usize; 2]| {
            let at = 7 * slot([y, x], range) + 3;
            [at / range[1] % range[0], at % range[1]]
        };
        let found = everywhere(clusters(CLUSTERS), |queue| {
            let mut old = queue.buffer_from(range, values(range[0] * range[1]))?;
            let mut new = queue.buffer::<i64, 2>(range);
            for _ in 0..3 {
                let table = region_mapper("table", move |chunk: Chunk<2>, _: [usize; 2]| {
                    let items = all_of(chunk.range).into_iter();
                    let items = items.map(move |[y, x]| [chunk.offset[0] + y, chunk.offset[1] + x]);
                    items.map(move |item| Subrange::new(place(item), [1, 1]))
                });
                let accesses = (new.write(one_to_one()), old.read(table));
                queue.task("walk").parallel_for(range, accesses, move |item, (out, old)| {
                    *out = 1 + old[place(item.id())];
                })?;
                std::mem::swap(&mut old, &mut new);
            }
            contents(queue, &old)
        });
        let mut expected = values(range[0] * range[1]);
        for _ in 0..3 {
            let from = |index| 1 + expected[slot(place(index), range)];
            expected = indices(range).map(from).collect();
        }
        assert_eq!(found, expected, "{range:?}");
    }
}

#[test]
fn nothing_at_all_is_a_region_too() {
    let found = everywhere(clusters(CLUSTERS), |queue| {
        let u = queue.buffer::<i64, 1>(8);
        let count = queue.buffer::<i64, 1>(4);
        let nothing =
            region_mapper("nothing", |_: Chunk<1>, _: [usize; 1]| Vec::<Subrange<1>>::new());
        let accesses = (count.write(one_to_one()), u.read(nothing));
        queue.task("look").parallel_for(4, accesses, |item, (count, u)| {
            assert!(u.is_empty() && u.get(item[0]).is_none());
            *count = u.len() as i64;
        })?;
        // A space without items.
        let odd = per_dimension([Side::along(0).stride(2).window(1)]).with_gaps();
        queue.task("none").parallel_for(0, u.write(odd), |_, _| unreachable!())?;
        contents(queue, &count)
    });
    assert_eq!(found, [0; 4]);
}

#[test]
fn laws_hold_for_windows_and_what_breaks_them_shrinks() {
    for (stride, window, offset) in [(2, 1, 0), (5, 3, 2), (4, 1, 1)] {
        let side = |dim| Side::along(dim).stride(stride).window(window).offset(offset);
        let plane = per_dimension([side(0), side(1)]).with_gaps();
        verify_mapper(&plane, [6, 7], [40, 40]).unwrap();
        verify_mapper(&per_dimension([side(0)]).with_gaps(), 6, 40).unwrap();
        let space = per_dimension([Side::all(), side(1), side(2)]).with_gaps();
        verify_mapper(&space, [2, 5, 4], [3, 40, 40]).unwrap();
    }
    verify_mapper(&region_mapper("checkerboard", checkerboard), [5, 6], [10, 18]).unwrap();
    verify_mapper(&region_mapper("far rows", far_rows), [30, 3], [30, 3]).unwrap();
    // The two ends of a chunk: of a part these are others.
    let ends = region_mapper("ends", |chunk: Chunk<1>, _: [usize; 1]| {
        let (first, last) = (chunk.offset[0], chunk.offset[0] + chunk.range[0] - 1);
        [first, last].map(|at| Subrange::new([at], [1]))
    });
    let violation = *verify_mapper(&ends, 100, 100).unwrap_err();
    let MapperViolation::NotAdditive { chunk, .. } = violation else { panic!("{violation}") };
    assert_eq!(chunk.volume(), 3, "two ends and one between are the smallest");
    let error = verify_mapper(&region_mapper("checkerboard", checkerboard), [5, 6], [9, 18]);
    let violation = *error.unwrap_err();
    let MapperViolation::OutOfBounds { chunk, .. } = violation else { panic!("{violation}") };
    assert_eq!(chunk.volume(), 1);
}

/// The error of a program on two nodes of two devices.
fn error_of(program: impl Fn(&Queue) -> Result<()> + Sync) -> Error {
    Config::default().nodes(2).devices(2).run(program).expect_err("something is wrong")
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    for part in parts.iter().chain(&["\"look\"", "regions_of_boxes.rs"]) {
        assert!(message.contains(part), "\"{message}\" does not say \"{part}\"");
    }
}

#[test]
fn what_is_wrong_is_refused_when_it_is_submitted() {
    let windows = |side: Side| per_dimension([side]).with_gaps();
    let error = error_of(|queue| {
        let u = queue.buffer_from(8, values(8))?.named("u");
        queue.task("look").parallel_for(
            4,
            u.read(per_dimension([Side::along(0).stride(2).window(1)])),
            |_, _| {},
        )?;
        Ok(())
    });
    assert!(matches!(error, Error::Gaps { stride: 2, window: 1, .. }), "{error}");
    assert_says(&error, &["\"u\"", ".with_gaps()"]);
    let error = error_of(|queue| {
        let u = queue.buffer_from(8, values(8))?.named("u");
        let beyond = windows(Side::along(0).stride(2).window(1).offset(2));
        queue.task("look").parallel_for(4, u.read(beyond), |_, _| {})?;
        Ok(())
    });
    let Error::Declare(declared) = &error else { panic!("{error}") };
    assert!(matches!(**declared, DeclareError::OutOfBounds { .. }), "{error}");
    assert_says(&error, &["\"u\"", "per_dimension(2*i0+2)"]);
    let error = error_of(|queue| {
        let u = queue.buffer::<i64, 1>(9).named("u");
        let meeting = windows(Side::along(0).stride(2).window(3));
        queue.task("look").parallel_for(4, u.write(meeting), |_, _| {})?;
        Ok(())
    });
    let Error::Declare(declared) = &error else { panic!("{error}") };
    assert!(matches!(**declared, DeclareError::OverlappingWrites { .. }), "{error}");
    assert_says(&error, &["\"u\""]);
    let error = error_of(|queue| {
        let u = queue.buffer_from(8, values(8))?.named("u");
        let beyond = region_mapper("beyond", |chunk: Chunk<1>, _: [usize; 1]| {
            [0, 6].map(|ahead| Subrange::new([chunk.offset[0] + ahead], chunk.range))
        });
        queue.task("look").parallel_for(4, u.read(beyond), |_, _| {})?;
        Ok(())
    });
    let Error::Declare(declared) = &error else { panic!("{error}") };
    assert!(matches!(**declared, DeclareError::OutOfBounds { .. }), "{error}");
    assert_says(&error, &["\"u\"", "beyond"]);
    let error = error_of(|queue| {
        let u = queue.buffer::<i64, 1>(9).named("u");
        let even = windows(Side::along(0).stride(2).window(1));
        queue.task("write").parallel_for(4, u.write(even), |_, _| {})?;
        queue.task("look").parallel_for(8, u.read(one_to_one()), |_, _| {})?;
        Ok(())
    });
    let Error::Declare(declared) = &error else { panic!("{error}") };
    assert!(matches!(**declared, DeclareError::UninitializedRead { .. }), "{error}");
    assert_says(&error, &["\"u\""]);
}

#[test]
fn what_lies_between_is_not_there() {
    let error = error_of(|queue| {
        let u = queue.buffer_from(16, values(16))?;
        let even = per_dimension([Side::along(0).stride(2).window(1)]).with_gaps();
        queue.task("look").parallel_for(8, u.read(even), |item, u| {
            let _ = u[2 * item[0] + 1];
        })?;
        queue.barrier()
    });
    let Error::Run(run) = &error else { panic!("{error}") };
    assert!(matches!(**run, RunError::TaskPanicked { .. }), "{error}");
    assert_says(&error, &["is in none of the", "boxes that the access declared"]);
    let error = error_of(|queue| {
        let u = queue.buffer_from(16, values(16))?;
        let even = per_dimension([Side::along(0).stride(2).window(1)]).with_gaps();
        queue.task("look").parallel_for(8, u.write(even), |item, mut own| {
            own[2 * item[0] + 1] = 0;
        })?;
        queue.barrier()
    });
    assert_says(&error, &["what this item may write"]);
}
