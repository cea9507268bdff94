//! Reads signatures out of compiled modules: the device's side, to compare with
//! the host's. Knows as much of the assembly as that takes.

use core::{fmt, iter};

use super::describe::{Description, Parameter};

/// An entry point of a compiled module, as its text has it.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint<'a> {
    /// The name by which a driver finds the entry point.
    pub name: &'a str,
    parameters: &'a str,
    body: &'a str,
}

/// A compiled module and a kernel's description do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The module has no entry point of this name.
    NoEntry {
        /// The name of the kernel's function.
        kernel: &'static str,
        /// The entry point that it should have.
        entry: &'static str,
    },
    /// A parameter is not what the host would write.
    Parameter {
        /// The name of the kernel's function.
        kernel: &'static str,
        /// The position of the parameter, counted from 0.
        position: usize,
        /// What the host would write; nothing if it has no more parameters.
        host: Option<Parameter>,
        /// What the module reads; nothing if it has no more.
        module: Option<Parameter>,
    },
}

/// The entry points of a module, in order. O(length of the text).
pub fn entries(ptx: &str) -> impl Iterator<Item = EntryPoint<'_>> {
    ptx.split(".entry ").skip(1).filter_map(|text| {
        let (name, rest) = text.split_once('(')?;
        let (parameters, rest) = rest.split_once(')')?;
        let body = rest.split_once("\n}").map_or(rest, |(body, _)| body);
        Some(EntryPoint { name: name.trim(), parameters, body })
    })
}

impl<'a> EntryPoint<'a> {
    /// Its parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + use<'a> {
        self.parameters.split(',').filter(|text| !text.trim().is_empty()).map(parameter)
    }
}

/// Whether a kernel has an entry point for [stacks](super::EntryKind::Stacked) whose threads do little else but load, as the text of
/// a module has it: they save loads, and have more registers. O(length of the text).
///
/// Roots and quotients that are rounded have branches, and what is on both sides of a branch is not loaded together. On an H200, over
/// 16384² `f32`, means of 9 (21 instructions for each load) had 1.15 of the rate in stacks, the game of life (24) 1.6; the size of a
/// gradient, which is a root (25), 0.95; nine quotients for each cell (54) 0.87, by row, where their code became a function of its
/// own, 0.82; nine exponentials (39) 0.91.
#[must_use]
pub fn gains_by_stacks(ptx: &str, kernel: &Description) -> bool {
    const MOST_FOR_A_LOAD: usize = 32;
    const SLOW: [&str; 5] = ["div.rn", "sqrt.rn", "rcp.rn", "call", ".local"];
    let Some(entry) = kernel.stacked_entry else { return false };
    let Some(EntryPoint { body, .. }) = entries(ptx).find(|found| found.name == entry) else {
        return false;
    };
    let instructions = body.lines().filter(|line| line.trim_end().ends_with(';')).count();
    let loads = body.matches("ld.global").count();
    !SLOW.iter().any(|slow| body.contains(slow)) && instructions <= MOST_FOR_A_LOAD * loads
}

/// Compares a kernel's description with its entry points in a module.
///
/// # Errors
/// The first difference.
pub fn check_signature(ptx: &str, kernel: &Description) -> Result<(), SignatureError> {
    let mut names = iter::once(kernel.entry)
        .chain(kernel.narrow_entry)
        .chain(kernel.stacked_entry)
        .chain(kernel.apart_entry);
    names.try_for_each(|entry| check_entry(ptx, kernel, entry))
}

/// As [`check_signature`], of one entry point.
fn check_entry(ptx: &str, kernel: &Description, entry: &'static str) -> Result<(), SignatureError> {
    let name = kernel.name;
    let Some(found) = entries(ptx).find(|found| found.name == entry) else {
        return Err(SignatureError::NoEntry { kernel: name, entry });
    };
    let (mut host, mut module) = (kernel.parameters(), found.parameters());
    for position in 0.. {
        match (host.next(), module.next()) {
            (None, None) => break,
            (host, module) if host == module => {}
            (host, module) => {
                return Err(SignatureError::Parameter { kernel: name, position, host, module });
            }
        }
    }
    Ok(())
}

/// Of `.param .u64 .ptr .align 16 name` and `.param .align 8 .b8 name[128]`: a
/// pointer's alignment is that of what it leads to, so only arrays have one.
fn parameter(text: &str) -> Parameter {
    let unit = text.split_whitespace().find_map(unit).unwrap_or(0);
    let count = |text: &str| text.split_once('[')?.1.split_once(']')?.0.parse().ok();
    match count(text) {
        Some(count) => Parameter { size: count, align: alignment(text).unwrap_or(unit) },
        None => Parameter { size: unit, align: unit },
    }
}

/// Bytes of a type, as in `.u64`.
fn unit(word: &str) -> Option<usize> {
    let bits = word.strip_prefix(['.'])?.strip_prefix(['u', 's', 'b', 'f'])?;
    bits.parse::<usize>().ok().map(|bits| bits / 8)
}

fn alignment(text: &str) -> Option<usize> {
    text.split_once(".align ")?.1.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEntry { kernel, entry } => write!(
                f,
                "the compiled module has no entry point `{entry}` for the kernel `{kernel}`: it \
                 is older than the program; build again"
            ),
            Self::Parameter { kernel, position, host, module } => write!(
                f,
                "parameter {position} of the kernel `{kernel}` is {} on the host and {} in the \
                 compiled module: one is older than the other; build again",
                Shown(host),
                Shown(module)
            ),
        }
    }
}

impl core::error::Error for SignatureError {}

struct Shown<'a>(&'a Option<Parameter>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Parameter { size, align }) => write!(f, "{size} bytes aligned to {align}"),
            None => write!(f, "absent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::super::describe::{Form, ScalarParameter, ViewKind, ViewParameter};
    use super::*;

    const KERNEL: Description = Description {
        name: "step",
        entry: "step_f32",
        narrow_entry: None,
        stacked_entry: None,
        apart_entry: None,
        takes_steps: false,
        form: Form::Item,
        dims: 1,
        firsts: &[],
        views: &[ViewParameter { kind: ViewKind::Own, writes: true, dims: 1, size: 4, align: 4 }],
        scalars: &[ScalarParameter::of::<f32>("c"), ScalarParameter::of::<[u16; 3]>("d")],
        local: &[],
    };

    const PTX: &str = "
.visible .entry other()
{
}
.visible .entry step_f32(
	.param .align 8 .b8 step_param_0[128],
	.param .u64 .ptr .align 16 step_param_1,
	.param .align 8 .b8 step_param_2[184],
	.param .f32 step_param_3,
	.param .align 2 .b8 step_param_4[6]
)
";

    #[test]
    #[cfg_attr(miri, ignore = "much text, and no unsafe code")]
    fn kernels_that_load_gain_by_stacks_and_those_that_compute_do_not() {
        let kernel = Description { stacked_entry: Some("k$stacked"), ..KERNEL };
        let module = |body: std::string::String| {
            let other = ".visible .entry k(\n)\n{\n\tsqrt.rn.f32 a, b;\n}\n";
            format!("{other}.visible .entry k$stacked(\n)\n{{\n{body}\n}}\n{other}")
        };
        let loads = "\tld.global.nc.b32 a, [b];\n".repeat(3);
        let with = |rest: &str| gains_by_stacks(&module(format!("{loads}{rest}")), &kernel);
        let sum = "\tadd.rn.f32 a, b, c;\n";
        assert!(with(&sum.repeat(93)) && !with(&sum.repeat(94)));
        assert!(with("\trcp.approx.f32 a, b;\n") && !with("\trcp.rn.f32 a, b;\n"));
        assert!(!gains_by_stacks(&module(loads), &KERNEL));
        assert!(!gains_by_stacks("", &kernel));
    }

    #[test]
    fn the_same_signature_is_found() {
        assert_eq!(check_signature(PTX, &KERNEL), Ok(()));
        assert_eq!(entries(PTX).next().unwrap().parameters().count(), 0);
    }

    #[test]
    fn every_difference_is_found() {
        for (old, new, position) in [
            ("step_param_0[128]", "step_param_0[120]", 0),
            (".param .f32", ".param .f64", 3),
            (".align 2", ".align 4", 4),
            (",\n\t.param .align 2 .b8 step_param_4[6]", "", 4),
            ("step_param_4[6]", "step_param_4[6],\n\t.param .u8 step_param_5", 5),
        ] {
            let error = check_signature(&PTX.replace(old, new), &KERNEL).unwrap_err();
            let SignatureError::Parameter { position: found, .. } = error else { panic!() };
            assert_eq!(found, position, "{error}");
        }
    }

    #[test]
    fn a_missing_entry_point_is_named() {
        let error = check_signature(".visible .entry other()", &KERNEL).unwrap_err().to_string();
        assert!(error.contains("`step_f32`") && error.contains("`step`"), "{error}");
        let both = Description { narrow_entry: Some("step_f32$narrow"), ..KERNEL };
        let error = check_signature(PTX, &both).unwrap_err().to_string();
        assert!(error.contains("`step_f32$narrow`"), "{error}");
        let narrow = PTX.replace("step_f32(", "step_f32$narrow(");
        assert_eq!(check_signature(&format!("{PTX}{narrow}"), &both), Ok(()));
        let other = narrow.replace("step_param_0[128]", "step_param_0[120]");
        assert!(check_signature(&format!("{PTX}{other}"), &both).is_err());
    }
}
