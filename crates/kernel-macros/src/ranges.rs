//! Loops over constant ranges that include their end, `for x in -1..=1`, as loops over ranges that do not, `for x in
//! -1..2`. An inclusive range keeps beside its two ends whether it is over, and LLVM unrolls a loop over one when
//! it has given up taking several items at once: means of 9 and 27 points, in loops over offsets, took 3.5 and 5 times
//! as long. Looks at tokens, not at meaning: no type of an integer may be left where the end was its last.
//!
//! And half-open ranges as what is counted on devices, whose compiler does not see how many turns such a loop has otherwise.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprCall, ExprForLoop, ExprLit, ExprLoop, ExprRange, ExprUnary, ExprWhile, Lit,
    LitInt, Path, RangeLimits, UnOp, parse_quote_spanned, parse2,
};

use crate::tokens::{is_mark, is_word};

/// Lets the loops over half-open ranges go through `celerity_kernel::counted`, which says why. Not those in the arguments of
/// other macros, which may look for a loop themselves. Says whether there may be loops, but for a few turns whose number is
/// written out: also where a function is called by its name alone, as one beside the kernel is.
pub(crate) fn count(block: &mut Block) -> bool {
    let mut loops = Loops { are_there: false };
    loops.visit_block_mut(block);
    loops.are_there
}

struct Loops {
    are_there: bool,
}

impl VisitMut for Loops {
    fn visit_expr_for_loop_mut(&mut self, found: &mut ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, found);
        let Some([start, end]) = ends(&found.expr) else {
            self.are_there = true;
            return;
        };
        let turns = constant(start).zip(constant(end)).map(|(start, end)| turns(&start, &end));
        self.are_there |= turns.is_none_or(|turns| turns > FEW_TURNS);
        let range = &found.expr;
        *found.expr = parse_quote_spanned!(range.span() => ::celerity_kernel::counted(#range));
    }

    fn visit_expr_call_mut(&mut self, found: &mut ExprCall) {
        self.are_there |=
            matches!(&*found.func, Expr::Path(function) if is_function(&function.path));
        visit_mut::visit_expr_call_mut(self, found);
    }

    fn visit_expr_while_mut(&mut self, found: &mut ExprWhile) {
        self.are_there = true;
        visit_mut::visit_expr_while_mut(self, found);
    }

    fn visit_expr_loop_mut(&mut self, found: &mut ExprLoop) {
        self.are_there = true;
        visit_mut::visit_expr_loop_mut(self, found);
    }
}

/// Whether a path is a name, and not that of a type.
fn is_function(path: &Path) -> bool {
    path.get_ident().is_some_and(|name| !name.to_string().starts_with(char::is_uppercase))
}

/// The ends of a half-open range.
pub(crate) fn ends(range: &Expr) -> Option<[&Expr; 2]> {
    match range {
        Expr::Range(ExprRange {
            start: Some(start),
            limits: RangeLimits::HalfOpen(_),
            end: Some(end),
            ..
        }) => Some([start, end]),
        _ => None,
    }
}

/// How many numbers are between the ends: less than 0 if these are the wrong way round.
pub(crate) fn turns(start: &Constant<'_>, end: &Constant<'_>) -> i64 {
    end.value.saturating_sub(start.value)
}

/// Turns of a loop that is as good as written out.
const FEW_TURNS: i64 = 8;

/// An end of a range: an integer that is written out, perhaps with a sign.
pub(crate) struct Constant<'a> {
    pub(crate) value: i64,
    /// Its type, if that is written out, too.
    pub(crate) suffix: &'a str,
}

pub(crate) fn constant(expression: &Expr) -> Option<Constant<'_>> {
    match expression {
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
            let Constant { value, suffix } = constant(expr)?;
            Some(Constant { value: -value, suffix })
        }
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => {
            Some(Constant { value: literal.base10_parse().ok()?, suffix: literal.suffix() })
        }
        _ => None,
    }
}

/// The largest end for which the next number is one of every integer type.
const LAST: i64 = i8::MAX as i64 - 1;

/// The same code with half-open loops.
pub(crate) fn half_open(code: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = code
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), half_open(group.stream()));
                inside.set_span(group.span());
                inside.into()
            }
            token => token,
        })
        .collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at], "in")
            && let Some((range, len)) = rewritten(&tokens[at + 1..])
        {
            tokens.splice(at + 1..=at + len, range);
        }
        at += 1;
    }
    tokens.into_iter().collect()
}

/// The half-open range for the inclusive one that `tokens` begin with, if a loop's body follows; and how many tokens that
/// was.
fn rewritten(tokens: &[TokenTree]) -> Option<(TokenStream, usize)> {
    let start = Integer::parse(tokens)?;
    let [first, second, equals, rest @ ..] = &tokens[start.tokens..] else { return None };
    let last = Integer::parse(rest)?;
    let is_range = is_mark(first, '.') && is_mark(second, '.') && is_mark(equals, '=');
    let is_loop = matches!(
        rest.get(last.tokens),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace
    );
    if !is_range || !is_loop || last.value > LAST {
        return None;
    }
    let kept = tokens[..start.tokens].iter().cloned().collect::<TokenStream>();
    let end = last.next();
    Some((quote!(#kept .. #end), start.tokens + 3 + last.tokens))
}

/// An integer that is written out, perhaps with a sign.
struct Integer {
    value: i64,
    literal: LitInt,
    tokens: usize,
}

impl Integer {
    /// The one that `tokens` begin with.
    fn parse(tokens: &[TokenTree]) -> Option<Self> {
        let is_negative = is_mark(tokens.first()?, '-');
        let literal = tokens.get(usize::from(is_negative))?.clone();
        let literal: LitInt = parse2(literal.into()).ok()?;
        let value: i64 = literal.base10_parse().ok()?;
        let value = if is_negative { -value } else { value };
        Some(Self { value, literal, tokens: usize::from(is_negative) + 1 })
    }

    /// The next one, of the same type.
    fn next(&self) -> TokenStream {
        let next = self.value + 1;
        let digits = format!("{}{}", next.abs(), self.literal.suffix());
        let digits = LitInt::new(&digits, self.literal.span());
        if next < 0 { quote!(-#digits) } else { quote!(#digits) }
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenStream, count, half_open, parse2};

    fn becomes(code: &str, expected: &str) {
        let expected: TokenStream = expected.parse().unwrap();
        assert_eq!(half_open(code.parse().unwrap()).to_string(), expected.to_string());
    }

    fn stays(code: &str) {
        becomes(code, code);
    }

    #[test]
    fn loops_over_constants_become_half_open() {
        becomes("for x in -1..=1 { f(x); }", "for x in -1..2 { f(x); }");
        becomes("for x in 0..=8_usize { f(x); }", "for x in 0..9usize { f(x); }");
        becomes("for x in -5..=-2 {}", "for x in -5.. -1 {}");
        becomes("for x in -5..=-1 {}", "for x in -5..0 {}");
        becomes("for x in 0x10..=0x1f {}", "for x in 0x10..32 {}");
    }

    #[test]
    fn loops_in_loops_are_found() {
        becomes(
            "{ for y in -1..=1 { for x in -2..=2 { f([y, x]); } } }",
            "{ for y in -1..2 { for x in -2..3 { f([y, x]); } } }",
        );
    }

    #[test]
    fn what_may_mean_something_else_stays() {
        // The end may be the last of its type.
        stays("for x in 0..=255 {}");
        stays("for x in 0..=127i8 {}");
        stays("for x in 0..=n {}");
        stays("for x in (0..=3).rev() {}");
        stays("match x { 0..=3 => f(), _ => {} }");
        stays("let range = 0..=3;");
        stays("for x in 0..3 {}");
        stays("for x in 0..=1 + 2 {}");
        becomes("for x in 0..=126 {}", "for x in 0..127 {}");
    }

    #[test]
    fn loops_over_ranges_are_counted() {
        assert!(count(&mut parse2("{ radiosity(x); }".parse().unwrap()).unwrap()));
        for short in ["{ f32::min(a, b); }", "{ Some(x); }", "{ x.map(|x| x + 1); }"] {
            assert!(!count(&mut parse2(short.parse().unwrap()).unwrap()), "{short}");
        }
        let counted = |code: &str| {
            let mut block = parse2(code.parse().unwrap()).unwrap();
            let are_there = count(&mut block);
            (quote::quote!(#block).to_string().replace(' ', ""), are_there)
        };
        let expected = |code: &str, loops| (code.replace(' ', ""), loops);
        let inner = "for j in ::celerity_kernel::counted(i..i + 4) { f(j); }";
        let outer = format!("{{ for i in ::celerity_kernel::counted(0..n) {{ {inner} }} }}");
        assert_eq!(
            counted("{ for i in 0..n { for j in i..i + 4 { f(j); } } }"),
            expected(&outer, true)
        );
        assert_eq!(
            counted("{ for i in -1..2 { sum += i; } }"),
            expected("{ for i in ::celerity_kernel::counted(-1..2) { sum += i; } }", false)
        );
        for others in [
            "{ for i in 0..=n {} }",
            "{ for i in (0..n).rev() {} }",
            "{ while f() {} }",
            "{ loop {} }",
        ] {
            assert_eq!(counted(others), expected(others, true));
        }
        let macros = "{ unrolled!(for i in 0..n {}); let range = 0..n; }";
        assert_eq!(counted(macros), expected(macros, false));
        assert!(counted("{ for i in 0..9 {} }").1);
    }
}
