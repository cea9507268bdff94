//! The mutation proof: every deliberate bug of `celerity-mutants` is found by at least one check,
//! and without a bug the same checks are silent. Prints which check sees which bug, as the table
//! of `docs/mutants.md`.

mod dry_run;
mod hunt;
mod parts;
mod table;

use celerity_mutants::{Mutant, with, without};

use hunt::{By, CHECKS, Row, cases};

#[test]
fn every_bug_is_found() {
    let cases = cases();
    let hunt = |&mutant: &Mutant| with(mutant, || Row::hunt(mutant, &cases));
    let rows: Vec<Row> = Mutant::ALL.iter().map(hunt).collect();
    println!("{}\n{}", table::markdown(&rows), table::details(&rows));

    let survivors: Vec<_> =
        rows.iter().filter(|row| row.first(|_| true).is_none()).map(|row| row.mutant).collect();
    assert!(survivors.is_empty(), "nothing finds {survivors:?}");
    let by_check = rows.iter().filter(|row| row.first(|by| by == By::Check).is_some()).count();
    assert!(rows.len() >= 30 && by_check >= 25, "{by_check} of {} by a check", rows.len());
}

#[test]
fn without_a_bug_all_checks_are_silent() {
    without(|| {
        for case in cases() {
            for check in CHECKS {
                if let Err(what) = (check.run)(&case) {
                    panic!("{}, {case}: {what}", check.name);
                }
            }
        }
    });
}
