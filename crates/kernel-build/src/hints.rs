//! Hands on what the compiler says, line by line, and adds what it cannot know: that devices have no `std`,
//! and where a kernel finds the functions that floats have as methods in `std` alone.

use std::io::{self, BufRead, Write};

/// Methods of floats in `std`, and what stands for them in `celerity_kernel::math`.
const METHODS: [(&str, &str); 20] = [
    ("sqrt", "sqrt(x)"),
    ("mul_add", "mul_add(x, factor, term)"),
    ("floor", "floor(x)"),
    ("ceil", "ceil(x)"),
    ("trunc", "trunc(x)"),
    ("round", "round(x)"),
    ("exp", "exp(x)"),
    ("exp2", "exp2(x)"),
    ("ln", "ln(x)"),
    ("log2", "log2(x)"),
    ("log10", "log10(x)"),
    ("powf", "pow(x, exponent)"),
    ("powi", "pow(x, exponent)"),
    ("sin", "sin(x)"),
    ("cos", "cos(x)"),
    ("tan", "tan(x)"),
    ("atan2", "atan2(y, x)"),
    ("tanh", "tanh(x)"),
    ("cbrt", "cbrt(x)"),
    ("hypot", "hypot(x, y)"),
];

/// A crate that does not say that it can do without `std`.
const NEEDS_STD: &str = "devices have no `std`: what kernels depend on must do without it, often by \
                         `default-features = false`; a crate says so by `#![no_std]` at its top";

/// A path that begins with `std`.
const NAMES_STD: &str = "devices have no `std`: most of what has no need of an operating system is in `core`, by the \
                         same path; with `#![no_std]` at the top of the crate of kernels, compilers for hosts say \
                         the same";

/// Copies all lines of `from`, with a line of help at the end of each message that we have one for.
///
/// # Errors
/// If reading or writing fails.
pub(crate) fn forward(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let (mut line, mut hint, mut margin) = (Vec::new(), None, 0);
    while from.read_until(b'\n', &mut line)? > 0 {
        let text = without_colors(&String::from_utf8_lossy(&line));
        match text.find("--> ") {
            Some(at) if text[..at].trim().is_empty() => margin = at + 1,
            _ => {}
        }
        if text.trim().is_empty()
            && let Some(hint) = hint.take()
        {
            writeln!(to, "{:margin$}= help: {hint}", "")?;
        }
        hint = hint.or_else(|| hint_for(&text));
        to.write_all(&line)?;
        line.clear();
    }
    Ok(())
}

/// What to add to the message that begins with `headline`.
fn hint_for(headline: &str) -> Option<String> {
    if headline.starts_with("error[E0463]") && headline.contains("`std`") {
        return Some(NEEDS_STD.to_owned());
    }
    if headline.starts_with("error[E0433]") && headline.contains("`std`") {
        return Some(NAMES_STD.to_owned());
    }
    hint_for_method(headline)
}

/// The same where floats lack a method.
fn hint_for_method(headline: &str) -> Option<String> {
    let mut quoted = headline.strip_prefix("error[E0599]: no ")?.split('`').skip(1).step_by(2);
    let (name, ty) = (quoted.next()?, quoted.next()?);
    let number = ty.trim_start_matches('&').trim_start_matches("mut ");
    if !matches!(number, "f32" | "f64" | "{float}") {
        return None;
    }
    let call = METHODS.iter().find(|(method, _)| *method == name);
    Some(match call {
        Some((_, call)) => format!(
            "call `celerity_kernel::math::{call}`: hosts have `{name}` from `std`, which devices \
             lack, and the function has the same bits on both"
        ),
        None => format!(
            "if hosts have `{name}`, it comes from `std`, which devices lack: see \
             `celerity_kernel::math` for functions with the same bits on both"
        ),
    })
}

/// A line as it is for terminals without colors.
fn without_colors(line: &str) -> String {
    let mut pieces = line.trim_end().split('\x1b');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(text: &str) -> String {
        let mut out = Vec::new();
        forward(text.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_method_of_std_leads_to_the_function_in_its_place() {
        let said = "\
error[E0599]: no method named `powf` found for reference `&f32` in the current scope
  --> src/lib.rs:12:14
   |
12 |     *x += by.powf(2.0);
   |              ^^^^ method not found in `&f32`

error: aborting
";
        let (before, after) = said.split_once("\n\n").unwrap();
        let help = "   = help: call `celerity_kernel::math::pow(x, exponent)`: hosts have `powf` \
                    from `std`, which devices lack, and the function has the same bits on both";
        assert_eq!(forwarded(said), format!("{before}\n{help}\n\n{after}"));
    }

    #[test]
    fn who_asks_for_std_is_told_that_devices_have_none() {
        for (said, help) in [
            ("error[E0463]: can't find crate for `std`", NEEDS_STD),
            ("error[E0433]: cannot find module or crate `std` in this scope", NAMES_STD),
            (
                "error[E0433]: failed to resolve: use of unresolved module or unlinked crate `std`",
                NAMES_STD,
            ),
        ] {
            let said = format!("{said}\n --> src/lib.rs:1:1\n");
            assert_eq!(forwarded(&format!("{said}\n")), format!("{said}  = help: {help}\n\n"));
        }
    }

    #[test]
    fn colors_do_not_hide_a_message() {
        let said = "\x1b[1m\x1b[91merror[E0599]\x1b[0m: no associated function or constant named \
                    `sinh` found for type `f64` in the current scope\n\x1b[0m\n";
        assert!(forwarded(said).contains("it comes from `std`"), "{}", forwarded(said));
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for said in [
            "error[E0599]: no method named `sqrt` found for type `u32` in the current scope\n\n",
            "error[E0599]: no method named `sqrt` found for struct `Body` in the current scope\n\n",
            "error[E0308]: mismatched types: `sqrt` and `f32`\n\nno newline at the end",
            "\u{1b}",
        ] {
            assert_eq!(forwarded(said), said);
        }
    }
}
