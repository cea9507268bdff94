//! Of a module in PTX, what one entry point needs: a driver compiles all that it is given, and of a module
//! with a hundred kernels a program uses a few. Knows as much of the assembly as that takes: where what
//! stands at its top begins and ends, what it is called, and which names stand in it.

use core::ops::Range;
use std::borrow::ToOwned;
use std::boxed::Box;
use std::collections::HashMap;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// What stands at the top of a module's text.
#[derive(Clone, Debug)]
pub struct ModuleOutline {
    /// Up to here come version, target and size of addresses.
    head: usize,
    items: Vec<Item>,
    /// By name: a function is there twice if it is declared before it is defined.
    named: HashMap<Box<str>, Vec<usize>>,
}

#[derive(Clone, Debug)]
struct Item {
    span: Range<usize>,
    is_entry: bool,
}

/// The variable of modules that `#[kernel]` has made. Their kernels share nothing else that can change: what compiles
/// them refuses it. What kernels of other modules share, they would not in modules of their own.
const OF_KERNELS: &str = ".visible .global .align 8 .b8 celerity_record[8];";

impl ModuleOutline {
    /// The outline of a module that `#[kernel]` has made, or `None` if it is another one, or something is in it that is
    /// not known here. O(length of the text).
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        if !text.contains(OF_KERNELS) {
            return None;
        }
        let (mut items, mut named) = (Vec::new(), HashMap::<Box<str>, Vec<usize>>::new());
        let (mut at, mut head) = (0, 0);
        while let Some(start) = next_word(text, at) {
            let line = text[start..].split('\n').next()?;
            let mut words = line.split_ascii_whitespace();
            match words.next()? {
                ".version" | ".target" | ".address_size" if items.is_empty() => {
                    at = start + line.len();
                    head = at;
                }
                ".visible" | ".weak" | ".extern" | ".common" | ".entry" | ".func" | ".global"
                | ".shared" | ".const" => {
                    let kinds =
                        || line.split_ascii_whitespace().take_while(|it| it.starts_with('.'));
                    let is_entry = kinds().any(|kind| kind == ".entry");
                    let is_function = is_entry || kinds().any(|kind| kind == ".func");
                    let end = start + end_of_item(&text[start..], is_function)?;
                    let name = name_of_item(&text[start..end])?;
                    named.entry(name.into()).or_default().push(items.len());
                    items.push(Item { span: start..end, is_entry });
                    at = end;
                }
                _ => return None,
            }
        }
        Some(Self { head, items, named })
    }

    /// The text of a module with this entry point and what it needs, in the order of `text`, whose outline this is. `None`
    /// if there is no such entry point. O(length of what it needs).
    #[must_use]
    pub fn only(&self, text: &str, entry: &str) -> Option<String> {
        let first = *self.named.get(entry)?.iter().find(|&&item| self.items[item].is_entry)?;
        let (mut needed, mut open) = (vec![false; self.items.len()], vec![first]);
        needed[first] = true;
        while let Some(item) = open.pop() {
            for name in names(&text[self.items[item].span.clone()]) {
                for &other in self.named.get(name).into_iter().flatten() {
                    // No kernel calls another one; its name may be that of a variable of a kernel's.
                    if !needed[other] && !self.items[other].is_entry {
                        needed[other] = true;
                        open.push(other);
                    }
                }
            }
        }
        let mut excerpt = text[..self.head].to_owned();
        for (Item { span, .. }, _) in self.items.iter().zip(needed).filter(|(_, needed)| *needed) {
            excerpt.push('\n');
            excerpt.push_str(&text[span.clone()]);
        }
        excerpt.push('\n');
        Some(excerpt)
    }
}

/// Where the next thing at the top begins that is no comment.
fn next_word(text: &str, mut at: usize) -> Option<usize> {
    loop {
        at += text[at..].find(|it: char| !it.is_ascii_whitespace())?;
        if !text[at..].starts_with("//") {
            return Some(at);
        }
        at += text[at..].find('\n')?;
    }
}

/// The length of a function, up to its last brace, or of a declaration or variable, up to its semicolon.
fn end_of_item(text: &str, is_function: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => at += text[at..].find('\n')?,
            b'"' => at += 1 + text[at + 1..].find('"')?,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if is_function && depth == 0 {
                    return Some(at + 1);
                }
            }
            b';' if depth == 0 => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// What an item is called: the first word that is no directive, number or list of what a function returns.
fn name_of_item(item: &str) -> Option<&str> {
    let mut rest = item;
    loop {
        rest = rest.trim_start();
        if let Some(results) = rest.strip_prefix('(') {
            rest = results.split_once(')')?.1;
        } else if rest.starts_with(|it: char| it == '.' || it.is_ascii_digit()) {
            rest = &rest[rest.find(char::is_whitespace)?..];
        } else {
            return names(rest).next();
        }
    }
}

/// All words in a text that may be names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_of_names = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '$' | '%');
    let words = text.split(move |it| !is_of_names(it));
    words.filter(|word| {
        word.starts_with(|it: char| it.is_ascii_alphabetic() || matches!(it, '_' | '$'))
    })
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    const MODULE: &str = "//
// Generated
//
.version 7.0
.target sm_80
.address_size 64

// celerity: fast {
.func  (.param .b64 func_retval0) helper
(
	.param .b64 helper_param_0
)
;
.global .align 1 .b8 alloc_a[4] = {99, 114, 97, 116};
.global .align 8 .u64 alloc_b[2] = {alloc_a, 3};
.visible .global .align 8 .b8 celerity_record[8];
.shared .align 16 .b8 celerity_launch[80];
.visible .entry first(
	.param .u64 first_param_0
)
.maxnreg 64
{
	.reg .b64 %rd<2>; // a } in a comment
	{ mov.u64 %rd1, alloc_b; }
	.pragma \"no}unroll\";
	call.uni (retval0), helper, (param0);
	ld.global.u64 %rd1, [celerity_record];
}
	// .globl	helper
.func  (.param .b64 func_retval0) helper(
	.param .b64 helper_param_0
)
{
	st.shared.u64 [celerity_launch+8], %rd1;
	ret;
}
.visible .entry second()
{
	ret;
}
";

    #[test]
    fn what_an_entry_point_needs_is_there_in_order() {
        let outline = ModuleOutline::of(MODULE).unwrap();
        let first = outline.only(MODULE, "first").unwrap();
        let lines: Vec<&str> = first.lines().filter(|line| line.starts_with('.')).collect();
        assert_eq!(
            lines,
            [
                ".version 7.0",
                ".target sm_80",
                ".address_size 64",
                ".func  (.param .b64 func_retval0) helper",
                ".global .align 1 .b8 alloc_a[4] = {99, 114, 97, 116};",
                ".global .align 8 .u64 alloc_b[2] = {alloc_a, 3};",
                ".visible .global .align 8 .b8 celerity_record[8];",
                ".shared .align 16 .b8 celerity_launch[80];",
                ".visible .entry first(",
                ".maxnreg 64",
                ".func  (.param .b64 func_retval0) helper(",
            ]
        );
        assert!(first.ends_with("\tret;\n}\n") && first.contains("no}unroll"), "{first}");
        let second = outline.only(MODULE, "second").unwrap();
        assert_eq!(second.matches("\n.").count(), 4, "{second}");
        assert_eq!(outline.only(MODULE, "helper"), None);
        assert_eq!(outline.only(MODULE, "third"), None);
    }

    #[test]
    fn modules_that_are_not_understood_stay_whole() {
        assert!(ModuleOutline::of("step celerity_record").is_none());
        // Of somebody else, whose kernels may share variables.
        let of_others = MODULE.replace("celerity_record", "counter");
        assert!(ModuleOutline::of(&of_others).is_none());
        for unknown in [".section .debug_info {}", "}", ".func open() {", "/* a comment */"] {
            assert!(ModuleOutline::of(&format!("{MODULE}{unknown}\n")).is_none(), "{unknown}");
        }
    }
}
