//! What a kernel's body must not do and the compiler would say in words that help
//! nobody: talk, allocate, keep something for the next item, call itself. Looks at tokens, not at meaning; what it
//! misses, the device's compiler finds.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Error, Ident, Result};

/// # Errors
/// The first thing in `body` that a kernel cannot do.
pub(crate) fn check(name: &Ident, body: TokenStream) -> Result<()> {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => check(name, group.stream())?,
            TokenTree::Ident(word) => {
                let (before, after) = (at.checked_sub(1).map(|at| &tokens[at]), tokens.get(at + 1));
                if let Some(what) = complaint(name, word, before, after) {
                    return Err(Error::new(word.span(), format!("kernel `{name}` {what}")));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    Ok(())
}

fn complaint(
    name: &Ident,
    word: &Ident,
    before: Option<&TokenTree>,
    after: Option<&TokenTree>,
) -> Option<&'static str> {
    let called = matches!(after, Some(TokenTree::Group(_)));
    let is = |token: Option<&TokenTree>, mark| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    let member = is(before, '.') || is(before, ':');
    match word.to_string().as_str() {
        "print" | "println" | "eprint" | "eprintln" | "dbg" if is(after, '!') => Some(
            "cannot print: devices have no output; write to a buffer and print it in a host task",
        ),
        "vec" | "format" if is(after, '!') => {
            Some("cannot allocate: use an array, or a buffer that the task accesses")
        }
        "Vec" | "Box" | "String" | "Rc" | "Arc" if is(after, ':') => {
            Some("cannot allocate: use an array, or a buffer that the task accesses")
        }
        "static" if matches!(after, Some(TokenTree::Ident(word)) if word == "mut") => Some(
            "cannot have a `static mut`: each device would have one of its own, that no host sees; \
             put the data into a buffer that the task accesses, or pass it by value",
        ),
        "thread_local" if is(after, '!') => {
            Some("cannot have variables of threads: use variables of the kernel, or a buffer")
        }
        "std" if is(after, ':') => {
            Some("cannot use `std`, which devices lack: use `core`, and `celerity_kernel::math`")
        }
        _ if word == name && called && !member => {
            Some("calls itself: devices have small stacks; write a loop")
        }
        _ => None,
    }
}
