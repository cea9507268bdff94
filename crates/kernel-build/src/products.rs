//! Products of numbers of 32 bits. LLVM computes in 64 bits what begins or ends there, and does not say that the factors are
//! less: of `u64::from(a) * u64::from(b)` whose factors are halves of other such products, as those of counter-based random
//! numbers are, it makes `mul.lo.s64`, which a GPU has no instruction for. Here is found out again which registers of 64 bits
//! hold numbers of 32, and their products become `mul.wide.u32`: one instruction instead of several, whose factors take one
//! register each.

use std::collections::{BTreeMap, BTreeSet};

use crate::instruction::split;

/// What is looked for, and what takes its place.
const NARROWED: [(&str, &str); 2] =
    [("mul.lo.s64", "mul.wide.u32"), ("mad.lo.s64", "mad.wide.u32")];

/// What the lower halves of factors are called.
const HALF: &str = "%half";

/// `ptx`, in which products of numbers of 32 bits are such.
pub(crate) fn narrow(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(start) = rest.find("\n{\n") {
        let (before, from) = rest.split_at(start + "\n{\n".len());
        let (body, behind) = from.split_at(from.find("\n}").map_or(from.len(), |end| end + 1));
        text.push_str(before);
        push_narrowed(&mut text, body);
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The body of a function, with products narrowed.
fn push_narrowed(text: &mut String, body: &str) {
    let is_candidate = |line| product(line).is_some();
    if !body.lines().any(is_candidate) {
        return text.push_str(body);
    }
    let small = small_registers(body);
    let (mut narrowed, mut halves) = (String::with_capacity(body.len()), 0);
    for line in body.split_inclusive('\n') {
        match product(line).filter(|product| product.factors.iter().all(|of| is_small(of, &small)))
        {
            Some(product) => push_product(&mut narrowed, &product, &mut halves),
            None => narrowed.push_str(line),
        }
    }
    if halves > 0 {
        text.push_str(&format!("\t.reg .b32 \t{HALF}<{halves}>;\n"));
    }
    text.push_str(&narrowed);
}

/// `mul.lo.s64 %rd3, %rd1, %rd2;`, or with a summand behind the factors.
struct Product<'a> {
    /// What it may become.
    operation: &'static str,
    to: &'a str,
    factors: [&'a str; 2],
    summand: Option<&'a str>,
}

fn product(line: &str) -> Option<Product<'_>> {
    let (operation, operands) = split(line.trim().strip_suffix(';')?)?;
    let (_, operation) = NARROWED.iter().find(|(wide, _)| *wide == operation)?;
    let mut operands = operands.split(", ");
    let (to, factors) = (operands.next()?, [operands.next()?, operands.next()?]);
    Some(Product { operation, to, factors, summand: operands.next() })
}

fn push_product(text: &mut String, product: &Product<'_>, halves: &mut usize) {
    let Product { operation, to, factors, summand } = product;
    let factors = factors.map(|factor| match factor.parse::<u32>() {
        // As LLVM writes them.
        Ok(number) => number.cast_signed().to_string(),
        Err(_) => {
            let half = format!("{HALF}{halves}");
            *halves += 1;
            text.push_str(&format!("\tcvt.u32.u64 \t{half}, {factor};\n"));
            half
        }
    });
    let [first, second] = factors;
    let summand = summand.map(|summand| format!(", {summand}")).unwrap_or_default();
    text.push_str(&format!("\t{operation} \t{to}, {first}, {second}{summand};\n"));
}

/// What gives a register its value: less than 2³² if that is so of these operands.
enum Given<'a> {
    Always,
    /// If one of them is small.
    Any(Vec<&'a str>),
    All(Vec<&'a str>),
    Never,
}

/// Registers that hold less than 2³² wherever they get a value. Taken to be so until something says otherwise: what goes around
/// a loop is small if all that it begins with and all that is made of it is.
fn small_registers(body: &str) -> BTreeSet<&str> {
    let mut given: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (register, how) in body.split([';', '\n']).flat_map(registers_given) {
        given.entry(register).or_default().push(how);
    }
    let mut small: BTreeSet<_> = given.keys().copied().collect();
    loop {
        let stays = |register: &&str| given[*register].iter().all(|how| holds(how, &small));
        let fewer: BTreeSet<_> = small.iter().copied().filter(stays).collect();
        if fewer.len() == small.len() {
            return small;
        }
        small = fewer;
    }
}

fn holds(how: &Given<'_>, small: &BTreeSet<&str>) -> bool {
    match how {
        Given::Always => true,
        Given::Any(operands) => operands.iter().any(|operand| is_small(operand, small)),
        Given::All(operands) => operands.iter().all(|operand| is_small(operand, small)),
        Given::Never => false,
    }
}

fn is_small(operand: &str, small: &BTreeSet<&str>) -> bool {
    small.contains(operand) || operand.parse::<u32>().is_ok()
}

/// The registers of 64 bits that a statement gives a value to. Of what is not known here, that may be any that it names.
fn registers_given(statement: &str) -> Vec<(&str, Given<'_>)> {
    let never = |text| registers(text).map(|register| (register, Given::Never)).collect();
    let statement = statement.trim();
    if statement.starts_with(['.', '$', '/']) {
        return Vec::new();
    }
    // Behind `@%p1`, as without: what it may give counts as well as what was there before.
    let unguarded = statement.strip_prefix('@').and_then(|guarded| Some(split(guarded)?.1));
    let Some((operation, operands)) = split(unguarded.unwrap_or(statement)) else {
        return never(statement);
    };
    if !operation.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return never(statement);
    }
    let Some((to, from)) = operands.split_once(", ") else { return never(operands) };
    if let Some(several) = operands.strip_prefix(['{', '(']) {
        return never(several.split(['}', ')']).next().unwrap_or(several));
    }
    if !to.starts_with("%rd") {
        return Vec::new();
    }
    let from: Vec<_> = from.split(", ").collect();
    let given = match (operation, &from[..]) {
        ("cvt.u64.u32" | "cvt.u64.u16" | "cvt.u64.u8", _) => Given::Always,
        ("mov.b64" | "mov.u64", _) | ("or.b64" | "xor.b64", _) => Given::All(from),
        ("and.b64", _) => Given::Any(from),
        ("selp.b64", [first, second, _]) => Given::All(vec![first, second]),
        ("shr.u64", [_, by]) if by.parse::<u32>().is_ok_and(|by| by >= 32) => Given::Always,
        ("shr.u64", [shifted, _]) => Given::All(vec![shifted]),
        _ => Given::Never,
    };
    vec![(to, given)]
}

/// The registers of 64 bits that are named.
fn registers(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '_' | '$');
    text.split(move |c| !is_of_name(c)).filter(|word| word.starts_with("%rd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(body: &str) -> String {
        format!(".version 7.1\n.visible .entry a(\n\t.param .u64 a_param_0\n)\n{{\n{body}\n}}\n")
    }

    /// What becomes of lines of instructions without tabs and semicolons.
    fn narrowed(lines: &[&str]) -> Vec<String> {
        let body: Vec<_> = lines.iter().map(|line| format!("\t{line};")).collect();
        let text = narrow(&entry(&body.join("\n")));
        let (_, body) = text.split_once("{\n").unwrap();
        let lines = body.lines().take_while(|line| *line != "}");
        lines.map(|line| line.trim().trim_end_matches(';').replace('\t', "")).collect()
    }

    #[test]
    fn halves_of_products_are_factors_of_32_bits() {
        let lines = [
            "mul.wide.u32 %rd1, %r1, -766435501",
            "shr.u64 %rd2, %rd1, 32",
            "and.b64 %rd3, %rd1, 4294967295",
            "xor.b64 %rd4, %rd2, %rd3",
            "mul.lo.s64 %rd5, %rd4, 3449720151",
            "mad.lo.s64 %rd6, %rd3, %rd2, %rd5",
        ];
        let expected = [
            ".reg .b32 %half<3>",
            "mul.wide.u32 %rd1, %r1, -766435501",
            "shr.u64 %rd2, %rd1, 32",
            "and.b64 %rd3, %rd1, 4294967295",
            "xor.b64 %rd4, %rd2, %rd3",
            "cvt.u32.u64 %half0, %rd4",
            "mul.wide.u32 %rd5, %half0, -845247145",
            "cvt.u32.u64 %half1, %rd3",
            "cvt.u32.u64 %half2, %rd2",
            "mad.wide.u32 %rd6, %half1, %half2, %rd5",
        ];
        assert_eq!(narrowed(&lines), expected);
    }

    #[test]
    fn what_goes_around_a_loop_is_small_if_all_of_it_is() {
        let turns = |next: &str| {
            narrowed(&["mov.b64 %rd1, 7", "mul.lo.s64 %rd2, %rd1, %rd1", next]).len() > 3
        };
        assert!(turns("shr.u64 %rd1, %rd2, 32"));
        assert!(turns("@%p1 selp.b64 %rd1, %rd1, 4294967295, %p2"));
        assert!(turns("st.global.b64 [%rd1], %rd2"));
        for wide in [
            "shr.u64 %rd1, %rd2, 31",
            "add.s64 %rd1, %rd1, 1",
            "@%p1 mov.b64 %rd1, 4294967296",
            "mov.b64 %rd1, -1",
            "or.b64 %rd1, %rd1, %rd2",
            "selp.b64 %rd1, 1, %rd2, %p1",
            "ld.global.v2.b64 {%rd3, %rd1}, [%rd2]",
            "{ mov.b64 %rd1, %rd2",
            "mov.b64 %rd1,%rd2",
            "ld.param.b64 %rd1, [retval0]",
            "mul.lo.s64 %rd1, %rd2, 3",
        ] {
            assert!(!turns(wide), "{wide}");
        }
    }

    #[test]
    fn factors_that_may_be_large_stay() {
        for lines in [
            ["ld.param.b64 %rd1, [a_param_0]", "mul.lo.s64 %rd2, %rd1, 3"],
            ["cvt.u64.u32 %rd1, %r1", "mul.lo.s64 %rd2, %rd1, -3"],
            ["cvt.u64.u32 %rd1, %r1", "mul.lo.s64 %rd2, %rd1, 4294967296"],
            ["cvt.s64.s32 %rd1, %r1", "mul.lo.s64 %rd2, %rd1, 3"],
            ["cvt.u64.u32 %rd1, %r1", "mul.lo.s64 %rd2, %rd3, %rd1"],
        ] {
            assert_eq!(narrowed(&lines), lines);
        }
    }

    #[test]
    fn each_function_is_looked_at_by_itself() {
        let large = "\tld.param.b64 \t%rd1, [a_param_0];\n\tmul.lo.s64 \t%rd2, %rd1, 3;";
        let small = "\tcvt.u64.u32 \t%rd1, %r1;\n\tmul.lo.s64 \t%rd2, %rd1, 3;";
        let text = narrow(&[entry(large), entry(small), entry(large)].concat());
        assert_eq!(text.matches("mul.lo.s64").count(), 2);
        assert_eq!(text.replace("\t.reg .b32 \t%half<1>;\n", "").lines().count(), 3 * 8 + 1);
    }
}
