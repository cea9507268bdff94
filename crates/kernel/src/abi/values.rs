//! The values in a message of the program's own, `panic!("{x} of {limit:.3}")`: a device leaves their bits, and the
//! host formats them, as `format!` would. Knows numbers, and lists of them; nothing of what they are about.

use core::fmt::{self, Write};

/// How many numbers a message can have.
pub(crate) const NUMBERS: usize = 12;

/// So many values of a message are told; others look like [`UNTOLD`].
const VALUES: u32 = 8;

/// What stands for a value that is no number and no list of numbers.
const UNTOLD: &str = "…";

/// What `lists` of a record is if its numbers are values.
pub(crate) const ARE_VALUES: u32 = u32::MAX;

/// A number that a message can tell.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueKind {
    Bool = 1,
    Char,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl ValueKind {
    const ALL: [Self; 12] = {
        use ValueKind::*;
        [Bool, Char, U8, U16, U32, U64, I8, I16, I32, I64, F32, F64]
    };
}

/// What writes values into a record, one after the other. Each has 8 bits in a word of kinds: what its numbers are,
/// and, if it is a list, one more than its length.
#[doc(hidden)]
#[derive(Debug)]
pub struct Teller<'r> {
    numbers: &'r mut [u64; NUMBERS],
    place: usize,
    kinds: u64,
    values: u32,
}

impl<'r> Teller<'r> {
    #[cfg(any(test, target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) fn new(numbers: &'r mut [u64; NUMBERS]) -> Self {
        Self { numbers, place: 0, kinds: 0, values: 0 }
    }

    /// The kinds of all that it was told.
    #[cfg(any(test, target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) fn kinds(self) -> u64 {
        self.kinds
    }

    /// One number, of these bits.
    #[inline(always)]
    pub fn number(&mut self, kind: ValueKind, bits: u64) {
        self.value(kind, None, |_| bits);
    }

    /// A list of so many, each of the bits at its place.
    #[inline(always)]
    pub fn list(&mut self, kind: ValueKind, len: usize, bits: impl Fn(usize) -> u64) {
        self.value(kind, Some(len), bits);
    }

    /// Something else.
    #[inline(always)]
    pub fn untold(&mut self) {
        self.values += 1;
    }

    #[inline(always)]
    fn value(&mut self, kind: ValueKind, list: Option<usize>, bits: impl Fn(usize) -> u64) {
        let end = self.place + list.unwrap_or(1);
        if self.values < VALUES
            && let Some(numbers) = self.numbers.get_mut(self.place..end)
        {
            for (nth, number) in numbers.iter_mut().enumerate() {
                *number = bits(nth);
            }
            let list = list.map_or(0, |len| len as u64 + 1);
            self.kinds |= (kind as u64 | list << 4) << (8 * self.values);
            self.place = end;
        }
        self.values += 1;
    }
}

/// A text in the language of `format!`, whose `{:…}` stand for the next of these values.
pub(crate) struct ToldValues<'a> {
    pub(crate) text: &'a str,
    pub(crate) kinds: u64,
    pub(crate) numbers: &'a [u64],
}

impl fmt::Display for ToldValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut numbers, mut nth) = (self.text, self.numbers, 0);
        while let Some(at) = rest.find(['{', '}']) {
            f.write_str(&rest[..at])?;
            let (brace, behind) = rest[at..].split_at(1);
            if let Some(behind) = behind.strip_prefix(brace) {
                f.write_str(brace)?;
                rest = behind;
            } else if let Some((spec, behind)) = behind.split_once('}').filter(|_| brace == "{") {
                let (_, spec) = spec.split_once(':').unwrap_or_default();
                let kind = if nth < VALUES { self.kinds >> (8 * nth) & 0xff } else { 0 };
                nth += 1;
                numbers = write_value(f, &Spec::parse(spec), kind, numbers)?;
                rest = behind;
            } else {
                // It was cut.
                return f.write_str(&rest[at..]);
            }
        }
        f.write_str(rest)
    }
}

/// Writes the value of this kind that is made of the first of `numbers`, and returns the others.
fn write_value<'n>(
    f: &mut fmt::Formatter<'_>,
    spec: &Spec<'_>,
    kind: u64,
    numbers: &'n [u64],
) -> Result<&'n [u64], fmt::Error> {
    let (list, kind) = (kind >> 4, ValueKind::ALL.get((kind as usize & 0xf).wrapping_sub(1)));
    let len = list.checked_sub(1).unwrap_or(1) as usize;
    let Some((kind, (these, rest))) = kind.copied().zip(numbers.split_at_checked(len)) else {
        f.write_str(UNTOLD)?;
        return Ok(numbers);
    };
    match these {
        [number] if list == 0 => spec.write(f, Number { kind, bits: *number })?,
        _ => {
            let is_spread = spec.alternate && spec.form.ends_with('?') && len > 0;
            let [begin, between, end] =
                if is_spread { ["[\n    ", ",\n    ", ",\n]"] } else { ["[", ", ", "]"] };
            f.write_str(begin)?;
            for (nth, &bits) in these.iter().enumerate() {
                f.write_str(if nth == 0 { "" } else { between })?;
                spec.write(f, Number { kind, bits })?;
            }
            f.write_str(end)?;
        }
    }
    Ok(rest)
}

/// What stands behind the colon.
#[derive(Debug, PartialEq, Eq)]
struct Spec<'a> {
    fill: char,
    align: Option<char>,
    plus: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    form: &'a str,
}

impl<'a> Spec<'a> {
    fn parse(text: &'a str) -> Self {
        let (mut rest, mut fill, mut align) = (text, ' ', None);
        let mut chars = text.chars();
        if let (Some(first), Some(second @ ('<' | '^' | '>'))) = (chars.next(), chars.next()) {
            (fill, align, rest) = (first, Some(second), chars.as_str());
        } else if let Some(first @ ('<' | '^' | '>')) = text.chars().next() {
            (align, rest) = (Some(first), &text[1..]);
        }
        let plus = flag(&mut rest, '+');
        // What it says is nothing.
        flag(&mut rest, '-');
        let (alternate, zeros) = (flag(&mut rest, '#'), flag(&mut rest, '0'));
        let width = number(&mut rest).unwrap_or(0);
        let precision = if flag(&mut rest, '.') { number(&mut rest) } else { None };
        Self { fill, align, plus, alternate, zeros, width, precision, form: rest }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, number: Number) -> fmt::Result {
        // It looks at nothing of all this.
        if number.kind == ValueKind::Char && self.form == "?" {
            return number.write(f, self);
        }
        let mut size = Size { chars: 0, signs: 0 };
        number.write(&mut size, self)?;
        let missing = self.width.saturating_sub(size.chars);
        if self.zeros && number.is_numeric() {
            let has_prefix =
                self.alternate && matches!(self.form, "x" | "X" | "o" | "b" | "x?" | "X?");
            let prefix = if has_prefix { 2 } else { 0 };
            return number.write(&mut Zeros { f, before: size.signs + prefix, missing }, self);
        }
        let before = match self.align {
            Some('<') => 0,
            Some('^') => missing / 2,
            None if !number.is_numeric() => 0,
            _ => missing,
        };
        let fill = |f: &mut fmt::Formatter<'_>, count: usize| {
            (0..count).try_for_each(|_| f.write_char(self.fill))
        };
        fill(f, before)?;
        number.write(f, self)?;
        fill(f, missing - before)
    }
}

/// Whether the text goes on with this mark, which is left behind then.
fn flag(rest: &mut &str, mark: char) -> bool {
    rest.strip_prefix(mark).map(|behind| *rest = behind).is_some()
}

/// The number that the text goes on with, which is left behind.
fn number(rest: &mut &str) -> Option<usize> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    *rest = behind;
    digits.parse().ok()
}

/// A number by its bits.
#[derive(Clone, Copy)]
struct Number {
    kind: ValueKind,
    bits: u64,
}

/// `$value` in one of some forms, with what else the specification says.
macro_rules! formatted {
    ($out:ident, $value:expr, $spec:ident, [$($form:literal)*]) => {
        match ($spec.form, $spec.plus, $spec.alternate) {
            $(
                ($form, false, false) => write!($out, concat!("{:", $form, "}"), $value),
                ($form, true, false) => write!($out, concat!("{:+", $form, "}"), $value),
                ($form, false, true) => write!($out, concat!("{:#", $form, "}"), $value),
                ($form, true, true) => write!($out, concat!("{:+#", $form, "}"), $value),
            )*
            _ => $out.write_str(UNTOLD),
        }
    };
    ($out:ident, $value:expr, $spec:ident, $precision:ident, [$($form:literal)*]) => {
        match ($spec.form, $spec.plus) {
            $(
                ($form, false) => write!($out, concat!("{:.*", $form, "}"), $precision, $value),
                ($form, true) => write!($out, concat!("{:+.*", $form, "}"), $precision, $value),
            )*
            _ => $out.write_str(UNTOLD),
        }
    };
}

impl Number {
    const fn is_numeric(self) -> bool {
        !matches!(self.kind, ValueKind::Bool | ValueKind::Char)
    }

    /// The number, neither padded nor aligned.
    fn write(self, out: &mut impl Write, spec: &Spec<'_>) -> fmt::Result {
        macro_rules! integer {
            ($integer:ty) => {
                match spec.precision {
                    Some(precision) if matches!(spec.form, "e" | "E") => {
                        formatted!(out, self.bits as $integer, spec, precision, ["e" "E"])
                    }
                    _ => {
                        formatted!(out, self.bits as $integer, spec, ["" "?" "x" "X" "o" "b" "e" "E" "x?" "X?"])
                    }
                }
            };
        }
        macro_rules! float {
            ($value:expr) => {
                match spec.precision {
                    Some(precision) => formatted!(out, $value, spec, precision, ["" "?" "e" "E"]),
                    None => formatted!(out, $value, spec, ["" "?" "e" "E"]),
                }
            };
        }
        match self.kind {
            ValueKind::Bool => {
                let text = if self.bits == 0 { "false" } else { "true" };
                out.write_str(&text[..spec.precision.unwrap_or(text.len()).min(text.len())])
            }
            ValueKind::Char => {
                let char = char::from_u32(self.bits as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                match (spec.form, spec.precision) {
                    ("?", _) => write!(out, "{char:?}"),
                    (_, Some(0)) => Ok(()),
                    _ => out.write_char(char),
                }
            }
            ValueKind::U8 => integer!(u8),
            ValueKind::U16 => integer!(u16),
            ValueKind::U32 => integer!(u32),
            ValueKind::U64 => integer!(u64),
            ValueKind::I8 => integer!(i8),
            ValueKind::I16 => integer!(i16),
            ValueKind::I32 => integer!(i32),
            ValueKind::I64 => integer!(i64),
            ValueKind::F32 => float!(f32::from_bits(self.bits as u32)),
            ValueKind::F64 => float!(f64::from_bits(self.bits)),
        }
    }
}

/// Counts what is written.
struct Size {
    chars: usize,
    /// Of those at the beginning.
    signs: usize,
}

impl Write for Size {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.chars == 0 && text.starts_with(['+', '-']) {
            self.signs = 1;
        }
        self.chars += text.chars().count();
        Ok(())
    }
}

/// Puts zeros behind a sign and `0x`.
struct Zeros<'f, 'a> {
    f: &'f mut fmt::Formatter<'a>,
    /// What comes before them.
    before: usize,
    missing: usize,
}

impl Write for Zeros<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            match self.before.checked_sub(1) {
                Some(before) => self.before = before,
                None => {
                    (0..core::mem::take(&mut self.missing))
                        .try_for_each(|_| self.f.write_char('0'))?;
                }
            }
            self.f.write_char(char)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};

    use super::*;
    use crate::told::tell::*;

    /// What a host says of values that a device has told.
    fn said(text: &str, tell: impl FnOnce(&mut Teller<'_>)) -> String {
        let mut numbers = [0; NUMBERS];
        let mut teller = Teller::new(&mut numbers);
        tell(&mut teller);
        let kinds = teller.kinds();
        ToldValues { text, kinds, numbers: &numbers }.to_string()
    }

    /// As a panic does.
    macro_rules! tell {
        ($teller:ident, $value:expr) => {
            (&&&&Telling(&$value)).tell($teller)
        };
    }

    macro_rules! is_as_format_says {
        ($($text:literal: $($value:expr),*;)*) => {$(
            let told = said($text, |teller: &mut Teller<'_>| {
                $(tell!(teller, $value);)*
            });
            assert_eq!(told, std::format!($text, $($value),*), "{}", $text);
        )*};
    }

    #[test]
    fn numbers_look_as_they_do_on_hosts() {
        is_as_format_says! {
            "{} of {}": 5_u32, 7_usize;
            "{:?} {:?}, {{{}}} }}{{": -5_i8, 2.0_f32, 1e300_f64;
            "{:5}|{:<5}|{:^5}|{:>5}|{:*^6}|{:-<4}": 1_u8, 2_u16, 3_u64, -4_i16, 5_i32, 6_i64;
            "{:+}|{:+?}|{:05}|{:+05}|{:<05}": 1_i32, 2_i32, -3_i32, 4_i32, 5_u8;
            "{:x} {:X} {:#x} {:#b} {:o} {:#010x} {:e} {:02x?}": -1_i32, 255_u8, 16_u64, 5_u16, 8_u8, 77_u32, 1500_u32, 10_u8;
            "{:.3} {:8.2}|{:+.1e} {:?} {:E} {:08.3}": 1.0_f64 / 3.0, 2.5_f32, 123.456_f64, 0.1_f32, 1e-7_f64, -3.25_f32;
            "{:?} {} {:5}|{:?}": f32::NAN, f64::NEG_INFINITY, f32::INFINITY, -0.0_f64;
            "{} {:?} {:6}|{:>6}|{} {:?} {:3}|": true, false, true, false, 'é', '\n', 'x';
            "{:?} {:?} {:02?}": [1_usize, 2], [1.5_f32, -2.0, 0.5], [[1_u8, 2], [3, 4]][1];
            "{:?} {} {:#?}": [0_u8; 0], 3_u8, [0_u8; 0];
            "{:#?} {:#x?} {:#?}": [1_u8, 2], [10_u16], 5_u32;
            "{:.2e} {:.0E} {:#08e} {:+.1e}": 1500_u32, 77_i8, 5_u32, -12_i64;
            "{:.2}|{:.0?}|{:.9}|{:6.1}|{:.0}|{:.1}|{:5?}|{:*>4}": true, false, true, false, 'é', 'x', 'x', 'y';
            "{:05}|{:05}|{:+06}|{:05?}|{:06}": f32::INFINITY, f64::NAN, f32::INFINITY, f64::NEG_INFINITY, -f32::INFINITY;
            "{} {} {}": &5_u32, &mut 6_i64, &&7.5_f32;
        }
    }

    #[test]
    fn what_is_no_number_is_left_out_and_what_follows_is_not() {
        let told = |teller: &mut Teller<'_>| {
            tell!(teller, "text");
            tell!(teller, Some(4));
            tell!(teller, 5_u128);
            tell!(teller, 6_u32);
        };
        assert_eq!(said("{} {:?} {} {}", told), "… … … 6");
    }

    #[test]
    fn there_is_room_for_so_many() {
        let told = |teller: &mut Teller<'_>| {
            tell!(teller, [1_u32; 7]);
            // Does not fit any more, but what is shorter does.
            tell!(teller, [2_u32; 6]);
            tell!(teller, [3_u32; 5]);
        };
        assert_eq!(said("{:?} {:?} {:?}", told), "[1, 1, 1, 1, 1, 1, 1] … [3, 3, 3, 3, 3]");
        let told = |teller: &mut Teller<'_>| (0..10_u32).for_each(|nth| tell!(teller, nth));
        assert_eq!(said("{}{}{}{}{}{}{}{}{}{}", told), "01234567……");
    }

    #[test]
    fn generic_kernels_tell_their_numbers() {
        fn float<T: crate::math::Float>(teller: &mut Teller<'_>, value: T) {
            tell!(teller, value);
        }
        fn number<T: crate::Number>(teller: &mut Teller<'_>, value: T) {
            tell!(teller, value);
        }
        fn number_behind<T: crate::Number, U: crate::Number>(
            teller: &mut Teller<'_>,
            value: &T,
            other: &mut U,
        ) {
            tell!(teller, value);
            tell!(teller, other);
            tell!(teller, Some(value));
        }
        let told = |teller: &mut Teller<'_>| {
            float(teller, 0.5_f32);
            number(teller, 0.25_f64);
            number(teller, -3_i16);
            number_behind(teller, &4_u8, &mut 5_i64);
        };
        assert_eq!(said("{} {} {} {} {} {}", told), "0.5 0.25 -3 4 5 …");
    }

    #[test]
    fn a_text_that_was_cut_is_told_as_far_as_it_goes() {
        let told = |teller: &mut Teller<'_>| tell!(teller, 1_u32);
        assert_eq!(said("{} and {:.", told), "1 and {:.");
    }
}
