//! Index spaces that do not begin at the origin.

use celerity::prelude::*;
use celerity::{Error, Result};

fn on_clusters<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> Vec<Result<R>> {
    let cluster = |(nodes, devices)| Config::default().nodes(nodes).devices(devices).run(&program);
    [(1, 1), (1, 3), (3, 2)].map(cluster).into()
}

#[test]
fn items_and_rows_have_indices_from_the_offset_on() {
    let cells = on_clusters(|queue| {
        let cells = queue.buffer_from([4, 6], vec![[0; 2]; 24])?;
        let task = queue.task("items").offset([1, 2]);
        task.parallel_for([2, 3], cells.write(one_to_one()), |item, cell| *cell = item.id())?;
        let task = queue.task("rows").offset([3, 1]);
        task.parallel_for_rows([1, 5], cells.write(one_to_one()), |row, cells| {
            row.items().zip(cells).for_each(|(item, cell)| *cell = item.id());
        })?;
        Ok(queue.fence(&cells)?.wait()?.as_slice().to_vec())
    });
    let touched = |[y, x]: [usize; 2]| {
        (1..3).contains(&y) && (2..5).contains(&x) || y == 3 && (1..6).contains(&x)
    };
    let all = (0..4).flat_map(|y| (0..6).map(move |x| [y, x]));
    let expected: Vec<_> = all.map(|at| if touched(at) { at } else { [0; 2] }).collect();
    for cells in cells {
        assert_eq!(cells.unwrap(), expected);
    }
}

#[test]
fn range_mappers_see_where_the_index_space_begins() {
    let cells = on_clusters(|queue| {
        let cells = queue.buffer_from([8], vec![0; 8])?;
        // SAFETY: items have distances from the beginning of their own.
        #[allow(unsafe_code)]
        let from_the_beginning = unsafe {
            disjoint_mapper("from the beginning", |chunk: Chunk<1>, _| Subrange {
                offset: [chunk.offset[0] - chunk.global.offset[0]],
                range: chunk.range,
            })
        };
        let task = queue.task("shift").offset(100);
        task.parallel_for(6, cells.write(from_the_beginning), |item, mut cell| {
            cell[[item[0] - 100]] = item[0];
        })?;
        Ok(queue.fence(&cells)?.wait()?.as_slice().to_vec())
    });
    for cells in cells {
        assert_eq!(cells.unwrap(), [100, 101, 102, 103, 104, 105, 0, 0]);
    }
}

#[test]
fn an_offset_that_does_not_fit_is_refused() {
    let refused = |offset: &[usize], result: Result<celerity::TaskId>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Offset { .. }), "{error}");
        for part in ["\"nowhere\"", &format!("{offset:?}"), "[2, 2]"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    };
    for result in on_clusters(|queue| {
        let task = || queue.task("nowhere");
        let run = |task: celerity::TaskBuilder<'_>| task.parallel_for([2, 2], (), |_, ()| ());
        refused(&[1], run(task().offset(1)));
        refused(&[0, usize::MAX], run(task().offset([0, usize::MAX])));
        queue.barrier()
    }) {
        result.unwrap();
    }
}
