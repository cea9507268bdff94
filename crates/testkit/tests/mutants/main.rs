//! The mutation proof: every deliberate bug of `celerity-mutants` is found by at least one check,
//! and without a bug the same checks are silent. With `MUTANTS_TABLE=1` prints which check sees which bug,
//! as the table of `docs/mutants.md`, for which each check hunts each bug by itself.

mod dry_run;
mod hunt;
mod parts;
mod table;

use celerity_mutants::{Mutant, with, without};

use hunt::{By, CHECKS, Row, cases};

#[test]
fn every_bug_is_found() {
    let cases = cases();
    let is_table_wanted = std::env::var_os("MUTANTS_TABLE").is_some();
    let hunt = if is_table_wanted { Row::of_all_checks } else { Row::of_first_check };
    let rows: Vec<_> =
        Mutant::ALL.iter().map(|&mutant| with(mutant, || hunt(mutant, &cases))).collect();
    if is_table_wanted {
        println!("{}", table::markdown(&rows));
    }
    println!("{}", table::details(&rows));

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
