//! Completes what the compiler wrote: there is no linker for devices. Code is
//! complete by itself; static data of libraries is looked up in theirs. What
//! cannot be completed, and what devices cannot run, is found here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// In the name of the function that panics end in. It may panic itself, and ends
/// the thread then: no recursion.
const PANIC_HANDLER: &str = "rust_begin_unwind";

/// `ptx` with the data of `libraries` (folders of assembly files) that it refers
/// to.
///
/// # Errors
/// If it calls a function or refers to data that is nowhere, or if functions call
/// each other in a cycle.
pub(crate) fn complete(ptx: &str, libraries: &[PathBuf]) -> Result<String, Error> {
    check_calls(ptx)?;
    if !ptx.lines().any(is_extern_data) {
        return Ok(ptx.to_owned());
    }
    let mut data = BTreeMap::new();
    for library in libraries {
        collect(library, &mut data)?;
    }
    let mut placed = BTreeSet::new();
    let mut complete = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match declared(line).filter(|_| is_extern_data(line)) {
            Some(name) => place(name, &data, &mut placed, &mut complete)?,
            None => push_line(&mut complete, line),
        }
    }
    Ok(complete)
}

/// Appends the definition of `name`, behind those of what it refers to itself.
fn place(
    name: &str,
    data: &BTreeMap<String, String>,
    placed: &mut BTreeSet<String>,
    out: &mut String,
) -> Result<(), Error> {
    if !placed.insert(name.to_owned()) {
        return Ok(());
    }
    let definition = data.get(name).ok_or_else(|| Error::NoData { name: name.to_owned() })?;
    let contents = definition.split_once('=').map_or("", |(_, contents)| contents);
    for other in words(contents).filter(|word| data.contains_key(*word)) {
        place(other, data, placed, out)?;
    }
    // Of the kernels' own now: several libraries may be loaded side by side.
    push_line(out, definition.trim_start_matches(".visible "));
    Ok(())
}

/// Adds the definitions in all assembly files of a folder.
fn collect(folder: &Path, data: &mut BTreeMap<String, String>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "s") {
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            let definitions = text.lines().filter(|line| !is_extern_data(line));
            data.extend(
                definitions.filter_map(|line| {
                    declared(line).map(|name| (name.to_owned(), line.to_owned()))
                }),
            );
        }
    }
    Ok(())
}

fn is_extern_data(line: &str) -> bool {
    line.starts_with(".extern .global")
}

/// The name of the variable that a line declares or defines.
fn declared(line: &str) -> Option<&str> {
    let data = [".extern .global", ".visible .global", ".global"];
    data.iter().find(|start| line.starts_with(**start))?;
    let head = line.split(['=', '[', ';']).next()?;
    head.split_whitespace().next_back()
}

/// Words as the assembly writes names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
        .filter(|word| !word.is_empty())
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// # Errors
/// If a function has no body, or calls itself by way of others.
fn check_calls(ptx: &str) -> Result<(), Error> {
    let mut calls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut function = None;
    let mut lines = ptx.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(".extern .func") {
            let name = function_name(line, lines.peek().copied().unwrap_or_default());
            return Err(Error::NoCode { function: name.to_owned() });
        }
        if is_function(line) {
            function = Some(function_name(line, lines.peek().copied().unwrap_or_default()));
        } else if let (Some(caller), Some(callee)) = (function, callee(line))
            && !caller.contains(PANIC_HANDLER)
        {
            calls.entry(caller).or_default().insert(callee);
        }
    }
    match cycle(&calls) {
        Some(cycle) => Err(Error::Recursion { cycle }),
        None => Ok(()),
    }
}

fn is_function(line: &str) -> bool {
    let head = line.trim_start_matches(".visible ");
    head.starts_with(".func") || head.starts_with(".entry")
}

/// The name behind the result, if there is one, and before the parameters; it may
/// stand in the line below.
pub(crate) fn function_name<'a>(line: &'a str, below: &'a str) -> &'a str {
    let line = line.rsplit_once(") ").map_or(line, |(_, name)| name);
    // One without parameters has both parentheses, and nothing behind them.
    let line = line.trim_end().trim_end_matches("()");
    let name = line.trim_end_matches(['(', ' ']).rsplit([' ', '\t']).next().unwrap_or(line);
    if name.starts_with('.') || name.ends_with(')') {
        return below.trim().trim_end_matches('(');
    }
    name
}

/// The function that a line calls by name.
fn callee(line: &str) -> Option<&str> {
    let call = line.trim_start().strip_prefix("call")?;
    let call = call.strip_prefix(".uni").unwrap_or(call).trim_start();
    let call = call
        .strip_prefix('(')
        .map_or(call, |call| call.split_once("),").map_or(call, |(_, rest)| rest));
    let name = call.trim_start().split([',', ';', '(']).next()?.trim();
    (!name.starts_with('%') && !name.is_empty()).then_some(name)
}

/// A cycle of calls, if there is one.
fn cycle(calls: &BTreeMap<&str, BTreeSet<&str>>) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    calls.keys().find_map(|start| search(start, calls, &mut Vec::new(), &mut done))
}

fn search<'a>(
    function: &'a str,
    calls: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<String>> {
    if let Some(first) = path.iter().position(|&on_path| on_path == function) {
        let cycle = path[first..].iter().chain([&function]);
        return Some(cycle.map(|&name| name.to_owned()).collect());
    }
    if !done.insert(function) {
        return None;
    }
    path.push(function);
    let found = calls
        .get(function)
        .into_iter()
        .flatten()
        .find_map(|callee| search(callee, calls, path, done));
    path.pop();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, text: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("celerity-link-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("core.s"), text).unwrap();
        folder
    }

    const CORE: &str = "\
.global .align 1 .b8 anon_$_1[2] = {48, 49};
.visible .global .align 8 .u64 DIGITS = generic(anon_$_1);
.visible .global .align 4 .b8 OTHER[4] = {1, 2, 3, 4};
";

    #[test]
    fn data_comes_with_what_it_refers_to_and_nothing_else() {
        let ptx = ".version 7.1\n.extern .global .align 8 .b64 DIGITS;\n.visible .entry k()\n";
        let folder = library("data", CORE);
        let complete = complete(ptx, std::slice::from_ref(&folder)).unwrap();
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(
            complete,
            ".version 7.1\n.global .align 1 .b8 anon_$_1[2] = {48, 49};\n\
             .global .align 8 .u64 DIGITS = generic(anon_$_1);\n.visible .entry k()\n"
        );
    }

    #[test]
    fn data_that_is_nowhere_is_named() {
        let ptx = ".extern .global .align 8 .b64 NOWHERE;\n";
        let folder = library("nowhere", CORE);
        let error = complete(ptx, std::slice::from_ref(&folder)).unwrap_err().to_string();
        fs::remove_dir_all(folder).unwrap();
        assert!(error.contains("`NOWHERE`"), "{error}");
    }

    #[test]
    fn a_function_without_code_is_named() {
        let ptx = ".extern .func  (.param .b32 func_retval0) malloc\n(\n);\n";
        assert!(complete(ptx, &[]).unwrap_err().to_string().contains("`malloc`"));
    }

    #[test]
    fn a_cycle_of_calls_is_shown() {
        let ptx = "\
.func  (.param .b32 r) odd
(
)
;
.visible .func even(
\tcall.uni (retval0), odd, (param0);
.func  (.param .b32 r) odd(
\tcall.uni even, (param0);
\tcall.uni %rd1, (param0), prototype_1;
.visible .entry k(
\tcall.uni even, (param0);
";
        let error = complete(ptx, &[]).unwrap_err().to_string();
        assert!(error.contains("even -> odd -> even"), "{error}");
    }

    #[test]
    fn calls_in_one_direction_are_fine() {
        let ptx = ".func a(\n\tcall.uni b, ();\n.func b(\n.entry k(\n\tcall.uni a, ();\n";
        assert_eq!(complete(ptx, &[]).unwrap(), ptx);
    }
}
