//! Makes a failing program smaller: leaves out statements and accesses as long as it stays lawful
//! and fails. Knows nothing of how it fails.

use celerity_tdag::BufferId;

use crate::lawful::check_program;
use crate::program::{Op, Program};

/// The smallest program that can be reached from `program` by leaving out one thing after the
/// other, such that `fails` holds for each. At most `attempts` calls of `fails`.
pub fn shrink(
    program: &Program,
    attempts: usize,
    mut fails: impl FnMut(&Program) -> bool,
) -> Program {
    let (mut smallest, mut left) = (program.clone(), attempts);
    loop {
        let mut smaller = candidates(&smallest)
            .filter(|candidate| check_program(candidate).is_ok())
            .take(left)
            .inspect(|_| left -= 1);
        match smaller.find(|candidate| fails(candidate)) {
            Some(found) => smallest = found,
            None => return smallest,
        }
    }
}

/// The program without one of its parts, the largest and latest parts first.
fn candidates(program: &Program) -> impl Iterator<Item = Program> + use<> {
    let (one, two) = (program.clone(), program.clone());
    let statements = (0..program.ops.len()).rev();
    let accesses: Vec<(usize, usize)> =
        program.ops.iter().enumerate().rev().flat_map(pairs).collect();
    statements
        .filter_map(move |op| without_statement(&one, op))
        .chain(accesses.into_iter().map(move |(op, nth)| without_access(&two, op, nth)))
}

/// The accesses of a statement, with its position.
fn pairs((op, content): (usize, &Op)) -> impl Iterator<Item = (usize, usize)> + use<> {
    let accesses = match content {
        Op::Task(task) => task.accesses.len(),
        _ => 0,
    };
    (0..accesses).map(move |nth| (op, nth))
}

fn without_access(program: &Program, op: usize, nth: usize) -> Program {
    let mut smaller = program.clone();
    if let Op::Task(task) = &mut smaller.ops[op] {
        task.accesses.remove(nth);
    }
    smaller
}

/// Buffers are named by the order of their creation, so without one the later ones have other
/// names. One that is still used cannot go.
fn without_statement(program: &Program, op: usize) -> Option<Program> {
    let mut smaller = program.clone();
    if let Op::Create(_) = smaller.ops.remove(op) {
        let earlier = program.ops[..op].iter().filter(|op| matches!(op, Op::Create(_)));
        let gone = BufferId::from_index(earlier.count() as u64);
        for buffer in smaller.ops.iter_mut().flat_map(named) {
            if *buffer == gone {
                return None;
            }
            if *buffer > gone {
                *buffer = BufferId::from_index(buffer.index() - 1);
            }
        }
    }
    Some(smaller)
}

/// The buffers that a statement names.
fn named(op: &mut Op) -> Vec<&mut BufferId> {
    match op {
        Op::Create(_) | Op::Barrier => Vec::new(),
        Op::Drop(buffer) => vec![buffer],
        Op::Task(task) => task.accesses.iter_mut().map(|access| &mut access.buffer).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{MapperSpec, Sizes, seeded};

    fn scatters(program: &Program) -> bool {
        let mut tasks = program.ops.iter().filter_map(|op| match op {
            Op::Task(task) => Some(task),
            _ => None,
        });
        tasks.any(|task| {
            task.accesses.iter().any(|access| matches!(access.mapper, MapperSpec::Scatter { .. }))
        })
    }

    #[test]
    fn a_program_shrinks_to_what_makes_it_fail() {
        let programs = (0..60).map(|seed| seeded(Sizes::default(), seed));
        let failing: Vec<Program> = programs.filter(scatters).collect();
        assert!(failing.len() > 5, "{} programs scatter", failing.len());
        for program in failing {
            let small = shrink(&program, 10_000, scatters);
            assert!(scatters(&small) && check_program(&small).is_ok(), "{small}");
            // The access, its buffer, and perhaps who has written what it reads.
            assert!(small.ops.len() <= 3, "{small}");
        }
    }

    #[test]
    fn attempts_are_limited() {
        let program = seeded(Sizes::default(), 3);
        let mut calls = 0;
        let same = shrink(&program, 7, |_| {
            calls += 1;
            false
        });
        assert_eq!((same, calls), (program, 7));
    }
}
