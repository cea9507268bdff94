//! What the compiler's intermediate code (LLVM's) says and its assembly does not: which data can
//! change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::error::Error;

/// The one variable that can change and that kernels need: it is written by the host.
const RECORD: &str = "celerity_record";

/// # Errors
/// If a kernel uses a static variable that can change. `libraries` are folders of intermediate
/// code, for variables that are not the kernels' own.
pub(crate) fn check_statics(ir: &str, libraries: &[PathBuf]) -> Result<(), Error> {
    let symbols = symbols(ir);
    let foreign: BTreeSet<_> = symbols.values().filter_map(|symbol| symbol.foreign).collect();
    let foreign = match foreign.is_empty() {
        true => BTreeSet::new(),
        false => changing_among(&foreign, libraries)?,
    };
    let changes = |name: &str| {
        let changes = symbols.get(name).is_some_and(|symbol| symbol.changes);
        name != RECORD && (changes || foreign.contains(name))
    };
    let mut seen = BTreeSet::new();
    for (kernel, _) in symbols.iter().filter(|(_, symbol)| symbol.is_kernel) {
        let mut next = vec![*kernel];
        while let Some(name) = next.pop() {
            if changes(name) {
                let (kernel, variable) = ((*kernel).to_owned(), name.to_owned());
                return Err(Error::Static { kernel, variable });
            }
            if seen.insert(name) {
                next.extend(symbols.get(name).into_iter().flat_map(|symbol| &symbol.uses));
            }
        }
    }
    Ok(())
}

/// A function or a variable.
#[derive(Default)]
struct Symbol<'a> {
    is_kernel: bool,
    /// Whether it is a variable that is defined here and can change.
    changes: bool,
    /// Its name, if it is a variable of another library: whether that can change is written there.
    foreign: Option<&'a str>,
    /// What it refers to, maybe several times.
    uses: Vec<&'a str>,
}

/// All functions with code and all variables, by name.
fn symbols(ir: &str) -> BTreeMap<&str, Symbol<'_>> {
    let (mut symbols, mut function) = (BTreeMap::new(), None);
    for line in ir.lines().filter(|line| !line.starts_with(';')) {
        let mut names = names(line);
        if line.starts_with('@')
            && let Some(name) = names.next()
        {
            symbols.insert(name, variable(name, line, names.collect()));
        } else if line.starts_with("define ")
            && let Some(name) = names.next()
        {
            let is_kernel = line.contains(" ptx_kernel ");
            symbols.insert(name, Symbol { is_kernel, ..Symbol::default() });
            function = Some(name);
        } else if line.starts_with('}') {
            function = None;
        } else if let Some(function) = function.and_then(|name| symbols.get_mut(name)) {
            function.uses.extend(names);
        }
    }
    symbols
}

/// A variable by the line that defines or declares it.
fn variable<'a>(name: &'a str, line: &str, uses: Vec<&'a str>) -> Symbol<'a> {
    let kind = line.split(' ').find(|word| matches!(*word, "global" | "constant"));
    let is_foreign = line.contains(" = external ");
    Symbol {
        changes: kind == Some("global") && !is_foreign,
        foreign: is_foreign.then_some(name),
        uses,
        ..Symbol::default()
    }
}

/// Those of the variables that can change, by the code of their libraries.
fn changing_among(
    names: &BTreeSet<&str>,
    libraries: &[PathBuf],
) -> Result<BTreeSet<String>, Error> {
    let mut changing = BTreeSet::new();
    for folder in libraries {
        for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
            let path = entry.map_err(Error::file(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "ll") {
                let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
                let variables = symbols(&text).into_iter().filter(|(_, symbol)| symbol.changes);
                let wanted = variables.filter(|(name, _)| names.contains(name));
                changing.extend(wanted.map(|(name, _)| name.to_owned()));
            }
        }
    }
    Ok(changing)
}

/// The names of functions and variables in a line, in order.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('@').skip(1).filter_map(|text| {
        let name = match text.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => text.split(|c: char| !is_of_name(c)).next()?,
        };
        (!name.is_empty()).then_some(name)
    })
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '$' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = r#"
@TABLE = internal unnamed_addr constant [4 x i8] c"\00\01\02\03", align 4
@COUNT.0 = internal unnamed_addr global i32 0, align 4, !dbg !1
@UNUSED = internal global i32 0, align 4
@DIGITS = external local_unnamed_addr global ptr
@celerity_record = local_unnamed_addr global [8 x i8] zeroinitializer, align 8
@vtable.1 = private constant <{ ptr }> <{ ptr @"odd name" }>, align 8
define internal fastcc i32 @helper(i32 %n) unnamed_addr #1 {
; call @UNUSED
  %1 = load ptr, ptr @vtable.1
}
define internal void @"odd name"() {
  %1 = load i32, ptr @COUNT.0
}
define void @of_hosts() {
  %1 = load i32, ptr @UNUSED
}
define ptx_kernel void @harmless(i32 %0) {
  %1 = load ptr, ptr @TABLE
  %2 = load ptr, ptr @celerity_record
}
"#;

    fn used(kernel: &str, libraries: &[PathBuf]) -> Result<(), String> {
        check_statics(&format!("{IR}{kernel}"), libraries).map_err(|error| error.to_string())
    }

    #[test]
    fn what_no_kernel_uses_may_change() {
        assert_eq!(used("", &[]), Ok(()));
    }

    #[test]
    fn a_variable_is_found_by_way_of_functions_and_data() {
        let kernel = "define ptx_kernel void @step() {\n  call fastcc i32 @helper(i32 1)\n}\n";
        let error = used(kernel, &[]).unwrap_err();
        assert!(error.contains("kernel `step`") && error.contains("uses COUNT.0"), "{error}");
    }

    #[test]
    fn of_a_variable_elsewhere_its_library_says_whether_it_changes() {
        let kernel = "define ptx_kernel void @step() {\n  %1 = load ptr, ptr @DIGITS\n}\n";
        let folder = std::env::temp_dir().join(format!("celerity-ir-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let libraries = [folder.clone()];
        fs::write(folder.join("core.ll"), "@DIGITS = constant ptr null\n").unwrap();
        assert_eq!(used(kernel, &libraries), Ok(()));
        fs::write(folder.join("other.ll"), "@DIGITS = global ptr null, align 8\n").unwrap();
        let error = used(kernel, &libraries).unwrap_err();
        assert!(error.contains("uses DIGITS"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
