//! How far a program can run ahead, and what the runtime does while it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use celerity_executor::{ClusterConfig, Lookahead};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::*;

#[test]
fn submission_blocks_while_too_many_horizons_are_outstanding() {
    // What the lookahead holds back does not count.
    let lookahead = Lookahead::None;
    let config = ClusterConfig { run_ahead: 2, horizon_step: 1, lookahead, ..cluster(2, 1) };
    let most = run(&config, |node| {
        let space = Box3::from_range([8]);
        let data = buffer(node, space);
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", space, fill, |p, v| v[0].set(p, 0))?;
        let mut most = 0;
        for _ in 0..200 {
            let add = vec![updates(data, Mapper::OneToOne)];
            kernel(node, "add", space, add, |p, v| v[0].set(p, v[0].get(p) + 1))?;
            most = most.max(node.outstanding_horizons());
        }
        let contents = fence(node, data, space)?.wait(node)?;
        assert_eq!(contents, vec![200; 8]);
        Ok(most)
    });
    assert_eq!(most, Ok(2), "reached, but not exceeded");
}

#[test]
fn a_blocked_submission_waits_for_the_kernel_that_holds_it_up() {
    let config = ClusterConfig { run_ahead: 1, horizon_step: 1, ..cluster(1, 1) };
    let released = Arc::new(AtomicBool::new(false));
    let outcome = run(&config, move |node| {
        let space = Box3::from_range([2]);
        let data = buffer(node, space);
        let gate = released.clone();
        let wait = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "wait", space, wait, move |p, v| {
            std::thread::sleep(Duration::from_millis(30));
            gate.store(true, Ordering::SeqCst);
            v[0].set(p, 0);
        })?;
        for _ in 0..2 {
            let add = vec![updates(data, Mapper::OneToOne)];
            kernel(node, "add", space, add, |p, v| v[0].set(p, v[0].get(p) + 1))?;
        }
        assert!(released.load(Ordering::SeqCst), "submission has not waited");
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn an_idle_cluster_does_nothing_at_all() {
    let still = run(&cluster(3, 2), |node| {
        let space = Box3::from_range([30]);
        let data = buffer(node, space);
        kernel(node, "fill", space, vec![writes(data, Mapper::OneToOne)], |p, v| v[0].set(p, 0))?;
        node.barrier()?;
        if node.node().index() > 0 {
            return Ok(true);
        }
        assert!(node.rounds() > 0);
        // The other nodes get to their last epoch when their threads get to run, and wait
        // for this one there. A loop that turns without need turns in every pause.
        Ok((0..100).any(|_| {
            let before = node.rounds();
            std::thread::sleep(Duration::from_millis(200));
            node.rounds() == before
        }))
    });
    assert_eq!(still, Ok(true), "the loop turns while there is nothing to do");
}

#[test]
fn waiting_for_a_long_kernel_costs_no_rounds() {
    let rounds = run(&cluster(2, 1), |node| {
        let space = Box3::from_range([2]);
        let data = buffer(node, space);
        let before = node.rounds();
        kernel(node, "slow", space, vec![writes(data, Mapper::OneToOne)], |p, v| {
            std::thread::sleep(Duration::from_millis(100));
            v[0].set(p, 0);
        })?;
        node.barrier()?;
        Ok(node.rounds() - before)
    });
    // Spinning would make some thousand rounds in this time.
    assert!(rounds.clone().unwrap() < 200, "{rounds:?}");
}

#[test]
fn tolerated_reads_see_zeroes_and_are_reported_once() {
    use celerity_tdag::{DeclareError, UninitializedRead};
    let config = ClusterConfig { uninitialized_read: UninitializedRead::Warn, ..cluster(2, 1) };
    let outcome = run(&config, |node| {
        let space = Box3::from_range([6]);
        let data = buffer(node, space);
        kernel(node, "add", space, vec![updates(data, Mapper::OneToOne)], |p, v| {
            v[0].set(p, v[0].get(p) + p[0]);
        })?;
        let warnings = node.take_warnings();
        assert!(
            matches!(warnings.as_slice(), [DeclareError::UninitializedRead { .. }]),
            "{warnings:?}"
        );
        assert!(node.take_warnings().is_empty());
        Ok(fence(node, data, space)?.wait(node)?)
    });
    assert_eq!(outcome, Ok((0..6).collect()));
}
