//! The lines of a schedule, one by one: what each means, and what is wrong with it. Opens no file.

use std::collections::HashMap;
use std::path::Path;

use celerity_regions::Box3;

use super::{
    Action, NodeSchedule, ReceivePart, ScheduledKind, ScheduledStep, ScheduledTask, TransferKey,
};

/// A schedule that is being read.
pub(super) struct Reader {
    schedule: NodeSchedule,
    /// The position of each instruction.
    positions: HashMap<u64, u32>,
}

pub(super) type Lined<T> = Result<T, (usize, String)>;

impl Reader {
    pub(super) fn new(path: &Path) -> Self {
        let path = path.to_owned();
        let (tasks, steps) = (Vec::new(), Vec::new());
        let schedule = NodeSchedule { path, node: 0, nodes: 0, devices: 0, tasks, steps };
        Self { schedule, positions: HashMap::new() }
    }

    pub(super) fn read(mut self, text: &str) -> Lined<NodeSchedule> {
        let mut lines = (1..).zip(text.lines());
        let header = lines.next().map(|(_, line)| line);
        if header != Some("celerity-schedule 1") {
            return Err((1, "this is no schedule of a dry run of this version".to_owned()));
        }
        let (line, place) = lines.next().unwrap_or((2, ""));
        self.place(place).ok_or_else(|| {
            (line, format!("`{place}` is not `node N of N, N devices`, with a node that there is"))
        })?;
        let mut last = 2;
        for (line, text) in lines {
            last = line;
            let lined = |what| (line, what);
            match text.split_once(' ') {
                None if text == "end" => return Ok(self.schedule),
                Some(("task", task)) => self.task(task).map_err(lined)?,
                Some((id, rest)) => self.step(line, id, rest).map_err(lined)?,
                None => {
                    return Err(lined(format!("`{text}` is neither a task nor an instruction")));
                }
            }
        }
        Err((
            last,
            "the schedule is not complete: the dry run has not ended as it should".to_owned(),
        ))
    }

    fn place(&mut self, line: &str) -> Option<()> {
        let (node, rest) = line.strip_prefix("node ")?.split_once(" of ")?;
        let (nodes, devices) = rest.strip_suffix(" devices")?.split_once(", ")?;
        let schedule = &mut self.schedule;
        schedule.node = node.parse().ok()?;
        schedule.nodes = nodes.parse().ok()?;
        schedule.devices = devices.parse().ok()?;
        (schedule.node < schedule.nodes && schedule.devices > 0).then_some(())
    }

    fn task(&mut self, line: &str) -> Result<(), String> {
        let mut task = parse_task(line).ok_or_else(|| format!("`{line}` is no task"))?;
        task.steps_until = self.schedule.steps.len();
        if self.schedule.tasks.last().is_some_and(|last| last.id >= task.id) {
            return Err(format!("T{} is not behind the task before it", task.id));
        }
        self.schedule.tasks.push(task);
        Ok(())
    }

    fn step(&mut self, line: usize, id: &str, rest: &str) -> Result<(), String> {
        let (verb, keys) = rest.split_once(' ').ok_or("an instruction needs a verb")?;
        let keys = Keys(keys);
        let id = number(id).ok_or_else(|| format!("`{id}` is no instruction's id"))?;
        let after = keys.get("after")?;
        let known = |before: &str| {
            let position = number(before).and_then(|id| self.positions.get(&id).copied());
            position.ok_or_else(|| format!("`{before}` is no earlier instruction"))
        };
        let after = after.split(',').filter(|before| !before.is_empty());
        let mut after = after.map(known).collect::<Result<Vec<_>, _>>()?;
        after.sort_unstable();
        after.dedup();
        let action = action(verb, keys)?;
        let steps = &mut self.schedule.steps;
        let position = u32::try_from(steps.len()).map_err(|_| "too many instructions")?;
        if self.positions.insert(id, position).is_some() {
            return Err(format!("I{id} is there already"));
        }
        steps.push(ScheduledStep { id, action, after, line });
        let task = self.schedule.tasks.last_mut().ok_or("an instruction needs a task before it")?;
        task.steps_until = self.schedule.steps.len();
        Ok(())
    }
}

fn parse_task(line: &str) -> Option<ScheduledTask> {
    let (id, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let kind = match kind {
        "kernel" => ScheduledKind::Kernel,
        "host" => ScheduledKind::Host,
        "fence" => ScheduledKind::Fence,
        "combine" => ScheduledKind::Combine,
        "forward" => ScheduledKind::Forward,
        "horizon" => ScheduledKind::Horizon,
        "epoch" => ScheduledKind::Epoch,
        _ => return None,
    };
    let name = unquoted(name)?;
    Some(ScheduledTask { id: number(id)?, name, kind, steps_until: 0 })
}

/// What has been written as Rust writes a text for debugging.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let (mut plain, mut rest) = (String::new(), inner.chars());
    while let Some(next) = rest.next() {
        match next {
            '\\' => plain.push(escaped(&mut rest)?),
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// What a backslash and the next characters stand for.
fn escaped(rest: &mut impl Iterator<Item = char>) -> Option<char> {
    Some(match rest.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'u' => {
            let digits = rest.skip(1).take_while(|&digit| digit != '}').collect::<String>();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        }
        other => other,
    })
}

fn action(verb: &str, keys: Keys<'_>) -> Result<Action, String> {
    let transfer = || -> Result<_, String> {
        Ok(TransferKey { task: keys.number("for")?, buffer: keys.number("buffer")? })
    };
    let receive = |part| -> Result<_, String> {
        Ok(Action::Receive { transfer: transfer()?, elements: keys.boxes()?, part })
    };
    Ok(match verb {
        "alloc" | "reserve" | "grow" | "free" => Action::Memory { bytes: keys.number("bytes")? },
        "copy" => {
            let (from, to) = (keys.number("from")?, keys.number("to")?);
            Action::Copy { from, to, bytes: keys.number("bytes")? }
        }
        "send" => {
            let boxes = keys.boxes()?;
            let &[elements] = &boxes[..] else { return Err("a send has one box".to_owned()) };
            let bytes = elements.volume().saturating_mul(keys.number("size")?);
            let to = keys.index("to")?;
            Action::Send { to, transfer: transfer()?, elements, bytes }
        }
        "receive" => receive(ReceivePart::Whole)?,
        "split-receive" => receive(ReceivePart::Begin)?,
        "await-receive" => receive(ReceivePart::Await)?,
        "gather" | "all-gather" | "broadcast" | "scatter" | "all-to-all" => {
            let bytes = keys.number("out")?.max(keys.number("in")?);
            Action::Collective { pattern: verb.to_owned(), number: keys.number("number")?, bytes }
        }
        "kernel" => {
            let device = Some(keys.index("device")?);
            Action::Run { device, task: keys.number("task")?, items: keys.number("items")? }
        }
        "host-task" => {
            let (task, items) = (keys.number("task")?, keys.number("items")?);
            Action::Run { device: None, task, items }
        }
        "horizon" => Action::Horizon,
        "epoch" => Action::Epoch { meets: keys.get("action")? != "init" },
        other => return Err(format!("there is no instruction `{other}`")),
    })
}

/// What stands behind a verb: `key=value key=value`.
#[derive(Clone, Copy)]
struct Keys<'a>(&'a str);

impl<'a> Keys<'a> {
    fn get(self, key: &str) -> Result<&'a str, String> {
        let mut pairs = self.0.split(' ').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(found, _)| *found == key);
        found.map(|(_, value)| value).ok_or_else(|| format!("`{key}=` is missing"))
    }

    /// A number, or that of an id.
    fn number(self, key: &str) -> Result<u64, String> {
        let value = self.get(key)?;
        number(value).ok_or_else(|| format!("`{key}={value}` is no number and no id"))
    }

    fn index(self, key: &str) -> Result<usize, String> {
        usize::try_from(self.number(key)?).map_err(|_| format!("`{key}=` is too large"))
    }

    fn boxes(self) -> Result<Vec<Box3>, String> {
        let boxes = self.get("boxes")?;
        let all = boxes.split(',').map(parse_box).collect::<Option<Vec<_>>>();
        all.ok_or_else(|| format!("`boxes={boxes}` are no boxes like 0:0:0-4:8:1"))
    }
}

/// The digits of `T3`, `I12` or `7`.
fn number(text: &str) -> Option<u64> {
    text.trim_start_matches(|letter: char| letter.is_ascii_uppercase()).parse().ok()
}

fn parse_box(text: &str) -> Option<Box3> {
    let corner = |text: &str| -> Option<[u64; 3]> {
        let all = text.split(':').map(|one| one.parse().ok()).collect::<Option<Vec<_>>>()?;
        all.try_into().ok()
    };
    let (min, max) = text.split_once('-')?;
    Some(Box3::new(corner(min)?, corner(max)?))
}
