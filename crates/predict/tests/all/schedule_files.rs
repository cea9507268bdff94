//! What is wrong with a schedule is said with its line.

use celerity_predict::{Action, NodeSchedule, ScheduledKind};

const HEAD: &str = "celerity-schedule 1\nnode 1 of 3, 2 devices\n";

fn error(text: &str) -> String {
    NodeSchedule::parse(text, "s.txt".as_ref()).unwrap_err().to_string()
}

#[test]
fn names_are_as_the_program_gives_them() {
    let name = "step \"of\" \\ a\nthing \u{1f30a}\u{7}";
    let text = format!("{HEAD}task T3 kernel {name:?}\nend\n");
    let schedule = NodeSchedule::parse(&text, "s.txt".as_ref()).unwrap();
    assert_eq!((schedule.node, schedule.nodes, schedule.devices), (1, 3, 2));
    assert_eq!((&*schedule.tasks[0].name, schedule.tasks[0].kind), (name, ScheduledKind::Kernel));
}

#[test]
fn instructions_belong_to_the_task_before_them() {
    let text = format!(
        "{HEAD}task T1 kernel \"a\"\nI5 alloc memory=M1 bytes=64 after=\ntask T2 horizon \"\"\n\
         task T4 kernel \"b\"\nI6 copy from=M1 to=M3 bytes=8 after=I5,I5\nI7 horizon after=I6\nend\n"
    );
    let schedule = NodeSchedule::parse(&text, "s.txt".as_ref()).unwrap();
    let until: Vec<_> = schedule.tasks.iter().map(|task| task.steps_until).collect();
    assert_eq!(until, [1, 1, 3]);
    assert_eq!(schedule.steps[1].action, Action::Copy { from: 1, to: 3, bytes: 8 });
    assert_eq!((&*schedule.steps[1].after, schedule.steps[1].line), (&[0][..], 7));
}

#[test]
fn lines_that_mean_nothing_are_named() {
    for (lines, expected) in [
        ("", "s.txt:2: the schedule is not complete"),
        ("gibberish\n", "s.txt:3: `gibberish` is neither a task nor an instruction"),
        ("task T1 dance \"a\"\n", "s.txt:3: `T1 dance \"a\"` is no task"),
        ("I1 horizon after=\n", "s.txt:3: an instruction needs a task before it"),
        ("task T1 kernel \"a\"\nI1 fly after=\n", "s.txt:4: there is no instruction `fly`"),
        ("task T1 kernel \"a\"\nI1 horizon after=I0\n", "s.txt:4: `I0` is no earlier instruction"),
        ("task T1 kernel \"a\"\nI1 horizon x=1\n", "s.txt:4: `after=` is missing"),
        (
            "task T1 kernel \"a\"\nI1 kernel task=T1 device=D0 items=many after=\n",
            "s.txt:4: `items=many` is no number and no id",
        ),
        (
            "task T1 kernel \"a\"\nI1 receive for=T1 buffer=B0 boxes=0:0-1:1 after=\n",
            "s.txt:4: `boxes=0:0-1:1` are no boxes like 0:0:0-4:8:1",
        ),
        ("task T2 kernel \"a\"\ntask T1 kernel \"a\"\n", "s.txt:4: T1 is not behind the task"),
    ] {
        let text = error(&format!("{HEAD}{lines}"));
        assert!(text.starts_with(expected), "{text}");
    }
    assert!(error("").contains("s.txt:1: this is no schedule of a dry run"));
    for place in ["node 3 of 3, 1 devices", "node 0 of 1, 0 devices", "node 0"] {
        let text = error(&format!("celerity-schedule 1\n{place}\nend\n"));
        assert!(text.starts_with("s.txt:2: `node "), "{text}");
    }
    let missing = NodeSchedule::read("no/such/file".as_ref()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read no/such/file: "), "{missing}");
}
