//! Random programs of reductions: into numbers and arrays, by items and by rows, with each operator,
//! hint and granularity, over any part of a field, pending while other tasks include, read, overwrite or
//! forget them. On a random cluster each gives what a loop gives, and floats the bits that they have
//! on one node and one device. A failure names its seed.

use celerity::prelude::*;
use celerity::{ArrayReducer, CheckLevel, Max, Min, Operator, Result, Sum, Xor};

const PROGRAMS: u64 = 40;
const STATEMENTS: usize = 24;
/// Elements of the array that is reduced into.
const KINDS: usize = 9;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// An operator of numbers.
#[derive(Clone, Copy, Debug)]
enum By {
    Sum,
    Xor,
    Min,
    Max,
}

impl Operator<u64> for By {
    fn identity(&self) -> u64 {
        match self {
            Self::Sum => Operator::<u64>::identity(&Sum),
            Self::Xor => Operator::<u64>::identity(&Xor),
            Self::Min => Operator::<u64>::identity(&Min),
            Self::Max => Operator::<u64>::identity(&Max),
        }
    }

    fn combine(&self, earlier: u64, later: u64) -> u64 {
        match self {
            Self::Sum => Sum.combine(earlier, later),
            Self::Xor => Xor.combine(earlier, later),
            Self::Min => Min.combine(earlier, later),
            Self::Max => Max.combine(earlier, later),
        }
    }
}

/// Where the items of a task are, and how they are cut.
#[derive(Clone, Copy, Debug)]
struct Space {
    offset: [usize; 2],
    range: [usize; 2],
    hint: Hint,
    granularity: [usize; 2],
}

#[derive(Clone, Copy, Debug)]
enum Statement {
    /// Into both numbers and the array, or into the one that is named alone.
    Reduce {
        space: Space,
        into: Option<usize>,
        by: By,
        including: bool,
        unordered: bool,
        rows: bool,
    },
    /// Each element of the field takes in a number, or the array.
    Spread { from: usize },
    /// Of the array, from an element on.
    Overwrite { first: usize, value: u64 },
    /// A host task on a node adds one number to the other.
    Add { from: usize, node: usize },
    /// The program looks at a number, or the array.
    Look { at: usize },
    /// The array gives way to another one, whatever is pending.
    Renew { value: u64 },
}

/// The index of the array among what is reduced into; numbers come before it.
const ARRAY: usize = 2;

#[derive(Clone, Debug)]
struct Program {
    size: [usize; 2],
    cluster: [usize; 2],
    statements: Vec<Statement>,
}

impl Program {
    fn random(seed: u64) -> Self {
        let random = &mut Random(seed);
        let size = [1 + random.below(40), 1 + random.below(70)];
        let cluster = [1 + random.below(4), 1 + random.below(3)];
        let statements = (0..STATEMENTS).map(|_| Statement::random(random, size)).collect();
        Self { size, cluster, statements }
    }
}

impl Space {
    fn random(random: &mut Random, size: [usize; 2]) -> Self {
        let offset = size.map(|size| random.below(size));
        // Empty now and then.
        let range = [0, 1].map(|dim| random.below(size[dim] - offset[dim] + 1));
        let (offset, range) = if random.one_in(2) { ([0; 2], size) } else { (offset, range) };
        let hint = random.of(&[
            Hint::BandSplit,
            Hint::TiledSplit,
            Hint::SplitAlong(1),
            Hint::Oversubscribe(3),
        ]);
        let granularity = if random.one_in(3) { [1 + random.below(4), 1] } else { [1, 1] };
        Self { offset, range, hint, granularity }
    }

    fn items(self) -> impl Iterator<Item = [usize; 2]> {
        let [height, width] = self.range;
        let places = (0..height).flat_map(move |y| (0..width).map(move |x| [y, x]));
        places.map(move |place| [0, 1].map(|dim| place[dim] + self.offset[dim]))
    }
}

impl Statement {
    fn random(random: &mut Random, size: [usize; 2]) -> Self {
        match random.below(10) {
            0..4 => Self::Reduce {
                space: Space::random(random, size),
                into: (!random.one_in(3)).then(|| random.below(ARRAY + 1)),
                by: random.of(&[By::Sum, By::Xor, By::Min, By::Max]),
                including: random.one_in(3),
                unordered: random.one_in(3),
                rows: random.one_in(2),
            },
            4..6 => Self::Spread { from: random.below(ARRAY + 1) },
            6 => Self::Overwrite { first: random.below(KINDS), value: random.next() },
            7 => Self::Add { from: random.below(ARRAY), node: random.below(4) },
            8 => Self::Look { at: random.below(ARRAY + 1) },
            _ => Self::Renew { value: random.next() },
        }
    }
}

/// What an item gives to a reduction: of its element, 0 for one of four.
fn given(element: u64) -> u64 {
    if element.is_multiple_of(4) { 0 } else { element }
}

/// To which element of the array it gives that.
fn kind(element: u64) -> usize {
    (element >> 32) as usize % KINDS
}

/// What an element becomes when it takes in what has been reduced.
fn taken_in(element: u64, [y, x]: [usize; 2], reduced: &[u64]) -> u64 {
    mix(element ^ reduced[(y * 31 + x) % reduced.len()])
}

/// All that a program has looked at, and the bits of sums of floats.
type Seen = Vec<Vec<u64>>;

/// What the program gives as a loop: numbers and the array.
fn by_loop(program: &Program) -> Seen {
    let [_, width] = program.size;
    let mut field: Vec<u64> = initial(program.size);
    let mut results = [vec![1], vec![2], vec![3; KINDS]];
    let mut seen = Seen::new();
    for statement in &program.statements {
        match *statement {
            Statement::Reduce { space, into, by, including, .. } => {
                for (at, result) in results.iter_mut().enumerate() {
                    if into.is_some_and(|into| into != at) {
                        continue;
                    }
                    if !including {
                        result.fill(by.identity());
                    }
                    for [y, x] in space.items() {
                        let element = field[y * width + x];
                        let place = if at == ARRAY { kind(element) } else { 0 };
                        result[place] = by.combine(result[place], given(element));
                    }
                }
            }
            Statement::Spread { from } => {
                for (place, element) in field.iter_mut().enumerate() {
                    let at = [place / width, place % width];
                    *element = taken_in(*element, at, &results[from]);
                }
            }
            Statement::Overwrite { first, value } => results[ARRAY][first..].fill(value),
            Statement::Add { from, .. } => {
                results[1 - from][0] = results[1 - from][0].wrapping_add(results[from][0]);
            }
            Statement::Look { at } => seen.push(results[at].clone()),
            Statement::Renew { value } => results[ARRAY].fill(value),
        }
    }
    seen.extend(results);
    seen.push(field);
    seen
}

fn initial([height, width]: [usize; 2]) -> Vec<u64> {
    (0..height * width).map(|place| mix(place as u64)).collect()
}

/// The same on a cluster.
struct Run<'q> {
    queue: &'q Queue,
    size: [usize; 2],
    field: Buffer<u64, 2>,
    numbers: [Buffer<u64, 0>; 2],
    array: Buffer<u64, 1>,
    /// A sum of floats beside each reduction.
    floats: Buffer<f32, 0>,
    seen: Seen,
}

impl<'q> Run<'q> {
    fn new(queue: &'q Queue, size: [usize; 2]) -> Result<Self> {
        Ok(Self {
            queue,
            size,
            field: queue.buffer_from(size, initial(size))?.named("field"),
            numbers: [queue.buffer_from([], vec![1])?, queue.buffer_from([], vec![2])?],
            array: queue.buffer_from(KINDS, vec![3; KINDS])?.named("array"),
            floats: queue.buffer_from([], vec![0.0])?.named("floats"),
            seen: Seen::new(),
        })
    }

    fn look(&mut self, at: usize) -> Result<()> {
        let seen = match at {
            ARRAY => self.queue.fence(&self.array)?.wait()?.into_vec(),
            _ => self.queue.fence(&self.numbers[at])?.wait()?.into_vec(),
        };
        self.seen.push(seen);
        Ok(())
    }

    fn submit(&mut self, statement: Statement) -> Result<()> {
        match statement {
            Statement::Reduce { space, into, by, including, unordered, rows } => {
                self.reduce(space, into, (by, including, unordered), rows)?;
            }
            Statement::Spread { from: ARRAY } => {
                let accesses = (self.field.read_write(one_to_one()), self.array.read(all()));
                self.queue.task("spread").parallel_for(
                    self.size,
                    accesses,
                    |item, (element, array)| {
                        *element = taken_in(*element, item.id(), &array[0..KINDS]);
                    },
                )?;
            }
            Statement::Spread { from } => {
                let number = self.numbers[from].read(all());
                let accesses = (self.field.read_write(one_to_one()), number);
                self.queue.task("spread").parallel_for(
                    self.size,
                    accesses,
                    |item, (element, number)| {
                        *element = taken_in(*element, item.id(), &[number[[]]]);
                    },
                )?;
            }
            Statement::Overwrite { first, value } => {
                let task = self.queue.task("overwrite").offset(first);
                let array = self.array.write(one_to_one());
                task.parallel_for(KINDS - first, array, move |_, element| *element = value)?;
            }
            Statement::Add { from, node } => {
                let task = self.queue.host_task("add").on_node(node % self.queue.nodes());
                let [from, to] = [from, 1 - from].map(|at| &self.numbers[at]);
                task.once((from.read(all()), to.read_write(all())), |(from, mut to)| {
                    to[[]] = to[[]].wrapping_add(from[[]]);
                })?;
            }
            Statement::Look { at } => self.look(at)?,
            Statement::Renew { value } => {
                self.array = self.queue.buffer_from(KINDS, vec![value; KINDS])?.named("array");
            }
        }
        Ok(())
    }

    fn reduce(
        &self,
        space: Space,
        into: Option<usize>,
        (by, including, unordered): (By, bool, bool),
        rows: bool,
    ) -> Result<()> {
        let task = self.queue.task("reduce").hint(space.hint).granularity(space.granularity);
        let task = task.offset(space.offset);
        let field = self.field.read(one_to_one());
        let number = |at: usize| {
            let reduction = self.numbers[at].reduce(by);
            let reduction = if including { reduction.including_current() } else { reduction };
            if unordered { reduction.unordered() } else { reduction }
        };
        let array = || {
            let reduction = self.array.reduce(by);
            let reduction = if including { reduction.including_current() } else { reduction };
            if unordered { reduction.unordered() } else { reduction }
        };
        let floats = || self.floats.reduce(Sum).including_current();
        let count = |counts: &ArrayReducer<'_, u64, By, 1>, element: u64| {
            counts.combine_at(kind(element), given(element));
        };
        match (into, rows) {
            (None, false) => {
                let accesses = (field, number(0), number(1), array(), floats());
                task.parallel_for(
                    space.range,
                    accesses,
                    move |_, (&element, one, other, counts, floats)| {
                        one.combine(given(element));
                        other.combine(given(element));
                        count(&counts, element);
                        floats.combine(element as f32);
                    },
                )?;
            }
            (None, true) => {
                let accesses = (field, number(0), number(1), array(), floats());
                task.parallel_for_rows(
                    space.range,
                    accesses,
                    move |_, (elements, one, other, counts, floats)| {
                        for &element in elements {
                            one.combine(given(element));
                            other.combine(given(element));
                            count(&counts, element);
                            floats.combine(element as f32);
                        }
                    },
                )?;
            }
            (Some(ARRAY), _) => {
                task.parallel_for(space.range, (field, array()), move |_, (&element, counts)| {
                    count(&counts, element);
                })?;
            }
            (Some(at), false) => {
                let accesses = (field, number(at));
                task.parallel_for(space.range, accesses, |_, (&element, number)| {
                    number.combine(given(element));
                })?;
            }
            (Some(at), true) => {
                let accesses = (field, number(at));
                task.parallel_for_rows(space.range, accesses, |_, (elements, number)| {
                    elements.iter().for_each(|&element| number.combine(given(element)));
                })?;
            }
        }
        Ok(())
    }
}

/// What a cluster gives: what the loop gives, and the bits of the sum of floats.
fn on_cluster(program: &Program, [nodes, devices]: [usize; 2]) -> Result<(Seen, u32)> {
    let config = Config::default().nodes(nodes).devices(devices).check(CheckLevel::Full);
    config.run(|queue| {
        let mut run = Run::new(queue, program.size)?;
        program.statements.iter().try_for_each(|&statement| run.submit(statement))?;
        (0..=ARRAY).try_for_each(|at| run.look(at))?;
        run.seen.push(queue.fence(&run.field)?.wait()?.into_vec());
        Ok((run.seen, queue.fence(&run.floats)?.wait()?[[]].to_bits()))
    })
}

#[test]
fn reductions_give_what_loops_give() {
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        let on = |cluster| {
            on_cluster(&program, cluster)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{program:#?}"))
        };
        let (found, floats) = on(program.cluster);
        assert!(found == by_loop(&program), "seed {seed} gives something else:\n{program:#?}");
        let (_, alone) = on([1, 1]);
        assert_eq!(floats, alone, "seed {seed} adds floats in another order:\n{program:#?}");
    }
}
