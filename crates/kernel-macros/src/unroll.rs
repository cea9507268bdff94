//! Loops over offsets, written out for hosts, and loops over lists of views, written out for all.
//!
//! LLVM unrolls a loop that looks at neighbours while the whole is small, which
//! some nine looks are. Beyond, each turn of each item finds out anew how far its offset goes, and nothing takes several
//! items at once: a step of D3Q19 took 2.7 times as long. Devices keep the loop, which their compiler unrolls by rules of
//! its own. Looks at tokens, not at meaning: what is called `at` need not be a neighbour, and unrolling it changes nothing.
//!
//! What a loop finds in a list by its variable is in memory of the thread while there is a loop, and in registers as soon as
//! there is none.

use std::ops::{Range, RangeInclusive};

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprBreak, ExprContinue, ExprForLoop, ExprIndex, ExprLoop, ExprMethodCall,
    ExprWhile, Ident, LitInt, Macro, Pat, parse_quote,
};

use crate::ranges::{constant, ends, turns};

/// So many looks at neighbours are left to LLVM …
const FEW_LOOKS: i64 = 8;

/// … and so are more than that, which would make kernels large.
const MOST_LOOKS: i64 = 64;

/// The same of looks at lists: twice at each view of a long one.
const MOST_LOOKS_AT_LISTS: i64 = 256;

/// What looks at a neighbour by its offset.
const METHODS: [&str; 3] = ["at", "clamped", "get"];

/// Macros that leave no loop, unless what they get does.
const KNOWN: [&str; 8] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "matches",
    "panic",
];

/// Writes out the loops with constant turns in which so many neighbours are looked at.
pub(crate) fn offsets(block: &mut Block) {
    FindNests { what: What::Neighbours }.visit_block_mut(block);
}

/// Writes out the loops with constant turns in which there are looks at views of lists, by the names of these.
pub(crate) fn lists(block: &mut Block, names: &[Ident]) {
    FindNests { what: What::Lists(names) }.visit_block_mut(block);
}

/// What is looked at.
#[derive(Clone, Copy)]
enum What<'a> {
    /// Neighbours of the item, by methods of these names.
    Neighbours,
    /// Views in the lists that are called so.
    Lists(&'a [Ident]),
}

impl What<'_> {
    /// How many looks loops are written out for.
    fn worthwhile(self) -> RangeInclusive<i64> {
        match self {
            Self::Neighbours => FEW_LOOKS + 1..=MOST_LOOKS,
            Self::Lists(_) => 1..=MOST_LOOKS_AT_LISTS,
        }
    }

    /// What takes the place of a loop whose turns are these. In no place of the kernel's: lints have nothing to say about
    /// these braces. Nor about what the last turn leaves for one that would follow.
    fn instead(self, nest: &Expr, turns: &Expr) -> Expr {
        let turns = quote!(#[allow(unused_assignments, unreachable_code)] #turns);
        match self {
            Self::Neighbours => parse_quote!({
                #[cfg(not(target_arch = "nvptx64"))]
                #turns
                #[cfg(target_arch = "nvptx64")]
                #nest
            }),
            Self::Lists(_) => parse_quote!({ #turns }),
        }
    }
}

struct FindNests<'a> {
    what: What<'a>,
}

impl VisitMut for FindNests<'_> {
    fn visit_expr_mut(&mut self, found: &mut Expr) {
        let Self { what } = *self;
        if let Expr::ForLoop(nest) = found
            && let Some(looks) = Looks::of(nest, what)
            && what.worthwhile().contains(&looks)
        {
            let mut turns = found.clone();
            WriteOut { what }.visit_expr_mut(&mut turns);
            *found = what.instead(found, &turns);
            return;
        }
        visit_mut::visit_expr_mut(self, found);
    }
}

/// The looks of some code, when all loops around them are written out.
struct Looks<'a> {
    what: What<'a>,
    count: i64,
    /// Whether a loop around one of them cannot be.
    is_bound: bool,
}

impl<'a> Looks<'a> {
    fn none(what: What<'a>) -> Self {
        Self { what, count: 0, is_bound: false }
    }

    /// Those of a loop that can be written out.
    fn of(nest: &mut ExprForLoop, what: What<'a>) -> Option<i64> {
        let mut looks = Self::none(what);
        looks.visit_expr_for_loop_mut(nest);
        (!looks.is_bound).then_some(looks.count)
    }

    /// Takes those of a loop's body in. A loop without any stays as it is, whatever it does.
    fn add(&mut self, body: &mut Block, turns: Option<i64>) {
        let mut inside = Self::none(self.what);
        inside.visit_block_mut(body);
        if inside.count > 0 {
            self.is_bound |= inside.is_bound || turns.is_none();
            self.count = inside.count.saturating_mul(turns.unwrap_or(1)).saturating_add(self.count);
        }
    }

    /// In what a macro gets nothing is looked for but ways out.
    fn visit_tokens(&mut self, tokens: &TokenStream) {
        for token in tokens.clone() {
            match token {
                TokenTree::Group(group) => self.visit_tokens(&group.stream()),
                TokenTree::Ident(word) => self.is_bound |= word == "break" || word == "continue",
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl VisitMut for Looks<'_> {
    fn visit_expr_method_call_mut(&mut self, found: &mut ExprMethodCall) {
        let is_look = || METHODS.iter().any(|method| found.method == method);
        self.count += i64::from(matches!(self.what, What::Neighbours) && is_look());
        visit_mut::visit_expr_method_call_mut(self, found);
    }

    fn visit_expr_index_mut(&mut self, found: &mut ExprIndex) {
        if let (What::Lists(names), Expr::Path(list)) = (self.what, &*found.expr) {
            self.count += i64::from(names.iter().any(|name| list.path.is_ident(name)));
        }
        visit_mut::visit_expr_index_mut(self, found);
    }

    fn visit_expr_for_loop_mut(&mut self, found: &mut ExprForLoop) {
        let turns = Turns::of(found).map(|turns| turns.count);
        self.add(&mut found.body, turns);
    }

    fn visit_expr_while_mut(&mut self, found: &mut ExprWhile) {
        self.add(&mut found.body, None);
    }

    fn visit_expr_loop_mut(&mut self, found: &mut ExprLoop) {
        self.add(&mut found.body, None);
    }

    /// A macro of the program's own may break out of the loop.
    fn visit_macro_mut(&mut self, found: &mut Macro) {
        self.is_bound |= !KNOWN.iter().any(|name| found.path.is_ident(name));
        self.visit_tokens(&found.tokens);
    }

    fn visit_expr_break_mut(&mut self, _: &mut ExprBreak) {
        self.is_bound = true;
    }

    fn visit_expr_continue_mut(&mut self, _: &mut ExprContinue) {
        self.is_bound = true;
    }
}

/// Writes out each loop around a look, of which [`Looks`] has said that it can be.
struct WriteOut<'a> {
    what: What<'a>,
}

impl VisitMut for WriteOut<'_> {
    fn visit_expr_mut(&mut self, found: &mut Expr) {
        if let Expr::ForLoop(nest) = found {
            if Looks::of(nest, self.what) == Some(0) {
                return;
            }
            if let Some(turns) = Turns::of(nest) {
                *found = turns.written_out(nest);
            }
        }
        visit_mut::visit_expr_mut(self, found);
    }
}

/// The values that a loop's variable takes, if they are written out and nothing is to be kept of the loop itself.
struct Turns {
    values: Range<i64>,
    count: i64,
    suffix: String,
}

impl Turns {
    fn of(nest: &ExprForLoop) -> Option<Self> {
        let ExprForLoop { attrs, label: None, pat, expr, .. } = nest else { return None };
        let [start, end] = ends(expr)?.map(constant);
        let (start, end) = (start?, end?);
        let is_name = matches!(&**pat, Pat::Ident(_) | Pat::Wild(_));
        let suffix = if start.suffix.is_empty() { end.suffix } else { start.suffix };
        (attrs.is_empty() && is_name).then(|| Self {
            values: start.value..end.value,
            count: turns(&start, &end).max(0),
            suffix: suffix.to_owned(),
        })
    }

    fn written_out(&self, nest: &ExprForLoop) -> Expr {
        let ExprForLoop { pat, body: Block { stmts, .. }, .. } = nest;
        let turns = self.values.clone().map(|value| {
            let digits = LitInt::new(&format!("{}{}", value.abs(), self.suffix), pat.span());
            let sign = (value < 0).then(|| quote!(-));
            // A constant that lints do not see: a turn that another one has gone out of the way of is no mistake.
            quote!({ let #pat = ::core::convert::identity(#sign #digits); #(#stmts)* })
        });
        parse_quote!({ #(#turns)* })
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens as _;

    use super::*;

    fn unrolled(code: &str) -> String {
        let mut block = syn::parse_str(code).unwrap();
        offsets(&mut block);
        block.to_token_stream().to_string().replace(' ', "")
    }

    /// What a loop becomes: `turns` for hosts, itself for devices.
    fn becomes(code: &str, turns: &str) {
        let expected = format!(
            "{{{{#[cfg(not(target_arch=\"nvptx64\"))]#[allow(unused_assignments,unreachable_code)]{{{turns}}}\
             #[cfg(target_arch=\"nvptx64\")]{code}}}}}"
        );
        assert_eq!(unrolled(&format!("{{ {code} }}")), expected.replace(' ', ""));
    }

    fn stays(code: &str) {
        assert_eq!(unrolled(code), code.replace(' ', ""));
    }

    /// `body` for each value of a variable.
    fn turns(name: &str, values: &[&str], body: impl Fn(&str) -> String) -> String {
        let turn = |value: &&str| {
            let body = body(value);
            let statements = body.strip_prefix('{').and_then(|body| body.strip_suffix('}'));
            format!("{{let{name}=::core::convert::identity({value});{}}}", statements.unwrap())
        };
        values.iter().map(turn).collect()
    }

    #[test]
    fn loops_of_many_looks_are_written_out() {
        let body = "{ sum += u.clamped([0, d]); }";
        let nine = ["-4", "-3", "-2", "-1", "0", "1", "2", "3", "4"];
        becomes(&format!("for d in -4..5 {body}"), &turns("d", &nine, |_| body.to_owned()));
        let typed = nine.map(|value| format!("{value}isize"));
        let typed = typed.each_ref().map(String::as_str);
        becomes(&format!("for d in -4..5isize {body}"), &turns("d", &typed, |_| body.to_owned()));
        becomes(&format!("for d in -4isize..5 {body}"), &turns("d", &typed, |_| body.to_owned()));
        // Looks are counted, not turns.
        let two = "{ f(u.at([r]), u.at([-r])); }";
        let five = ["1", "2", "3", "4", "5"];
        becomes(&format!("for mut r in 1..6 {two}"), &turns("mutr", &five, |_| two.to_owned()));
    }

    #[test]
    fn macros_that_leave_no_loop_do_not_matter() {
        let body = "{ assert!(matches!(f(d), 1 | 2)); g(u.at([d])); }";
        let nine = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
        becomes(&format!("for d in 0..9 {body}"), &turns("d", &nine, |_| body.to_owned()));
    }

    #[test]
    fn nests_are_written_out_as_a_whole_and_loops_without_looks_stay() {
        let body = "{ let v = u.get([y, x]); for k in 0..3 { if k == 2 { break; } f(v, k); } }";
        let three = ["0", "1", "2"];
        let inner = turns("x", &three, |_| body.to_owned());
        let code = format!("for y in 0..3 {{ for x in 0..3 {body} }}");
        becomes(&code, &turns("y", &three, |_| format!("{{{{{inner}}}}}")));
    }

    #[test]
    fn loops_that_are_no_nest_of_constant_turns_stay() {
        for code in [
            "{ for d in 0..8 { f(u.at([d])); } }",
            "{ for d in 0..65 { f(u.at([d])); } }",
            "{ for d in 0..n { f(u.at([d])); } }",
            "{ for d in offsets { f(u.at(d)); } }",
            "{ for d in 0..19 { f(d); } }",
            "{ for d in 0..19 { if f(d) { break; } g(u.at([d])); } }",
            "{ for d in 0..19 { if f(d) { continue; } g(u.at([d])); } }",
            "{ for d in 0..19 { while f(d) { g(u.at([d])); } } }",
            "{ for d in 0..19 { loop { g(u.at([d])); } } }",
            "{ for d in 0..19 { leave!(); g(u.at([d])); } }",
            "{ for d in 0..19 { assert!(f(d) || { break }); g(u.at([d])); } }",
            "{ 'all: for d in 0..19 { g(u.at([d])); } }",
            "{ #[allow(lint)] for d in 0..19 { g(u.at([d])); } }",
            "{ for i in 0..n { for d in 0..4 { g(u.at([d])); } } }",
        ] {
            stays(code);
        }
    }

    #[test]
    fn loops_over_lists_are_written_out_for_all() {
        let over = |code: &str| {
            let mut block = syn::parse_str(code).unwrap();
            lists(&mut block, &[syn::parse_quote!(from), syn::parse_quote!(to)]);
            block.to_token_stream().to_string().replace(' ', "")
        };
        let becomes = |code: &str, turns: &str| {
            let expected =
                format!("{{{{#[allow(unused_assignments,unreachable_code)]{{{turns}}}}}}}");
            assert_eq!(over(&format!("{{ {code} }}")), expected.replace(' ', ""));
        };
        let three = ["0", "1", "2"];
        for body in
            ["{ *to[k] = 1.0; }", "{ sum += *from[k] + to[k]; }", "{ f(from[2 - k].at([0])); }"]
        {
            becomes(&format!("for k in 0..3 {body}"), &turns("k", &three, |_| body.to_owned()));
        }
        for code in [
            "{ for k in 0..3 { f(others[k].at([0])); } }",
            "{ for k in 0..n { f(from[k]); } }",
            "{ for k in 0..257 { f(from[k]); } }",
            "{ for k in 0..3 { if f(from[k]) { break; } } }",
            "{ for view in from { f(view); } }",
        ] {
            assert_eq!(over(code), code.replace(' ', ""));
        }
    }

    #[test]
    fn what_is_around_a_nest_stays() {
        let code = unrolled("{ for i in 0..n { for d in 0..9 { g(u.at([d])); } } }");
        assert!(code.starts_with("{foriin0..n{{#[cfg("), "{code}");
        assert_eq!(code.matches("identity").count(), 9);
    }
}
