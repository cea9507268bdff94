//! Schedules of a few lines, of which it is known by hand when everything happens.

use celerity_predict::{
    ClusterModel, CostedWork, EngineThreads, Lane, Limit, MeasuredLaunch, NodeSchedule, Pace,
    PredictError, Prediction, Processor, RecordedRun, Subject, WayModel, WorkCosts, predict,
};

pub(crate) fn free() -> ClusterModel {
    ClusterModel::parse(include_str!("../../clusters/free.toml"), "free.toml".as_ref()).unwrap()
}

/// A cluster where all that costs something costs another prime number.
fn dear() -> ClusterModel {
    let mut model = free();
    model.engine.instruction_ns = 2;
    model.engine.allocation_ns = 3;
    model.network.message_ns = 5;
    model.network.collective_ns = 7;
    model.network.round_ns = 11;
    let way = |latency_ns, byte_ps| WayModel { latency_ns, byte_ps };
    model.network.between_hosts = way(100, 1000.0);
    model.copy.to_device = way(13, 1000.0);
    model.copy.within_host = way(17, 1000.0);
    model
}

/// Kernels "a" and "b" of 1 and 10 ns per item.
fn costs() -> WorkCosts {
    let launch = |name: &str, took| MeasuredLaunch {
        name: name.to_owned(),
        task: took,
        on_device: true,
        items: 10,
        took,
    };
    let launches = vec![launch("a", 10), launch("b", 100)];
    WorkCosts::of([&RecordedRun { launches, ..RecordedRun::default() }], 0)
}

fn schedules(texts: &[&str]) -> Vec<NodeSchedule> {
    let read = |(node, text): (usize, &&str)| {
        let nodes = texts.len();
        let text = format!("celerity-schedule 1\nnode {node} of {nodes}, 2 devices\n{text}end\n");
        NodeSchedule::parse(&text, format!("N{node}.txt").as_ref()).unwrap()
    };
    texts.iter().enumerate().map(read).collect()
}

fn of(model: &ClusterModel, texts: &[&str]) -> Result<Prediction, PredictError> {
    let schedules = schedules(texts);
    let paces: Vec<_> = schedules.iter().map(Pace::immediate).collect();
    predict(model, &costs(), &schedules, &paces)
}

const SENDS: &str = "task T1 kernel \"a\"
I1 kernel task=T1 device=D0 items=40 after=
task T2 kernel \"b\"
I2 send for=T2 buffer=B0 size=4 to=N1 boxes=0:0:0-8:1:1 after=I1
";
const RECEIVES: &str = "task T1 kernel \"a\"
task T2 kernel \"b\"
I1 receive for=T2 buffer=B0 size=4 boxes=0:0:0-8:1:1 after=
I2 kernel task=T2 device=D0 items=3 after=I1
";

#[test]
fn a_message_comes_when_it_has_been_sent_and_takes_its_time() {
    let prediction = of(&free(), &[SENDS, RECEIVES]).unwrap();
    assert_eq!(prediction.makespan, 40 + 30);
    // Issue and kernel; issue and message; handling; issue and kernel.
    let prediction = of(&dear(), &[SENDS, RECEIVES]).unwrap();
    assert_eq!(prediction.makespan, (2 + 40) + (2 + 5) + (100 + 32) + 5 + (2 + 30));
    let shares =
        |limit| prediction.critical[Limit::ALL.iter().position(|it| *it == limit).unwrap()];
    assert_eq!((shares(Limit::Kernel), shares(Limit::Network)), (70, 132));
    assert_eq!(shares(Limit::Runtime), 2 + 2 + 5 + 5 + 2);
    assert_eq!(prediction.critical.iter().sum::<u64>(), prediction.makespan);
    assert_eq!(prediction.limit(), Limit::Network);
}

#[test]
fn a_large_message_waits_for_its_receiver() {
    let late = "task T1 kernel \"b\"
I1 kernel task=T1 device=D0 items=50 after=
task T2 kernel \"b\"
I2 receive for=T2 buffer=B0 size=4 boxes=0:0:0-8:1:1 after=I1
";
    let mut model = dear();
    // It is there long before.
    assert_eq!(of(&model, &[SENDS, late]).unwrap().makespan, 2 + 500 + 2);
    model.network.eager_bytes = 31;
    let prediction = of(&model, &[SENDS, late]).unwrap();
    assert_eq!(prediction.makespan, 2 + 500 + 2 + (100 + 32) + 5);
}

#[test]
fn messages_of_one_link_go_one_after_the_other() {
    let sends = "task T2 kernel \"b\"
I1 send for=T2 buffer=B0 size=4 to=N1 boxes=0:0:0-8:1:1 after=
I2 send for=T2 buffer=B0 size=4 to=N1 boxes=8:0:0-16:1:1 after=
";
    let receives = "task T2 kernel \"b\"
I1 split-receive for=T2 buffer=B0 size=4 boxes=0:0:0-16:1:1 after=
I2 await-receive for=T2 buffer=B0 boxes=0:0:0-4:1:1,6:0:0-8:1:1 after=I1
I3 await-receive for=T2 buffer=B0 boxes=4:0:0-6:1:1,8:0:0-16:1:1 after=I1
I4 kernel task=T2 device=D0 items=1 after=I2
I5 kernel task=T2 device=D1 items=1 after=I3
";
    let mut model = free();
    model.network.between_hosts = WayModel { latency_ns: 100, byte_ps: 1000.0 };
    let prediction = of(&model, &[sends, receives]).unwrap();
    let starts = prediction.spans.all().iter().filter_map(|span| match span.lane {
        Lane::Kernels(device) => Some((device, span.start)),
        _ => None,
    });
    // The second message brings all of what the second await waits for but two elements.
    assert_eq!(starts.collect::<Vec<_>>(), [(0, 132), (1, 164)]);
    model.nodes.per_host = 2;
    assert_eq!(of(&model, &[sends, receives]).unwrap().makespan, 10, "they are on one host now");
}

const TWO_DEVICES: &str = "task T1 kernel \"b\"
I1 kernel task=T1 device=D0 items=10 after=
I2 kernel task=T1 device=D1 items=10 after=
I3 copy from=M1 to=M2 bytes=50 after=
task T2 kernel \"b\"
I4 kernel task=T2 device=D0 items=10 after=I1,I3
";

#[test]
fn lanes_overlap_and_devices_of_one_processor_take_turns() {
    let mut model = free();
    model.copy.to_device = WayModel { latency_ns: 20, byte_ps: 1000.0 };
    assert_eq!(of(&model, &[TWO_DEVICES]).unwrap().makespan, 200, "the copy is hidden");
    model.copy.to_device.latency_ns = 100;
    assert_eq!(of(&model, &[TWO_DEVICES]).unwrap().makespan, 150 + 100, "the copy is late");
    model.device.processor = Processor::Host;
    assert_eq!(of(&model, &[TWO_DEVICES]).unwrap().makespan, 300);
}

#[test]
fn nodes_of_a_host_slow_each_other_down_if_the_calibration_says_so() {
    let mut model = free();
    model.device.beside_others_percent = 150.0;
    let text = "task T1 kernel \"a\"\nI1 kernel task=T1 device=D0 items=100 after=\n";
    assert_eq!(of(&model, &[text, text]).unwrap().makespan, 100, "each has a host");
    model.nodes.per_host = 2;
    assert_eq!(of(&model, &[text, text]).unwrap().makespan, 150);
    assert_eq!(of(&model, &[text]).unwrap().makespan, 100, "it is alone");
}

#[test]
fn one_core_schedules_before_it_computes() {
    let text = "task T1 kernel \"b\"
I1 kernel task=T1 device=D0 items=10 after=
task T2 kernel \"b\"
I2 kernel task=T2 device=D0 items=10 after=
task T3 kernel \"b\"
I3 kernel task=T3 device=D0 items=10 after=
";
    let [schedule] = &schedules(&[text])[..] else { unreachable!() };
    let mut pace = Pace::immediate(schedule);
    pace.scheduling = vec![5; 3];
    let mut model = free();
    let run = |model: &ClusterModel| {
        predict(model, &costs(), std::slice::from_ref(schedule), std::slice::from_ref(&pace))
    };
    let own = run(&model).unwrap();
    assert_eq!(own.makespan, 5 + 300, "the rest of scheduling is hidden");
    assert_eq!(own.repeated.unwrap().period, 100);
    model.engine.threads = EngineThreads::Processor;
    assert_eq!(run(&model).unwrap().makespan, 15 + 300);
}

#[test]
fn all_nodes_meet_in_collectives_and_epochs() {
    let collective = |items: u64| {
        format!(
            "task T1 kernel \"a\"
I1 kernel task=T1 device=D0 items={items} after=
task T2 forward \"a\"
I2 all-gather for=T2 buffer=B0 size=4 number=0 out=8 in=24 after=I1
task T3 epoch \"\"
I3 epoch action=shutdown after=I2
"
        )
    };
    let texts = [10, 70, 30, 20].map(collective);
    let texts = texts.each_ref().map(String::as_str);
    let mut model = dear();
    model.network.collective_byte_ps = 500.0;
    let prediction = of(&model, &texts).unwrap();
    let operation = 7 + 2 * 11 + 12;
    assert_eq!(prediction.makespan, (2 + 70) + 2 + operation + 2 + (7 + 2 * 11));
    let barriers = prediction.spans.all().iter().filter(|span| span.lane == Lane::Barrier);
    assert!(barriers.clone().all(|span| matches!(span.subject, Subject::Step(2))));
    assert_eq!(barriers.count(), 4);
    assert_eq!(of(&model, &texts[..1]).unwrap().makespan, 2 + 10 + 2 + 2, "one node meets nobody");
}

#[test]
fn what_no_node_sends_is_a_deadlock_that_names_who_waits() {
    let silent = "task T1 kernel \"a\"\ntask T2 kernel \"b\"\n";
    let error = of(&free(), &[silent, RECEIVES]).unwrap_err();
    assert!(matches!(&error, PredictError::Deadlock { waits, .. } if waits.len() == 1));
    let text = error.to_string();
    let expected = "N1 I1 in line 5 waits for 8 elements of B0 for T2, which no node sends";
    assert!(text.contains(expected), "{text}");

    let mut model = free();
    model.network.eager_bytes = 0;
    let text = of(&model, &[SENDS, silent]).unwrap_err().to_string();
    assert!(text.contains("N0 I2 in line 6 waits for N1 to receive B0 for T2"), "{text}");

    let alone = "task T1 epoch \"\"\nI1 epoch action=barrier after=\n";
    let text = of(&free(), &[alone, silent]).unwrap_err().to_string();
    assert!(text.contains("N0 I1 in line 4 waits for other nodes"), "{text}");
}

#[test]
fn a_kernel_without_a_cost_is_an_error_and_a_host_task_counts_as_given() {
    let kernel = "task T7 kernel \"c\"\nI1 kernel task=T7 device=D0 items=4 after=\n";
    let error = of(&free(), &[kernel]).unwrap_err();
    let start = "N0.txt:4: N0 runs T7 \"c\", which the measured run has not";
    assert!(error.to_string().starts_with(start), "{error}");
    let host = "task T7 host \"c\"\nI1 host-task task=T7 items=4 after=\n";
    let mut model = free();
    model.engine.host_item_ns = 9;
    let prediction = of(&model, &[host]).unwrap();
    assert_eq!((prediction.makespan, prediction.guessed), (36, 1));
}

/// The measured run has folded all tiles of "sum of a" in 60 ns; each of two nodes folds half of them.
#[test]
fn nodes_share_the_fold_of_a_reduction() {
    let launch = |on_device, name: &str, items, took| MeasuredLaunch {
        name: name.to_owned(),
        task: took,
        on_device,
        items,
        took,
    };
    let launches = vec![launch(true, "a", 10, 10), launch(false, "sum of a", 1, 60)];
    let costs = WorkCosts::of([&RecordedRun { launches, ..RecordedRun::default() }], 0);
    let text = "task T1 kernel \"a\"\nI1 kernel task=T1 device=D0 items=5 after=\n\
                task T2 host \"sum of a\"\nI2 host-task task=T2 items=1000000 after=I1\n\
                task T3 combine \"sum of a\"\n";
    let schedules = schedules(&[text, text]);
    let paces: Vec<_> = schedules.iter().map(Pace::immediate).collect();
    let prediction = predict(&free(), &costs, &schedules, &paces).unwrap();
    assert_eq!((prediction.makespan, prediction.guessed), (5 + 30, 0));
}

#[test]
fn a_kernel_that_was_measured_with_few_items_is_named() {
    let of_items = |items: u64| {
        let text =
            format!("task T1 kernel \"a\"\nI1 kernel task=T1 device=D0 items={items} after=\n");
        of(&free(), &[&text]).unwrap().stretched
    };
    // 10 were measured.
    assert_eq!(of_items(169), None);
    let stretched = of_items(170).unwrap();
    assert_eq!((&*stretched.name, stretched.measured, stretched.items), ("a", 10, 170));
}

#[test]
fn schedules_of_another_cluster_are_refused() {
    let mut two = schedules(&[SENDS, RECEIVES]);
    let paces: Vec<_> = two.iter().map(Pace::immediate).collect();
    let run = |schedules: &[NodeSchedule], paces: &[Pace]| {
        predict(&free(), &costs(), schedules, paces).unwrap_err().to_string()
    };
    assert!(run(&two[..1], &paces[..1]).contains("this is N0 of 2, where N0 of 1 is expected"));
    assert!(run(&two, &paces[..1]).contains("the pace that came with it"));
    two.swap(0, 1);
    assert!(run(&two, &paces).contains("this is N1 of 2, where N0 of 2 is expected"));
    two.swap(0, 1);
    two[1].devices = 1;
    assert!(run(&two, &paces).contains("this node has 1 devices, and N0 has 2"));
    let lost =
        "task T1 kernel \"a\"\nI1 send for=T1 buffer=B0 size=4 to=N5 boxes=0:0:0-8:1:1 after=\n";
    let error = of(&free(), &[lost]).unwrap_err().to_string();
    assert!(error.contains("I1 in line 4 names another node that is not there"), "{error}");
}

#[test]
fn the_same_input_leads_to_the_same_prediction_and_free_networks_are_no_slower() {
    for texts in [&[SENDS, RECEIVES][..], &[TWO_DEVICES]] {
        let dear = of(&dear(), texts).unwrap();
        assert_eq!(dear, of(&self::dear(), texts).unwrap());
        let mut model = self::dear();
        model.network = free().network;
        assert!(of(&model, texts).unwrap().makespan <= dear.makespan);
    }
}

#[test]
fn nothing_takes_no_time() {
    for nodes in 1..4 {
        let prediction = of(&dear(), &vec![""; nodes]).unwrap();
        assert_eq!((prediction.nodes, prediction.makespan), (nodes, 0));
        assert_eq!(prediction.busy_percent.to_bits(), 0.0_f64.to_bits());
    }
}

/// What runs say of a task counts where it had items enough: a launch of one item tells what it takes to
/// launch, and not what an item costs.
#[test]
fn a_run_with_few_items_does_not_count_beside_one_with_many() {
    let run = |items, took| {
        let name = "pack".to_owned();
        let launches = vec![MeasuredLaunch { name, task: 1, on_device: true, items, took }];
        RecordedRun { launches, ..RecordedRun::default() }
    };
    let pack = |runs: &[RecordedRun]| {
        WorkCosts::of(runs, 0).of_launch(CostedWork::Kernel("pack"), (0, 1), 100)
    };
    assert_eq!(pack(&[run(1, 900)]), Some(90_000));
    assert_eq!(pack(&[run(1, 900), run(400, 2000), run(1, 700)]), Some(500));
    assert_eq!(pack(&[run(400, 2000), run(200, 1200), run(300, 2100)]), Some(600));
    assert_eq!(pack(&[run(400, 2000), run(199, 1990)]), Some(500));
}
