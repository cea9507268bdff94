//! The side channel between threads of one process, with raw sockets as nodes that
//! die or talk nonsense.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use super::*;

const TOKEN: u64 = 0x1234_5678_9abc_def0;
const LONG: Duration = Duration::from_secs(60);

fn node(index: u64) -> NodeId {
    NodeId::from_index(index)
}

fn idle() -> Waker {
    Arc::new(|| {})
}

/// Waits for a report of any of the ends.
fn report(end: &SideChannel) -> Report {
    end.reports.recv_timeout(LONG).expect("a report comes")
}

/// A raw connection that has said hello.
fn caller(port: u16, token: u64, node: NodeId) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut hello = Vec::new();
    Frame::Hello { token, node }.write(&mut hello);
    stream.write_all(&hello).unwrap();
    stream
}

/// A hub, so many other nodes, and one more that is a raw connection.
fn cluster(members: u64, timeout: Duration) -> (SideChannel, Vec<SideChannel>, TcpStream) {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let port = door.port().unwrap();
    thread::scope(|scope| {
        let hosts = ["127.0.0.1".to_owned()];
        let members: Vec<_> = (1..=members)
            .map(|index| {
                let at = hosts.clone();
                scope.spawn(move || {
                    SideChannel::member(node(index), (&at, port, TOKEN), timeout, idle())
                })
            })
            .collect();
        let odd = caller(port, TOKEN, node(members.len() as u64 + 1));
        let hub = SideChannel::hub(&door, members.len() + 2, timeout, idle()).unwrap();
        let join = |member: thread::ScopedJoinHandle<'_, Result<_, _>>| member.join().unwrap();
        (hub, members.into_iter().map(|member| join(member).unwrap()).collect(), odd)
    })
}

fn assert_all_hear_of_death(hub: &SideChannel, members: &[SideChannel], dead: NodeId) {
    for end in members.iter().chain([hub]) {
        let Report::Died { node, sign } = report(end) else { panic!("nobody has aborted") };
        assert_eq!(node, dead, "{sign}");
    }
}

#[test]
fn one_error_reaches_everybody() {
    let (hub, members, _odd) = cluster(2, LONG);
    members[0].abort(b"one".to_vec());
    members[1].abort(b"two".to_vec());
    hub.abort(b"three".to_vec());
    let first = report(&hub);
    assert!(matches!(first, Report::Aborted(_)));
    assert_eq!((report(&members[0]), report(&members[1])), (first.clone(), first));
    assert_eq!((hub.poll(), members[0].poll(), members[1].poll()), (None, None, None));
}

#[test]
fn whoever_leaves_is_not_dead() {
    let (hub, mut members, mut odd) = cluster(2, LONG);
    let mut goodbye = Vec::new();
    Frame::Goodbye.write(&mut goodbye);
    odd.write_all(&goodbye).unwrap();
    drop(odd);
    let second = members.pop();
    thread::scope(|scope| {
        scope.spawn(|| drop(second));
        members[0].abort(b"later".to_vec());
        assert_eq!(report(&hub), Report::Aborted(b"later".to_vec()));
        assert_eq!(report(&members[0]), Report::Aborted(b"later".to_vec()));
    });
    assert_eq!((hub.poll(), members[0].poll()), (None, None));
}

#[test]
fn a_closed_connection_is_a_death() {
    let (hub, members, odd) = cluster(2, LONG);
    drop(odd);
    assert_all_hear_of_death(&hub, &members, node(3));
}

#[test]
fn silence_is_a_death() {
    // Members would have to beat in time, whatever else their machine does.
    let (hub, _, odd) = cluster(0, Duration::from_millis(300));
    assert_all_hear_of_death(&hub, &[], node(1));
    drop(odd);
}

#[test]
fn nonsense_is_a_death() {
    let (hub, members, mut odd) = cluster(2, LONG);
    odd.write_all(&[77; 100]).unwrap();
    assert_all_hear_of_death(&hub, &members, node(3));
}

#[test]
fn without_the_hub_everybody_has_an_error_of_its_own() {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let (hosts, port) = (["127.0.0.1".to_owned()], door.port().unwrap());
    let (member, hub) = thread::scope(|scope| {
        let member = scope
            .spawn(|| SideChannel::member(node(1), (&hosts, port, TOKEN), LONG, idle()).unwrap());
        let links = door.admit(2, LONG).unwrap();
        (member.join().unwrap(), links)
    });
    drop(hub);
    assert!(matches!(report(&member), Report::Died { node: HUB, .. }));
    member.abort(b"mine".to_vec());
    assert_eq!(report(&member), Report::Aborted(b"mine".to_vec()));
}

#[test]
fn strangers_and_absentees_are_named() {
    let door = Door::open(Some("127.0.0.1"), TOKEN).unwrap();
    let port = door.port().unwrap();
    let _callers = [caller(port, TOKEN + 1, node(1)), caller(port, TOKEN, node(7))];
    let error = SideChannel::hub(&door, 2, Duration::from_millis(200), idle()).err();
    assert!(error.unwrap().starts_with("0 of 1 nodes connected"));
    drop(door);
    let nobody = ["127.0.0.1".to_owned()];
    let at = (&nobody[..], port, TOKEN);
    let error = SideChannel::member(node(1), at, Duration::from_millis(50), idle()).err();
    assert!(error.unwrap().starts_with("the hub does not answer on 127.0.0.1"));
}

#[test]
fn alone_there_is_nobody_to_wait_for() {
    let hub = SideChannel::alone(idle()).unwrap();
    hub.abort(b"only".to_vec());
    assert_eq!(report(&hub), Report::Aborted(b"only".to_vec()));
}
