//! The side channel between threads of one process, with raw sockets as nodes that
//! die, are stopped or talk nonsense.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

const TOKEN: u64 = 0x1234_5678_9abc_def0;
const LONG: Duration = Duration::from_secs(60);

fn node(index: u64) -> NodeId {
    NodeId::from_index(index)
}

/// Waits for a report to an end.
fn report(end: &SideChannel) -> SideNews {
    let start = Instant::now();
    loop {
        if let Some(report) = end.poll() {
            return report;
        }
        assert!(start.elapsed() < LONG, "no report comes");
        thread::sleep(Duration::from_millis(1));
    }
}

fn begin(end: &SideChannel, run: u64, timeout: Duration) -> Result<(), Obstacle> {
    end.begin(run, timeout, Arc::new(|| {}), Impatience::new(Duration::ZERO, &mut |_, _| {}))
}

fn leave(end: &SideChannel, runs: u64) -> bool {
    end.leave(runs, true, Impatience::new(Duration::ZERO, &mut |_, _| {}))
}

/// A raw connection that is a node.
struct Odd(TcpStream);

impl Odd {
    /// One that has said hello.
    fn call(port: u16, token: u64, node: NodeId) -> Self {
        let mut odd = Self(TcpStream::connect(("127.0.0.1", port)).unwrap());
        odd.say(&Frame::Hello { token, node });
        odd
    }

    fn say(&mut self, frame: &Frame) {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        self.0.write_all(&bytes).unwrap();
    }

    /// All that it is told, but for signs of life, until its connection is closed.
    fn hear_all(&mut self) -> Vec<Frame> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        let frames = std::iter::from_fn(|| Frame::read(&mut bytes).unwrap());
        frames.filter(|frame| *frame != Frame::Beat).collect()
    }
}

/// A hub, so many other nodes, and one more that is a raw connection; all in run 1.
fn cluster(members: u64, timeout: Duration) -> (SideChannel, Vec<SideChannel>, Odd) {
    let (hub, members, mut odd) = star(members, timeout);
    thread::scope(|scope| {
        for end in members.iter().chain([&hub]) {
            scope.spawn(|| begin(end, 1, timeout).unwrap());
        }
        odd.say(&Frame::Begin { run: 1 });
    });
    (hub, members, odd)
}

/// The same in no run.
fn star(members: u64, timeout: Duration) -> (SideChannel, Vec<SideChannel>, Odd) {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let port = door.port().unwrap();
    thread::scope(|scope| {
        let members: Vec<_> = (1..=members)
            .map(|index| {
                let at = ["127.0.0.1".to_owned()];
                scope.spawn(move || {
                    SideChannel::member((node(index), 9), (&at, port, TOKEN), timeout)
                })
            })
            .collect();
        let odd = Odd::call(port, TOKEN, node(members.len() as u64 + 1));
        let hub = SideChannel::hub(&door, members.len() + 2, timeout).unwrap();
        let join = |member: thread::ScopedJoinHandle<'_, Result<_, _>>| member.join().unwrap();
        (hub, members.into_iter().map(|member| join(member).unwrap()).collect(), odd)
    })
}

fn assert_all_hear_of_death(hub: &SideChannel, members: &[SideChannel], dead: NodeId) {
    for end in members.iter().chain([hub]) {
        let SideNews::Lost(Loss::Died { node, sign }) = report(end) else { panic!("no death") };
        assert_eq!(node, dead, "{sign}");
        assert!(end.lost().is_some());
    }
}

#[test]
fn one_error_reaches_everybody() {
    let (hub, members, _odd) = cluster(2, LONG);
    members[0].abort(1, b"one".to_vec());
    members[1].abort(1, b"two".to_vec());
    hub.abort(1, b"three".to_vec());
    let first = report(&hub);
    assert!(matches!(first, SideNews::Aborted(_)));
    assert_eq!((report(&members[0]), report(&members[1])), (first.clone(), first));
    assert_eq!((hub.poll(), members[0].poll(), members[1].poll()), (None, None, None));
}

#[test]
fn a_run_begins_once_all_have_come() {
    let (hub, members, mut odd) = star(1, LONG);
    for run in 1..4 {
        thread::scope(|scope| {
            let waiting = [&hub, &members[0]].map(|end| scope.spawn(move || begin(end, run, LONG)));
            assert!(hub.shared.lock().record.verdict(run).is_none(), "N2 has not come");
            odd.say(&Frame::Begin { run });
            waiting.into_iter().for_each(|end| assert_eq!(end.join().unwrap(), Ok(())));
        });
        hub.end();
        members[0].end();
    }
}

#[test]
fn whoever_waits_learns_for_whom() {
    let (hub, members, mut odd) = star(2, LONG);
    let mut told = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| begin(&members[1], 1, LONG));
        let mut tell = |_: Duration, missing: &[NodeId]| {
            told.push(missing.to_vec());
            // It may have been told so before N2 had come.
            if missing == [node(1), node(3)] {
                scope.spawn(|| begin(&members[0], 1, LONG));
                odd.say(&Frame::Begin { run: 1 });
            }
        };
        let impatience = Impatience::new(Duration::from_millis(10), &mut tell);
        assert_eq!(hub.begin(1, LONG, Arc::new(|| {}), impatience), Ok(()));
    });
    let both = vec![node(1), node(3)];
    let first = told.iter().position(|missing| *missing == both).expect("it was waited for");
    // It may be told more while the two come, but of nobody who has.
    assert!(told[first..].iter().flatten().all(|missing| both.contains(missing)), "{told:?}");
}

#[test]
fn who_cannot_come_is_not_waited_for() {
    let (hub, members, mut odd) = star(2, LONG);
    let refused = Obstacle::Stopped(b"no memory".to_vec());
    thread::scope(|scope| {
        let early = scope.spawn(|| begin(&hub, 1, LONG));
        assert_eq!(members[0].refuse(1, b"no memory".to_vec()), refused);
        assert_eq!(early.join().unwrap(), Err(refused.clone()));
        assert_eq!(begin(&members[1], 1, LONG), Err(refused));
        odd.say(&Frame::Begin { run: 2 });
        for end in members.iter().chain([&hub]) {
            scope.spawn(|| assert_eq!(begin(end, 2, LONG), Ok(())));
        }
    });
}

#[test]
fn who_has_ended_is_not_waited_for() {
    let (hub, members, mut odd) = cluster(1, LONG);
    hub.end();
    odd.say(&Frame::Leave { runs: 1, finalises: true });
    let ended = Err(Obstacle::Ended { node: node(2), runs: 1 });
    assert_eq!((begin(&members[0], 2, LONG), begin(&hub, 2, LONG)), (ended.clone(), ended.clone()));
    assert_eq!(begin(&hub, 3, LONG), ended);
}

#[test]
fn whoever_leaves_is_not_dead() {
    let (hub, mut members, mut odd) = cluster(2, LONG);
    odd.say(&Frame::Goodbye);
    drop(odd);
    let second = members.pop();
    thread::scope(|scope| {
        scope.spawn(|| drop(second));
        members[0].abort(1, b"later".to_vec());
        assert_eq!(report(&hub), SideNews::Aborted(b"later".to_vec()));
        assert_eq!(report(&members[0]), SideNews::Aborted(b"later".to_vec()));
    });
    assert_eq!((hub.poll(), members[0].poll()), (None, None));
}

#[test]
fn mpi_is_finalised_when_all_want_to() {
    let (hub, members, mut odd) = star(1, LONG);
    thread::scope(|scope| {
        let ends = [&hub, &members[0]].map(|end| scope.spawn(|| leave(end, 3)));
        odd.say(&Frame::Leave { runs: 3, finalises: true });
        assert!(ends.into_iter().all(|end| end.join().unwrap()));
    });
}

#[test]
fn whoever_waits_to_end_learns_for_whom() {
    let (hub, members, mut odd) = star(1, LONG);
    let mut told = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| leave(&members[0], 1));
        let mut tell = |_: Duration, missing: &[NodeId]| {
            told.push(missing.to_vec());
            if missing == [node(2)] {
                odd.say(&Frame::Leave { runs: 1, finalises: true });
            }
        };
        assert!(hub.leave(1, true, Impatience::new(Duration::from_millis(10), &mut tell)));
    });
    assert_eq!(told.last(), Some(&vec![node(2)]));
}

#[test]
fn mpi_is_not_finalised_if_somebody_cannot() {
    for dies in [true, false] {
        let (hub, members, mut odd) = star(1, LONG);
        thread::scope(|scope| {
            let ends = [&hub, &members[0]].map(|end| scope.spawn(|| leave(end, 3)));
            match dies {
                true => drop(odd),
                false => odd.say(&Frame::Leave { runs: 3, finalises: false }),
            }
            assert!(ends.into_iter().all(|end| !end.join().unwrap()), "dies: {dies}");
        });
    }
}

#[test]
fn a_closed_connection_is_a_death() {
    let (hub, members, odd) = cluster(2, LONG);
    drop(odd);
    assert_all_hear_of_death(&hub, &members, node(3));
}

#[test]
fn a_death_between_runs_keeps_the_next_from_beginning() {
    let (hub, members, odd) = cluster(1, LONG);
    [&hub, &members[0]].into_iter().for_each(SideChannel::end);
    drop(odd);
    for end in [&hub, &members[0]] {
        let verdict = begin(end, 2, LONG);
        let died = matches!(
            &verdict,
            Err(Obstacle::Lost(Loss::Died { node: dead, .. })) if *dead == node(2)
        );
        assert!(died, "{verdict:?}");
    }
}

#[test]
fn silence_is_a_death_and_is_told_to_the_silent() {
    // Members would have to beat in time, whatever else their machine does.
    let (hub, _, mut odd) = cluster(0, Duration::from_millis(300));
    assert_all_hear_of_death(&hub, &[], node(1));
    let told = odd.hear_all();
    let dead = |frame: &Frame| matches!(frame, Frame::Died { node: dead, .. } if *dead == node(1));
    assert!(told.iter().any(dead), "{told:?}");
}

#[test]
fn who_is_given_up_is_told_by_whom() {
    let (hub, members, mut odd) = cluster(1, LONG);
    odd.say(&Frame::Died { node: HUB, sign: "silence".to_owned() });
    drop(odd);
    let given_up = Loss::GivenUp { by: node(2), sign: "silence".to_owned() };
    assert_eq!(report(&hub), SideNews::Lost(given_up));
    assert_eq!(hub.poll(), None, "one loss is enough");
    let SideNews::Lost(Loss::Died { node: gone, sign }) = report(&members[0]) else {
        panic!("N2 is gone")
    };
    assert_eq!((gone, sign.as_str()), (node(2), "it has given N0 up: silence"));
}

#[test]
fn nonsense_is_a_death() {
    let (hub, members, mut odd) = cluster(2, LONG);
    odd.0.write_all(&[77; 100]).unwrap();
    assert_all_hear_of_death(&hub, &members, node(3));
}

#[test]
fn without_the_hub_everybody_has_an_error_of_its_own() {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let (hosts, port) = (["127.0.0.1".to_owned()], door.port().unwrap());
    let (member, mut links) = thread::scope(|scope| {
        let member =
            scope.spawn(|| SideChannel::member((node(1), 2), (&hosts, port, TOKEN), LONG).unwrap());
        let links = door.admit(2, LONG).unwrap();
        (member.join().unwrap(), links)
    });
    links[0].1.send(&Frame::Go { run: 1 }, Instant::now());
    begin(&member, 1, LONG).unwrap();
    drop(links);
    assert!(matches!(report(&member), SideNews::Lost(Loss::Died { node: HUB, .. })));
    member.abort(1, b"mine".to_vec());
    assert_eq!(report(&member), SideNews::Aborted(b"mine".to_vec()));
}

#[test]
fn strangers_and_absentees_are_named() {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let port = door.port().unwrap();
    let _callers = [Odd::call(port, TOKEN + 1, node(1)), Odd::call(port, TOKEN, node(7))];
    let error = SideChannel::hub(&door, 2, Duration::from_millis(200)).err();
    assert!(error.unwrap().starts_with("N1 has not connected to N0 within 200ms"));
    drop(door);
    let nobody = ["127.0.0.1".to_owned()];
    let at = (&nobody[..], port, TOKEN);
    let error = SideChannel::member((node(1), 2), at, Duration::from_millis(50)).err();
    assert!(error.unwrap().starts_with("N0 does not answer on 127.0.0.1"));
}

/// A stranger who goes on sending, or whose message has no end, and many who say nothing,
/// keep nobody out.
#[test]
fn strangers_cost_little_and_keep_nobody_out() {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let port = door.port().unwrap();
    let stranger = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    thread::scope(|scope| {
        for endless in [vec![0; 1 << 16], [vec![1, 16, 0, 0, 0], vec![9; 1 << 16]].concat()] {
            // Connected here: a thread that begins late may find the door closed.
            let mut stranger = stranger();
            scope.spawn(move || while stranger.write_all(&endless).is_ok() {});
        }
        let silent: Vec<_> = (0..100).map(|_| stranger()).collect();
        let _odd = Odd::call(port, TOKEN, node(1));
        let hub = SideChannel::hub(&door, 2, LONG);
        assert!(hub.is_ok(), "{:?}", hub.err());
        drop((silent, door));
    });
}

#[test]
fn alone_there_is_nobody_to_wait_for() {
    let hub = SideChannel::alone().unwrap();
    assert_eq!(begin(&hub, 1, LONG), Ok(()));
    hub.abort(1, b"only".to_vec());
    assert_eq!(report(&hub), SideNews::Aborted(b"only".to_vec()));
    hub.end();
    assert_eq!(hub.refuse(2, b"why".to_vec()), Obstacle::Stopped(b"why".to_vec()));
    assert!(leave(&hub, 2));
}
