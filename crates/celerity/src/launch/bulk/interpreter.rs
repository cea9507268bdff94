//! Runs what little of NVIDIA's portable assembly is in `bulk.ptx`, thread by thread, on the host's
//! memory: so that it is tested without a GPU.

use std::collections::HashMap;

use celerity_executor::Launch;

/// An entry point, taken apart.
pub(super) struct Program<'t> {
    /// Where each parameter lies.
    parameters: HashMap<&'t str, usize>,
    bytes: usize,
    instructions: Vec<Vec<&'t str>>,
    labels: HashMap<&'t str, usize>,
}

/// Where parameters are, for instructions that take their address.
const PARAMETERS: u64 = 1 << 60;

impl<'t> Program<'t> {
    /// # Panics
    /// If there is no such entry point.
    pub(super) fn parse(text: &'t str, entry: &str) -> Self {
        let (_, text) = text.split_once(&format!(".entry {entry}(")).expect("an entry point");
        let (head, text) = text.split_once(')').unwrap();
        let (body, _) = text.split_once("\n}").unwrap();
        let (mut parameters, mut bytes) = (HashMap::new(), 0);
        for parameter in head.split(',') {
            let name = parameter.split_whitespace().last().unwrap();
            let (name, size) = match name.split_once('[') {
                Some((name, size)) => (name, size.trim_end_matches(']').parse().unwrap()),
                None => (name, 8),
            };
            parameters.insert(name, bytes);
            bytes += size;
        }
        let (mut instructions, mut labels) = (Vec::new(), HashMap::new());
        let code = body.lines().map(str::trim).filter(|line| !line.starts_with(['.', '{', '/']));
        for line in code.filter(|line| !line.is_empty()) {
            match line.strip_suffix(':') {
                Some(label) => _ = labels.insert(label, instructions.len()),
                None => instructions.push(
                    line.split([' ', ',', ';', '[', ']']).filter(|word| !word.is_empty()).collect(),
                ),
            }
        }
        Self { parameters, bytes, instructions, labels }
    }

    /// Runs all threads of a launch.
    ///
    /// # Safety
    /// The addresses among the parameters lead to memory that the launch may touch.
    pub(super) unsafe fn run(&self, launch: &Launch) {
        assert_eq!(launch.parameters.as_bytes().len(), self.bytes, "parameters");
        let all = |[x, y, z]: [u32; 3]| {
            (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
        };
        for block in all(launch.grid) {
            for thread in all(launch.block) {
                // SAFETY: passed on.
                unsafe { self.thread(launch, block, thread) }
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn thread(&self, launch: &Launch, block: [u32; 3], thread: [u32; 3]) {
        let mut registers: HashMap<&str, u64> = HashMap::new();
        let mut next = 0;
        loop {
            let mut words = self.instructions[next].as_slice();
            next += 1;
            if let Some(predicate) = words[0].strip_prefix('@') {
                if registers[predicate] == 0 {
                    continue;
                }
                words = &words[1..];
            }
            let value = |word: &str| -> u64 {
                let of = |triple: [u32; 3], dim: &str| {
                    u64::from(triple["xyz".find(dim).expect("a dimension")])
                };
                match word.split_once('.') {
                    Some(("%ctaid", dim)) => of(block, dim),
                    Some(("%tid", dim)) => of(thread, dim),
                    Some(("%ntid", dim)) => of(launch.block, dim),
                    Some(("%nctaid", dim)) => of(launch.grid, dim),
                    Some(_) => panic!("{word}"),
                    None => registers.get(word).copied().unwrap_or_else(|| match word.parse() {
                        Ok(number) => number,
                        Err(_) => PARAMETERS + self.parameters[word] as u64,
                    }),
                }
            };
            let operand = |nth: usize| value(words[nth]);
            let result = match words[0] {
                "ret" => return,
                "bra" => {
                    next = self.labels[words[1]];
                    continue;
                }
                "mov.u32" | "mov.u64" | "cvt.u64.u32" => operand(2),
                "add.u64" => operand(2).wrapping_add(operand(3)),
                "mul.lo.u64" => operand(2).wrapping_mul(operand(3)),
                "mad.lo.u64" => operand(2).wrapping_mul(operand(3)).wrapping_add(operand(4)),
                "setp.ge.u64" => u64::from(operand(2) >= operand(3)),
                name => {
                    let (what, bits) = name.rsplit_once(".u").expect("an access to memory");
                    let bytes = bits.parse::<usize>().unwrap() / 8;
                    let register = match what {
                        "st.global" => words[2],
                        _ => words[1],
                    };
                    let address = match what {
                        "st.global" => operand(1),
                        _ => operand(2),
                    };
                    assert!(address.is_multiple_of(bytes as u64), "{name} at {address:#x}");
                    let mut word = [0; 8];
                    match what {
                        "ld.param" => {
                            let at = (address - PARAMETERS) as usize;
                            let all = launch.parameters.as_bytes();
                            word[..bytes].copy_from_slice(&all[at..at + bytes]);
                        }
                        "ld.global" => {
                            let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
                            // SAFETY: passed on.
                            unsafe { from.copy_to(word.as_mut_ptr(), bytes) }
                        }
                        "st.global" => {
                            let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
                            let word = value(register).to_le_bytes();
                            // SAFETY: passed on.
                            unsafe { to.copy_from(word.as_ptr(), bytes) }
                            continue;
                        }
                        _ => panic!("{name}"),
                    }
                    u64::from_le_bytes(word)
                }
            };
            registers.insert(words[1], result);
        }
    }
}
