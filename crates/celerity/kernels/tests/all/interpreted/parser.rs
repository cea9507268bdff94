//! Reads an entry point of a module's text into what the interpreter goes through. Knows what places and
//! operands look like, and not what instructions do.

use std::collections::HashMap;

/// Where shared memory has what the launch says, behind what the module keeps for itself.
pub(super) const DYNAMIC: u64 = 256;

/// An entry point.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) code: Vec<Instruction>,
    /// Where in the code labels stand.
    pub(super) labels: HashMap<String, usize>,
    /// Labels that a branch by an index leads to.
    pub(super) targets: HashMap<String, Vec<String>>,
    /// How many registers there are.
    pub(super) registers: usize,
    names: HashMap<String, usize>,
    /// Where parameters begin, in bytes.
    parameters: HashMap<String, u64>,
}

#[derive(Debug)]
pub(super) struct Instruction {
    /// The register that says whether it is carried out, and what it must not be: true for 0.
    pub(super) guard: Option<(usize, bool)>,
    /// As in `add.s64`.
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug)]
pub(super) enum Argument {
    /// One operand, or several in braces.
    Operands(Vec<Operand>),
    /// An address, and what is added to it.
    Place(Operand, u64),
    Label(String),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Register(usize),
    Value(u64),
    Special(Special),
}

/// A thread's position: of its block, in its block, or how many threads the block has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Special {
    pub(super) which: usize,
    pub(super) axis: usize,
}

impl Argument {
    pub(super) fn all(&self) -> &[Operand] {
        match self {
            Self::Operands(operands) => operands,
            other => panic!("{other:?} is no operand"),
        }
    }
}

impl Instruction {
    pub(super) fn parts(&self) -> Vec<&str> {
        self.name.split('.').collect()
    }

    pub(super) fn kind(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.name.split('.').any(|it| it == part)
    }

    pub(super) fn ends_with(&self, part: &str) -> bool {
        self.name.rsplit('.').next() == Some(part)
    }

    /// Bits of what it works on; 64 where the name does not say.
    pub(super) fn bits(&self) -> usize {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        last.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(64)
    }

    pub(super) fn one(&self, at: usize) -> &Operand {
        &self.arguments[at].all()[0]
    }

    pub(super) fn label(&self, at: usize) -> &str {
        match &self.arguments[at] {
            Argument::Label(label) => label,
            other => panic!("{other:?} is no label"),
        }
    }
}

impl Entry {
    /// The entry point of that name.
    pub(super) fn read(module: &str, name: &str) -> Self {
        let (_, text) = module.split_once(&format!(".entry {name}(")).expect("an entry point");
        let (parameters, body) = text.split_once("\n)").expect("parameters");
        let (_, body) = body.split_once('{').expect("a body");
        let body = body.split_once("\n}\n").map_or(body, |(body, _)| body);
        let mut entry = Self::default();
        entry.read_parameters(parameters);
        let lines = body.lines().map(|line| line.split("//").next().unwrap_or_default());
        for statement in lines.collect::<Vec<_>>().join("\n").split(';') {
            entry.read_statement(statement);
        }
        entry
    }

    fn read_parameters(&mut self, text: &str) {
        let mut end = 0_u64;
        for parameter in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let (head, name) = parameter.rsplit_once(' ').expect("a name");
            let (name, count) = match name.split_once('[') {
                Some((name, count)) => (name, count.trim_end_matches(']').parse().unwrap()),
                None => (name, 1),
            };
            let bits = head.split_whitespace().find_map(|word| word.get(2..)?.parse::<u64>().ok());
            let size = bits.expect("a size") / 8;
            // Of an address, it is what the address is a multiple of.
            let said = head.split_once(".align ").filter(|_| !head.contains(".ptr"));
            let align = said.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            end = end.next_multiple_of(align.unwrap_or(size));
            self.parameters.insert(name.to_owned(), end);
            end += size * count;
        }
    }

    fn read_statement(&mut self, statement: &str) {
        // What is in braces are blocks of assembly; the last one ends where the next statement begins.
        let is_between = |c: char| c.is_whitespace() || c == '{' || c == '}';
        let mut text = statement.trim_start_matches(is_between).trim_end();
        while let Some((label, rest)) = text.split_once(':').filter(|(it, _)| it.starts_with('$')) {
            if let Some((_, labels)) = rest.split_once(".branchtargets") {
                let labels = labels.split(',').map(|label| label.trim().to_owned()).collect();
                self.targets.insert(label.to_owned(), labels);
                return;
            }
            self.labels.insert(label.to_owned(), self.code.len());
            text = rest.trim_start_matches(is_between);
        }
        if text.is_empty() || text.starts_with('.') {
            return;
        }
        let (guard, text) =
            match text.strip_prefix('@').and_then(|rest| rest.split_once([' ', '\t'])) {
                None => (None, text),
                Some((register, rest)) => {
                    let wanted = !register.starts_with('!');
                    (Some((self.register(register.trim_start_matches('!')), wanted)), rest.trim())
                }
            };
        let (name, rest) = text.split_once(|c: char| c.is_whitespace()).unwrap_or((text, ""));
        let arguments = split(rest).map(|text| self.argument(&text)).collect();
        self.code.push(Instruction { guard, name: name.to_owned(), arguments });
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers;
        let at = *self.names.entry(name.to_owned()).or_insert(next);
        self.registers = self.registers.max(at + 1);
        at
    }

    fn argument(&mut self, text: &str) -> Argument {
        if text.starts_with('$') {
            return Argument::Label(text.to_owned());
        }
        if let Some(list) = text.strip_prefix('{') {
            let list = list.trim_end_matches('}').split(',');
            return Argument::Operands(list.map(|text| self.operand(text.trim())).collect());
        }
        let Some(place) = text.strip_prefix('[').map(|text| text.trim_end_matches(']')) else {
            return Argument::Operands(vec![self.operand(text)]);
        };
        let (base, offset) = place.split_once('+').unwrap_or((place, "0"));
        let offset = offset.parse::<i64>().expect("an offset").cast_unsigned();
        Argument::Place(self.operand(base), offset)
    }

    fn operand(&mut self, text: &str) -> Operand {
        const SPECIAL: [&str; 3] = ["%ctaid.", "%tid.", "%ntid."];
        for (which, name) in SPECIAL.iter().enumerate() {
            if let Some(axis) = text.strip_prefix(name) {
                let axis = "xyz".find(axis).expect("an axis");
                return Operand::Special(Special { which, axis });
            }
        }
        let hexadecimal = |digits: &str| u64::from_str_radix(digits.trim_end_matches('U'), 16);
        match text {
            "celerity_launch" => Operand::Value(0),
            "celerity_local" => Operand::Value(DYNAMIC),
            // Texts and tables of panics, which nobody reads here.
            _ if text.starts_with("alloc_") || text.starts_with("celerity_") => Operand::Value(0),
            _ if self.parameters.contains_key(text) => Operand::Value(self.parameters[text]),
            _ if text.starts_with("0d") || text.starts_with("0f") || text.starts_with("0x") => {
                Operand::Value(hexadecimal(&text[2..]).expect("digits"))
            }
            _ if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                match text.parse::<i64>() {
                    Ok(number) => Operand::Value(number.cast_unsigned()),
                    Err(_) => Operand::Value(text.parse().expect("a number")),
                }
            }
            _ => Operand::Register(self.register(text)),
        }
    }
}

/// Arguments, which commas separate that are in no brackets.
fn split(text: &str) -> impl Iterator<Item = String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for character in text.chars() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        match character {
            ',' if depth == 0 => all.push(String::new()),
            _ => all.last_mut().expect("one at least").push(character),
        }
    }
    all.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
