//! Runs entry points of compiled kernels on the host, thread by thread: an interpreter of that part of PTX which
//! they are made of. Finds addresses that are outside of memory or not aligned, barriers that only some threads of a
//! block come to, and panics. Knows no kernel, nothing of speed, and no order of threads but its own.

use std::collections::HashMap;

use celerity_kernel::abi::Geometry;

use super::parser::{Argument, DYNAMIC, Entry, Instruction, Operand, Special};

/// Memory of a device: pieces that begin at addresses.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<(u64, Vec<u8>)>);

impl Memory {
    /// Adds numbers as a piece.
    pub(super) fn with<const N: usize>(mut self, start: u64, numbers: &[impl Number<N>]) -> Self {
        self.0.push((start, numbers.iter().flat_map(|number| number.to_bytes()).collect()));
        self
    }

    /// All numbers of the piece that begins there.
    pub(super) fn numbers<const N: usize, T: Number<N>>(&self, start: u64) -> Vec<T> {
        let (_, bytes) = self.0.iter().find(|piece| piece.0 == start).expect("a piece");
        bytes.chunks_exact(N).map(|bytes| T::of_bytes(bytes.try_into().unwrap())).collect()
    }

    fn bytes(&mut self, at: u64, len: usize) -> &mut [u8] {
        let piece = self.0.iter_mut().find(|(start, bytes)| {
            (*start..=*start + bytes.len() as u64 - len as u64).contains(&at)
        });
        let (start, bytes) =
            piece.unwrap_or_else(|| panic!("{len} bytes at {at:#x} are nobody's memory"));
        &mut bytes[(at - *start) as usize..][..len]
    }
}

/// What buffers of these tests hold.
pub(super) trait Number<const N: usize>: Copy {
    fn to_bytes(self) -> [u8; N];
    fn of_bytes(bytes: [u8; N]) -> Self;
}

macro_rules! numbers {
    ($($number:ty: $bytes:literal),*) => {$(
        impl Number<$bytes> for $number {
            fn to_bytes(self) -> [u8; $bytes] {
                self.to_le_bytes()
            }

            fn of_bytes(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    )*};
}

numbers!(f32: 4, f64: 8, u8: 1, u32: 4, u64: 8);

/// How often instructions were carried out, by their names: `ld.global.nc.v2.b64`.
pub(super) type Counts = HashMap<String, usize>;

/// Runs all threads of a launch, block by block. Those of a block take turns at barriers.
pub(super) fn run(
    entry: &Entry,
    shape: &Geometry,
    parameters: &[u8],
    memory: &mut Memory,
) -> Counts {
    let mut counts = Counts::new();
    for block in positions(shape.grid) {
        let mut shared = vec![0xff; DYNAMIC as usize + shape.shared_bytes as usize];
        let mut threads: Vec<_> = positions(shape.block)
            .map(|thread| Thread {
                special: [block, thread, shape.block],
                registers: vec![0; entry.registers],
                next: 0,
            })
            .collect();
        while !threads.is_empty() {
            let mut world =
                World { entry, parameters, memory, shared: &mut shared, counts: &mut counts };
            let waits: Vec<_> = threads.iter_mut().map(|thread| thread.run(&mut world)).collect();
            assert!(waits.iter().all(|wait| *wait == waits[0]), "some threads come to no barrier");
            if !waits[0] {
                threads.clear();
            }
        }
    }
    counts
}

fn positions([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}

struct World<'w> {
    entry: &'w Entry,
    parameters: &'w [u8],
    memory: &'w mut Memory,
    shared: &'w mut [u8],
    counts: &'w mut Counts,
}

impl World<'_> {
    fn bytes(&mut self, space: &str, at: u64, len: usize) -> &mut [u8] {
        assert!(at.is_multiple_of(len as u64), "{len} bytes at {at:#x} of {space} memory");
        match space {
            "shared" => &mut self.shared[at as usize..][..len],
            _ => self.memory.bytes(at, len),
        }
    }
}

struct Thread {
    special: [[u32; 3]; 3],
    registers: Vec<u64>,
    next: usize,
}

impl Thread {
    /// Goes on, up to a barrier (true) or to the end (false).
    fn run(&mut self, world: &mut World<'_>) -> bool {
        while let Some(instruction) = world.entry.code.get(self.next) {
            self.next += 1;
            if let Some((register, wanted)) = instruction.guard
                && (self.registers[register] == 0) == wanted
            {
                continue;
            }
            *world.counts.entry(instruction.name.clone()).or_default() += 1;
            match instruction.kind() {
                "ret" => return false,
                "bar" if instruction.has("sync") && !instruction.has("warp") => return true,
                "bar" => {}
                "atom" if instruction.has("add") => self.add(instruction, world),
                "atom" | "trap" | "exit" => panic!("the kernel has panicked"),
                "bra" => self.next = world.entry.labels[instruction.label(0)],
                "brx" => {
                    let target = &world.entry.targets[instruction.label(1)];
                    self.next =
                        world.entry.labels[&target[self.value(instruction.one(0)) as usize]];
                }
                "ld" | "st" => self.access(instruction, world),
                _ => self.compute(instruction),
            }
        }
        false
    }

    fn value(&self, operand: &Operand) -> u64 {
        match *operand {
            Operand::Register(at) => self.registers[at],
            Operand::Value(value) => value,
            Operand::Special(Special { which, axis }) => self.special[which][axis].into(),
        }
    }

    fn access(&mut self, instruction: &Instruction, world: &mut World<'_>) {
        let (registers, place) = match instruction.kind() {
            "ld" => (&instruction.arguments[0], &instruction.arguments[1]),
            _ => (&instruction.arguments[1], &instruction.arguments[0]),
        };
        let registers = registers.all();
        let Argument::Place(base, offset) = place else { panic!("{place:?} is no place") };
        let (at, size) = (self.value(base).wrapping_add(*offset), instruction.bits() / 8);
        if instruction.has("param") {
            let bytes = &world.parameters[at as usize..][..size];
            return self.set(&registers[0], number(bytes));
        }
        let space = if instruction.has("shared") { "shared" } else { "global" };
        let bytes = world.bytes(space, at, size * registers.len());
        for (bytes, register) in bytes.chunks_exact_mut(size).zip(registers) {
            match instruction.kind() {
                "ld" => self.set(register, number(bytes)),
                _ => bytes.copy_from_slice(&self.value(register).to_le_bytes()[..size]),
            }
        }
    }

    /// Adds to what is in memory, and gets what it was.
    fn add(&mut self, instruction: &Instruction, world: &mut World<'_>) {
        let Argument::Place(base, offset) = &instruction.arguments[1] else {
            panic!("{instruction:?} has no place")
        };
        let (at, size) = (self.value(base).wrapping_add(*offset), instruction.bits() / 8);
        let value = self.value(instruction.one(2));
        let space = if instruction.has("shared") { "shared" } else { "global" };
        let bytes = world.bytes(space, at, size);
        let before = number(bytes);
        bytes.copy_from_slice(&before.wrapping_add(value).to_le_bytes()[..size]);
        self.set(instruction.one(0), before);
    }

    fn set(&mut self, operand: &Operand, value: u64) {
        let Operand::Register(at) = *operand else { panic!("{operand:?} cannot be written") };
        self.registers[at] = value;
    }

    fn compute(&mut self, instruction: &Instruction) {
        let bits = instruction.bits();
        let sources: Vec<_> = instruction.arguments[1..]
            .iter()
            .flat_map(Argument::all)
            .map(|it| self.value(it))
            .collect();
        let targets = instruction.arguments[0].all();
        let result = match (instruction.kind(), &sources[..]) {
            // Two halves become a whole, or the other way round.
            ("mov", [low, high]) => cut(*low, bits / 2) | high << (bits / 2),
            ("mov", [whole]) if targets.len() == 2 => {
                self.set(&targets[1], whole >> (bits / 2));
                cut(*whole, bits / 2)
            }
            ("mov" | "cvta", [value]) => *value,
            ("activemask", _) => 1,
            ("cvt", [value]) => convert(instruction, *value),
            ("setp", [a, b]) => compare(instruction, *a, *b).into(),
            ("selp", [a, b, which]) => {
                if *which != 0 {
                    *a
                } else {
                    *b
                }
            }
            _ if instruction.ends_with("pred") => logic(instruction.kind(), &sources),
            _ if instruction.ends_with("f64") => {
                let of = |value: &u64| f64::from_bits(*value);
                arithmetic(instruction.kind(), &sources.iter().map(of).collect::<Vec<_>>())
                    .to_bits()
            }
            // Of `f32`, this would be rounded twice.
            ("fma", [a, b, c]) if instruction.ends_with("f32") => {
                let [a, b, c] = [a, b, c].map(|value| f32::from_bits(*value as u32));
                a.mul_add(b, c).to_bits().into()
            }
            _ if instruction.ends_with("f32") => {
                let of = |value: &u64| f64::from(f32::from_bits(*value as u32));
                let result =
                    arithmetic(instruction.kind(), &sources.iter().map(of).collect::<Vec<_>>());
                (result as f32).to_bits().into()
            }
            _ => integer(instruction, bits, &sources),
        };
        let wide = instruction.has("wide") || bits > 64;
        self.set(&targets[0], if wide { result } else { cut(result, bits) });
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The last bits of a number.
fn cut(value: u64, bits: usize) -> u64 {
    if bits < 64 { value & ((1 << bits) - 1) } else { value }
}

/// The number that so many bits stand for, if the last one is a sign.
fn signed(value: u64, bits: usize) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

fn convert(instruction: &Instruction, value: u64) -> u64 {
    let [.., to, from] = &instruction.parts()[..] else { panic!("{instruction:?}") };
    let bits = |of: &str| of[1..].parse::<usize>().unwrap();
    let value = if from.starts_with('s') {
        signed(value, bits(from)).cast_unsigned()
    } else {
        cut(value, bits(from))
    };
    match (*to, from.starts_with('s')) {
        ("f32", true) => (value.cast_signed() as f32).to_bits().into(),
        ("f32", false) => (value as f32).to_bits().into(),
        ("f64", true) => (value.cast_signed() as f64).to_bits(),
        ("f64", false) => (value as f64).to_bits(),
        _ => cut(value, bits(to)),
    }
}

fn compare(instruction: &Instruction, a: u64, b: u64) -> bool {
    let (bits, parts) = (instruction.bits(), instruction.parts());
    let order = match parts.last().map_or(' ', |last| last.chars().next().unwrap()) {
        's' => signed(a, bits).cmp(&signed(b, bits)),
        'f' if bits == 32 => f32::from_bits(a as u32).total_cmp(&f32::from_bits(b as u32)),
        'f' => f64::from_bits(a).total_cmp(&f64::from_bits(b)),
        _ => cut(a, bits).cmp(&cut(b, bits)),
    };
    match parts[1] {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" => order.is_lt(),
        "le" => order.is_le(),
        "gt" => order.is_gt(),
        "ge" => order.is_ge(),
        other => panic!("no comparison {other}"),
    }
}

fn logic(kind: &str, sources: &[u64]) -> u64 {
    match (kind, sources) {
        ("or", [a, b]) => a | b,
        ("and", [a, b]) => a & b,
        ("xor", [a, b]) => a ^ b,
        ("not", [a]) => 1 - a,
        _ => panic!("no logic {kind}"),
    }
}

/// Of `f32`, too: what is rounded twice has the bits of what is rounded once, for these.
fn arithmetic(kind: &str, sources: &[f64]) -> f64 {
    match (kind, sources) {
        ("add", [a, b]) => a + b,
        ("sub", [a, b]) => a - b,
        ("mul", [a, b]) => a * b,
        ("div", [a, b]) => a / b,
        ("rcp", [a]) => 1.0 / a,
        ("rsqrt", [a]) => 1.0 / a.sqrt(),
        ("neg", [a]) => -a,
        _ => panic!("no arithmetic {kind} of {sources:?}"),
    }
}

fn integer(instruction: &Instruction, bits: usize, sources: &[u64]) -> u64 {
    let is_signed = instruction.parts().last().is_some_and(|last| last.starts_with('s'));
    let of =
        |value: u64| if is_signed { signed(value, bits).cast_unsigned() } else { cut(value, bits) };
    let choose = |a: u64, b: u64, first: bool| if first { a } else { b };
    let less = |a: u64, b: u64| {
        if is_signed { signed(a, bits) < signed(b, bits) } else { cut(a, bits) < cut(b, bits) }
    };
    match (instruction.kind(), sources) {
        ("add", [a, b]) => a.wrapping_add(*b),
        ("sub", [a, b]) => a.wrapping_sub(*b),
        ("mul", [a, b]) => of(*a).wrapping_mul(of(*b)),
        ("mad", [a, b, c]) => of(*a).wrapping_mul(of(*b)).wrapping_add(*c),
        ("div", [a, b]) if !is_signed => of(*a) / of(*b),
        ("rem", [a, b]) if !is_signed => of(*a) % of(*b),
        ("and", [a, b]) => a & b,
        ("or", [a, b]) => a | b,
        ("xor", [a, b]) => a ^ b,
        ("not", [a]) => !a,
        ("neg", [a]) => a.wrapping_neg(),
        ("abs", [a]) => signed(*a, bits).unsigned_abs(),
        ("min", [a, b]) => choose(*a, *b, less(*a, *b)),
        ("max", [a, b]) => choose(*a, *b, less(*b, *a)),
        ("shl", [a, by]) => {
            if (*by as usize) < bits {
                a << by
            } else {
                0
            }
        }
        ("shr", [a, by]) if is_signed => {
            (signed(*a, bits) >> (*by).min(bits as u64 - 1)).cast_unsigned()
        }
        ("shr", [a, by]) => {
            if (*by as usize) < bits {
                of(*a) >> by
            } else {
                0
            }
        }
        // What is left of both when they are shifted to the left as one.
        ("shf", [low, high, by]) if instruction.has("l") && instruction.has("wrap") => {
            (high << 32 | cut(*low, 32)) << (by & 31) >> 32
        }
        ("popc", [a]) => cut(*a, bits).count_ones().into(),
        ("bfe", [a, start, len]) => {
            let field = cut(a >> start, *len as usize);
            if is_signed && *len > 0 { signed(field, *len as usize).cast_unsigned() } else { field }
        }
        ("prmt", [a, b, selection]) => {
            let bytes = (cut(*a, 32) | b << 32).to_le_bytes();
            (0..4).fold(0, |word, at| {
                word | u64::from(bytes[(selection >> (4 * at) & 7) as usize]) << (8 * at)
            })
        }
        _ => panic!("{instruction:?} is not known"),
    }
}
