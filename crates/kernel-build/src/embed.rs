//! What the crate of kernels includes: `celerity_module.rs`, an expression of type
//! `(&str, celerity_kernel::Code)`, the crate's name and its code, and files beside it.

use std::fs;

use crate::Script;
use crate::error::Error;

/// Writes compiled modules, in increasing order of architecture.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn modules(script: &Script, modules: &[(u32, String)]) -> Result<(), Error> {
    let mut list = String::new();
    for (architecture, ptx) in modules {
        let name = format!("kernels_{architecture}.ptx");
        let path = script.out.join(&name);
        fs::write(&path, ptx).map_err(Error::file(&path))?;
        list.push_str(&format!(
            "::celerity_kernel::Ptx {{ architecture: {architecture}, text: include_str!({name:?}) }},"
        ));
    }
    write(script, &format!("::celerity_kernel::Code::Ptx(&[{list}])"))
}

/// Writes a module without code, which says how to get some.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn missing(script: &Script, remedy: &str) -> Result<(), Error> {
    write(script, &format!("::celerity_kernel::Code::Missing({remedy:?})"))
}

fn write(script: &Script, code: &str) -> Result<(), Error> {
    let path = script.out.join("celerity_module.rs");
    let name = &script.package;
    let module = format!("({name:?}, {code})\n");
    fs::write(&path, module).map_err(Error::file(&path))
}
