//! Lanes that wait for each other: of one GPU, and of two whose threads know
//! nothing of each other's progress.

use super::*;

/// `x → 2x + lane + 1`, one after another: any two in the wrong order show.
fn mix(word: u64, lane: u64) -> u64 {
    word.wrapping_mul(2).wrapping_add(lane + 1)
}

fn mixing_kernels(fake: FakeDriver) -> FakeDriver {
    ["mix0", "mix1", "mix2", "mix3"].into_iter().zip(0..).fold(fake, |fake, (name, lane)| {
        fake.with_kernel(name, move |launch| {
            let element = super::super::pointer(launch.parameter(8)).cast::<u64>();
            // SAFETY: the test passes memory of one number.
            unsafe { *element = mix(*element, lane) };
            Ok(())
        })
    })
}

fn node(seed: u64, config: &CudaConfig) -> Node {
    let fake = mixing_kernels(FakeDriver::new(2, 1 << 20).with_seed(seed));
    let mut node = Node::new(fake, 2, config);
    let source = CodeSource::Ptx("mix0 mix1 mix2 mix3 fault".into());
    node.module = CodeModule::new("mixing", source);
    node
}

/// Two kernel lanes of each GPU.
const LANES: [u16; 4] = [0, 1, 3, 4];

#[test]
fn jobs_wait_for_those_of_other_lanes_and_gpus() {
    for seed in 1..30 {
        let config = CudaConfig { batch: 1 + seed as usize % 5, ..CudaConfig::default() };
        let mut node = node(seed, &config);
        let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
        let (mut expected, mut enqueued, mut last) = (0, [0; 6], None);
        for step in 0..60 {
            let which = (step * step + seed as usize) % 7 % LANES.len();
            let lane = LANES[which];
            let job = node.job(["mix0", "mix1", "mix2", "mix3"][which], 1, base);
            let after = last.filter(|last: &LaneJob| last.lane != LaneId::from_slot(lane));
            node.issue_after(lane, job, after.as_slice());
            let number = &mut enqueued[usize::from(lane)];
            last = Some(LaneJob { lane: LaneId::from_slot(lane), number: *number });
            *number += 1;
            expected = mix(expected, which as u64);
        }
        node.finish();
        assert_eq!(numbers(base, 1), [expected], "seed {seed}");
    }
}

#[test]
fn what_waits_for_a_failed_job_does_not_run() {
    for seed in 1..10 {
        let mut node = node(seed, &CudaConfig::default());
        let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
        let first = node.job("mix0", 1, base);
        node.issue(0, first);
        node.finish();
        let broken = node.job("absent", 1, base);
        node.issue(0, broken);
        let failed = LaneJob { lane: LaneId::from_slot(0), number: 1 };
        let job = node.job("mix1", 1, base);
        node.issue_after(3, job, &[failed]);
        let behind = node.job("mix2", 1, base);
        node.issue(3, behind);
        node.wait_until_quiet();
        node.backend.poll(&mut node.done);
        assert_eq!(node.done.len(), 2, "{:?}", node.done);
        assert!(node.failure().panic.as_ref().unwrap().contains("absent"));
        assert_eq!(numbers(base, 1), [mix(0, 0)], "seed {seed}");
    }
}

#[test]
fn a_gpu_that_fails_does_not_hold_up_others() {
    for seed in 1..10 {
        let mut node = node(seed, &CudaConfig::default());
        let base = node.backend.alloc(device_memory(1), 8, 8).unwrap();
        let fault = node.job("fault", 1, base);
        node.issue(0, fault);
        let job = node.job("mix1", 1, base);
        node.issue_after(3, job, &[LaneJob { lane: LaneId::from_slot(0), number: 0 }]);
        node.wait_until_quiet();
        node.backend.poll(&mut node.done);
        assert!(node.failure().panic.as_ref().unwrap().contains("GPU 0"), "{:?}", node.done);
    }
}

#[test]
fn waiting_can_be_left_to_the_node() {
    let config = CudaConfig { lane_waits: false, ..CudaConfig::default() };
    assert_eq!(node(1, &config).backend.joins(), None);
    let joins = node(1, &CudaConfig::default()).backend.joins().unwrap();
    assert!(joins.contains(LaneId::from_slot(5)) && !joins.contains(LaneId::from_slot(6)));
}
