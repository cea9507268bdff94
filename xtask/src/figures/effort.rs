//! Lines of code and cyclomatic complexity (McCabe) of functions and types in Rust and C++, by name.
//!
//! A line counts if something of it is left without comments. Complexity is one for each function, and one more for
//! each `if`, loop, `&&`, `||`, `?:`, `case`, and arm of a `match` but its last; `for_each` counts as a loop. What hides
//! a test for errors does not count: `?` in Rust, a checking macro in C++.

use std::ops::Range;
use std::path::Path;

use super::table::Table;
use crate::error::Error;
use crate::files::read;

/// A program by hand, and ours.
#[derive(Debug)]
pub(super) struct Effort {
    pub(super) program: &'static str,
    pub(super) ours: &'static [Item],
    pub(super) by_hand: &'static [Item],
}

/// Functions and types of a file, each by what is on its first line: `fn new of impl Part` is the one inside of the other,
/// `struct Part without void read(` the one but for what is inside of it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) file: &'static str,
    pub(super) names: &'static [&'static str],
}

/// Lines and complexity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    lines: usize,
    complexity: usize,
}

/// A row per program: lines of ours and by hand, then complexity.
///
/// # Errors
/// A file that cannot be read, or has no function of that name.
pub(super) fn table(root: &Path, efforts: &[Effort]) -> Result<Table, Error> {
    let columns = ["lines here", "lines by hand", "complexity here", "complexity by hand"];
    let mut table = Table::new("program", columns);
    for Effort { program, ours, by_hand } in efforts {
        let [ours, by_hand] = [ours, by_hand].map(|items| total(root, items));
        let (ours, by_hand) = (ours?, by_hand?);
        let values = [ours.lines, by_hand.lines, ours.complexity, by_hand.complexity];
        table.rows.push(((*program).into(), values.map(|value| value as f64).to_vec()));
    }
    Ok(table)
}

fn total(root: &Path, items: &[Item]) -> Result<Size, Error> {
    let mut total = Size::default();
    for Item { file, names } in items {
        let path = root.join(file);
        let code = without_comments(&read(&path)?);
        for name in *names {
            let size = size_of(&code, name, file.ends_with(".rs")).ok_or_else(|| {
                let what = format!("it has no `{name}` with a body");
                Error::Malformed { path: path.clone(), what }
            })?;
            total.lines += size.lines;
            total.complexity += size.complexity;
        }
    }
    Ok(total)
}

/// An item as [`Item`] names it. Types and `impl`s count as the functions inside of them.
fn size_of(code: &str, name: &str, is_rust: bool) -> Option<Size> {
    let (name, outer) = name.split_once(" of ").map_or((name, None), |(a, b)| (a, Some(b)));
    let (name, left_out) = name.split_once(WITHOUT).map_or((name, None), |(a, b)| (a, Some(b)));
    let outer = outer.map_or(Some(code), |outer| Some(&code[lines_of(code, outer)?]));
    let text = outer.and_then(|outer| Some(&outer[lines_of(outer, name)?]))?;
    let cut = left_out.map_or(Some(0..0), |inner| lines_of(text, inner))?;
    let text = format!("{}{}", &text[..cut.start], &text[cut.end..]);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let complexity = match (name.starts_with("struct") || name.starts_with("impl"), is_rust) {
        (false, _) => 1,
        (true, true) => words(&text, "fn"),
        (true, false) => functions(&text),
    };
    Some(Size { lines, complexity: complexity + decisions(&text, is_rust) })
}

const WITHOUT: &str = " without ";

/// The first item of code whose line has `name`, and no `;` before its body: from the beginning of that line to the
/// end of its body.
fn lines_of(code: &str, name: &str) -> Option<Range<usize>> {
    let begins = code.match_indices(name).map(|(at, _)| at);
    let (start, length) = begins.into_iter().find_map(|at| {
        let whole = !code[at + name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let open = head(&code[at..]).filter(|open| code[at + open..].starts_with('{'));
        let length = body(&code[at + open?..])? + open?;
        (whole || name.ends_with('(')).then_some((at, length))
    })?;
    let first = code[..start].rfind('\n').map_or(0, |end| end + 1);
    Some(first..start + length)
}

/// The bytes up to the first brace or semicolon, but for those of lengths of arrays.
fn head(text: &str) -> Option<usize> {
    let mut brackets = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            '{' | ';' if brackets == 0 => return Some(at),
            _ => {}
        }
        None
    })
}

/// Functions inside of a type in C++: what has arguments and a body one level down.
fn functions(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut count = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => {
                let head = text[..at].trim_end().trim_end_matches("const").trim_end();
                count += usize::from(depth == 1 && head.ends_with(')'));
                depth += 1;
            }
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    count
}

/// The bytes up to the brace that closes the one at the beginning.
fn body(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn words(code: &str, word: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .filter(|(at, _)| !code[..*at].ends_with(is_part))
        .filter(|(at, _)| !code[at + word.len()..].starts_with(is_part))
        .count()
}

fn decisions(code: &str, is_rust: bool) -> usize {
    let words = |word: &str| words(code, word);
    let mut count = words("if") + words("for") + words("while") + code.matches("&&").count();
    if is_rust {
        count += words("for_each") + words("try_for_each") + words("loop");
        count += code.matches("=>").count().saturating_sub(words("match"));
        // Without an operand before it, it is a closure without arguments.
        let is_operator = |at: usize| {
            let before = code[..at].trim_end();
            !before.ends_with(['(', ',', '=', '{', ';', '|']) && !before.ends_with("move")
        };
        count += code.match_indices("||").filter(|(at, _)| is_operator(*at)).count();
    } else {
        count += words("case") + code.matches(" ? ").count() + code.matches("||").count();
    }
    count
}

/// The same with blanks in the place of comments and of what is between quotation marks.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            _ => 0,
        };
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            // A text is something on its line, a comment is nothing.
            code.push(if c == '"' { '"' } else { ' ' });
            code.extend(rest[..skipped].matches('\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str, name: &str, is_rust: bool) -> Option<(usize, usize)> {
        let size = size_of(&without_comments(text), name, is_rust)?;
        Some((size.lines, size.complexity))
    }

    #[test]
    fn rust_is_counted() {
        let text = r#"
fn steps(n: i32) -> i32 { n }
/// Docs: if, for.
fn step(n: i32) -> Result<i32, E> {
    // A comment.
    let f = || n; let text = "if { && } \" for";

    if n > 0 && f()? > 1 || n < -2 { return Ok(1); }
    match n {
        1 => Ok(2),
        2 | 3 => Ok(3),
        _ => Ok(4),
    }
}
fn next() {}
"#;
        // One, `if`, `&&`, `||`, and two of three arms.
        assert_eq!(size(text, "fn step", true), Some((9, 6)));
        assert_eq!(size(text, "fn steps", true), Some((1, 1)));
        assert_eq!(size(text, "fn ste", true), None);
    }

    #[test]
    fn cpp_is_counted() {
        let text = "
struct Part;
/* for */ struct Part {
    int a = 0;
    int more(int b) const
    {
        return b > 1 ? a : b; // if
    }
};
void step(Part& part);
void step(Part& part)
{
    for (int i = 0; i < 3; ++i)
        if (i || part.a) CHECK(call(i));
}
";
        assert_eq!(size(text, "struct Part", false), Some((7, 2)));
        assert_eq!(size(text, "void step(", false), Some((5, 4)));
        assert_eq!(size(text, "struct Part without int more(", false), Some((3, 0)));
        assert_eq!(size(text, "int more( of struct Part", false), Some((4, 2)));
        assert_eq!(size(text, "struct Part without int less(", false), None);
    }

    #[test]
    fn items_are_found_inside_of_others() {
        let text = "
impl A {
    fn new() -> Self { if x { y } }
}
impl<T: Fn(f32)> B<T> {
    fn new(
    ) -> Self { z }
    fn next(x: [f32; 2]) {}
}
";
        assert_eq!(size(text, "fn new", true), Some((1, 2)));
        assert_eq!(size(text, "fn new of impl<T: Fn(f32)> B", true), Some((2, 1)));
        assert_eq!(size(text, "impl<T: Fn(f32)> B", true), Some((5, 2)));
        assert_eq!(size(text, "fn next", true), Some((1, 1)));
        assert_eq!(size(text, "fn next of impl A", true), None);
    }
}
