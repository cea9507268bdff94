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
            let element = pointer(launch.parameter(8)).cast::<u64>();
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

/// The order in which these jobs run: `x` on one GPU; `a` on the other, and behind it
/// `b`, which waits for `x`; and `y` on the first GPU, which waits for `a`.
fn order_of(seed: u64) -> Vec<&'static str> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let fake = FakeDriver::new(2, 1 << 20).with_seed(seed);
    let fake = ["x", "a", "b", "y"].into_iter().fold(fake, |fake, name| {
        let log = log.clone();
        fake.with_kernel(name, move |_| {
            log.lock().unwrap().push(name);
            Ok(())
        })
    });
    let mut node = Node::new(fake, 2, &CudaConfig::default());
    node.module = CodeModule::new("logging", CodeSource::Ptx("x a b y".into()));
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    node.fake.pause();
    let first = |lane| [LaneJob { lane: LaneId::from_slot(lane), number: 0 }];
    for (name, lane, after) in
        [("x", 0, None), ("a", 3, None), ("b", 3, Some(first(0))), ("y", 1, Some(first(3)))]
    {
        let job = node.job(name, 1, base);
        node.issue_after(lane, job, after.as_ref().map_or(&[], |after| after.as_slice()));
    }
    let start = Instant::now();
    while node.fake.counts().launches < 4 {
        assert!(start.elapsed() < Duration::from_secs(60), "jobs are put on streams at once");
        std::thread::yield_now();
    }
    node.fake.resume();
    node.finish();
    log.lock().unwrap().clone()
}

#[test]
fn who_waits_for_a_job_does_not_wait_for_what_is_behind_it() {
    let before = |order: &[&str], one, other| {
        let place = |name| order.iter().position(|&job| job == name).unwrap();
        place(one) < place(other)
    };
    let orders: Vec<_> = (1..60).map(order_of).collect();
    for order in &orders {
        assert!(before(order, "x", "b") && before(order, "a", "y"), "{order:?}");
    }
    assert!(orders.iter().any(|order| before(order, "y", "x")), "`y` has never passed `x`");
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
        assert!(node.failure().failure.as_ref().unwrap().to_string().contains("absent"));
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
        assert!(
            node.failure().failure.as_ref().unwrap().to_string().contains("GPU 0"),
            "{:?}",
            node.done
        );
    }
}

#[test]
fn waiting_can_be_left_to_the_node() {
    let config = CudaConfig { lane_waits: false, ..CudaConfig::default() };
    assert_eq!(node(1, &config).backend.joins(), None);
    let joins = node(1, &CudaConfig::default()).backend.joins().unwrap();
    assert!(joins.contains(LaneId::from_slot(5)) && !joins.contains(LaneId::from_slot(6)));
}
