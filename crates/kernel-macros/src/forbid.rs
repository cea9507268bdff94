//! What a kernel's body must not do and the compiler would say in words that help
//! nobody: talk, allocate, keep something for the next item, call itself. Looks at tokens, not at meaning; what it
//! misses, the device's compiler finds.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{Error, Ident, ItemFn, PatIdent, Result};

use crate::tokens::{is_mark, is_word};

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

/// A kernel that takes nothing by value is a value of its name, which patterns compare with.
///
/// # Errors
/// If a parameter or variable is to have that name.
pub(crate) fn check_patterns(function: &ItemFn) -> Result<()> {
    let mut patterns = Patterns { name: &function.sig.ident, found: None };
    let mut function = function.clone();
    function.sig.inputs.iter_mut().for_each(|input| patterns.visit_fn_arg_mut(input));
    patterns.visit_block_mut(&mut function.block);
    let Patterns { name, found } = patterns;
    found.map_or(Ok(()), |found| {
        let what = "cannot have a parameter or variable of its own name, which stands for the \
                    kernel: call one of them otherwise";
        Err(Error::new(found.span(), format!("kernel `{name}` {what}")))
    })
}

struct Patterns<'k> {
    name: &'k Ident,
    found: Option<Ident>,
}

impl VisitMut for Patterns<'_> {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        if pattern.ident == *self.name {
            self.found.get_or_insert_with(|| pattern.ident.clone());
        }
        visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

fn complaint(
    name: &Ident,
    word: &Ident,
    before: Option<&TokenTree>,
    after: Option<&TokenTree>,
) -> Option<&'static str> {
    let called = matches!(after, Some(TokenTree::Group(_)));
    let is = |token: Option<&TokenTree>, mark| token.is_some_and(|token| is_mark(token, mark));
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
        "static" if after.is_some_and(|after| is_word(after, "mut")) => Some(
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
