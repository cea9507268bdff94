//! `panic!`, `assert!` and their like, as devices take them: a text, and the numbers in it. What is not understood here is
//! left to the compiler, which says what is wrong with it, if anything is.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Block, Expr, ExprLit, File, Lit, LitStr, Token, parse_quote, parse2};

use crate::tokens::{is_mark, is_word};

/// Macros that end a thread, by the names that they have in `core` and in `celerity_kernel::told`.
const NAMES: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
];

/// Lets these macros in `block` be those of `celerity_kernel::told`.
pub(crate) fn take(block: &Block) -> syn::Result<Block> {
    parse2(taken(block.to_token_stream()))
}

fn taken(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut taken, mut at) = (TokenStream::new(), 0);
    while let Some(token) = tokens.get(at) {
        let next = at + constant(&tokens[at..]).unwrap_or(1);
        match token {
            TokenTree::Ident(name) if next == at + 1 && is_macro(&tokens, at) => {
                let path = quote!(::celerity_kernel::told::);
                let here = |mut token: TokenTree| {
                    token.set_span(name.span());
                    token
                };
                taken.extend(path.into_iter().map(here));
                taken.extend([token.clone()]);
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self::taken(group.stream()));
                inner.set_span(group.span());
                taken.extend([TokenTree::Group(inner)]);
            }
            _ => taken.extend(tokens[at..next].iter().cloned()),
        }
        at = next;
    }
    taken
}

/// Whether one of these macros is called at `at`, by its name alone: a path leads to a macro of its own.
fn is_macro(tokens: &[TokenTree], at: usize) -> bool {
    let is = |at: Option<usize>, mark| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| is_mark(token, mark))
    };
    let in_path = is(at.checked_sub(1), ':') && is(at.checked_sub(2), ':');
    let is_known = NAMES.iter().any(|name| is_word(&tokens[at], name));
    let is_called =
        is(Some(at + 1), '!') && matches!(tokens.get(at + 2), Some(TokenTree::Group(_)));
    is_known && is_called && !in_path
}

/// How many tokens are what a constant, a static or a function of constants begins with, up to its end or its body's. What the
/// compiler finds out cannot end a thread of a device.
fn constant(tokens: &[TokenTree]) -> Option<usize> {
    let [first, second, ..] = tokens else { return None };
    if !is_word(first, "const") && !is_word(first, "static") {
        return None;
    }
    let is_function = ["fn", "unsafe", "extern"].iter().any(|word| is_word(second, word));
    let is_block = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let end = match is_function || is_block(second) {
        true => tokens.iter().position(is_block),
        false => tokens.iter().position(|token| is_mark(token, ';')),
    };
    Some(end.map_or(tokens.len(), |end| end + 1))
}

/// What stands for the macro `name` with these arguments: for devices, if they are understood, and for hosts.
pub(crate) fn expand(name: &str, arguments: TokenStream) -> TokenStream {
    let in_core = Ident::new(name, Span::call_site());
    let host = quote!(::core::#in_core!(#arguments));
    match on_device(name, arguments) {
        Some(device) => quote!(::celerity_kernel::told_by!({ #device } { #host })),
        None => host,
    }
}

fn on_device(name: &str, arguments: TokenStream) -> Option<TokenStream> {
    if let Some(name) = name.strip_prefix("debug_") {
        let check = on_device(name, arguments)?;
        return Some(quote!(if ::core::cfg!(debug_assertions) { #check }));
    }
    let arguments: Vec<Argument> = Punctuated::<Argument, Token![,]>::parse_terminated
        .parse2(arguments)
        .ok()?
        .into_iter()
        .collect();
    let says = |before: &str, alone: &str| match &arguments[..] {
        [] => Some(Message::plain(alone)),
        message => Some(Message::parse(message)?.prefixed(before)),
    };
    match name {
        "panic" => Some(says("", "explicit panic")?.stop()),
        "todo" => Some(says("not yet implemented: ", "not yet implemented")?.stop()),
        "unimplemented" => Some(says("not implemented: ", "not implemented")?.stop()),
        "unreachable" => {
            let text = "internal error: entered unreachable code";
            Some(says(&format!("{text}: "), text)?.stop())
        }
        "assert" => {
            let (Argument { name: None, value }, message) = arguments.split_first()? else {
                return None;
            };
            let stop = match message {
                [] => Message::alone(format!("assertion failed: {}", written(value))),
                message => Message::parse(message)?.stop(),
            };
            Some(quote!(if !(#value) { #stop }))
        }
        "assert_eq" => compared(&arguments, "==", &quote!(==)),
        "assert_ne" => compared(&arguments, "!=", &quote!(!=)),
        _ => None,
    }
}

/// An expression on one line, as it would be written: its tokens have forgotten what stood between them.
fn written(expression: &Expr) -> String {
    let file: File = parse_quote!(const WRITTEN: bool = #expression;);
    let text = prettyplease::unparse(&file);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut line = lines.join(" ");
    if lines.len() > 1 {
        // What was put on lines of its own.
        for (apart, together) in [("( ", "("), (", )", ")"), ("[ ", "["), (", ]", "]"), (" .", ".")]
        {
            line = line.replace(apart, together);
        }
    }
    let line = line.trim_start_matches("const WRITTEN: bool =").trim_end_matches(';');
    line.trim().to_owned()
}

/// A comparison of the first two of `arguments`.
fn compared(arguments: &[Argument], sign: &str, operator: &TokenStream) -> Option<TokenStream> {
    let [Argument { name: None, value: left }, Argument { name: None, value: right }, message @ ..] =
        arguments
    else {
        return None;
    };
    let text = format!("assertion `left {sign} right` failed");
    let mut message = match message {
        [] => Message::plain(&text),
        message => Message::parse(message)?.prefixed(&format!("{text}: ")),
    };
    message.text.push_str("\n  left: {:?}\n right: {:?}");
    // The names are of this macro, not of the program.
    let [this, that] = ["left", "right"].map(|name| Ident::new(name, Span::mixed_site()));
    message.tell(quote!(*#this));
    message.tell(quote!(*#that));
    let stop = message.stop();
    Some(quote! {
        match (&(#left), &(#right)) {
            (#this, #that) => if !(*#this #operator *#that) { #stop },
        }
    })
}

/// `value`, or `name = value`.
struct Argument {
    name: Option<Ident>,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let is_named = input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if is_named { Some(input.parse()?) } else { None };
        if is_named {
            input.parse::<Token![=]>()?;
        }
        Ok(Self { name, value: input.parse()? })
    }
}

/// A text in the language of `format!`, each of whose `{:…}` stands for the next of what is told.
struct Message {
    text: String,
    /// Each is found out once, in this order.
    values: Vec<TokenStream>,
    /// Which of the values.
    told: Vec<usize>,
}

impl Message {
    /// A text with no values yet, and no braces.
    fn plain(text: &str) -> Self {
        Self { text: text.into(), values: Vec::new(), told: Vec::new() }
    }

    /// The text in the first argument, with values from others and from variables.
    fn parse(arguments: &[Argument]) -> Option<Self> {
        let (first, rest) = arguments.split_first()?;
        let Argument { name: None, value: Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) } =
            first
        else {
            return None;
        };
        let mut message = Self::plain("");
        message.values = rest.iter().map(|argument| argument.value.to_token_stream()).collect();
        let mut names: Vec<_> = rest.iter().map(|argument| argument.name.clone()).collect();
        let whole = literal.value();
        let (mut text, mut next) = (whole.as_str(), 0);
        while let Some(at) = text.find(['{', '}']) {
            message.text.push_str(&text[..at]);
            let (brace, behind) = text[at..].split_at(1);
            if let Some(behind) = behind.strip_prefix(brace) {
                message.text.push_str(&brace.repeat(2));
                text = behind;
                continue;
            }
            let (what, behind) = behind.split_once('}').filter(|_| brace == "{")?;
            let (what, spec) = what.split_once(':').unwrap_or((what, ""));
            let spec = spec.trim_end();
            if !is_told(spec) {
                return None;
            }
            message.text.push_str(&format!("{{{}{spec}}}", if spec.is_empty() { "" } else { ":" }));
            let told = match what.trim() {
                "" => {
                    next += 1;
                    next - 1
                }
                number if number.starts_with(|first: char| first.is_ascii_digit()) => {
                    number.parse().ok()?
                }
                name => message.named(name, &mut names, literal)?,
            };
            if told >= message.values.len() {
                return None;
            }
            message.told.push(told);
            text = behind;
        }
        message.text.push_str(text);
        Some(message)
    }

    /// Which value has this name: an argument's, or a variable's, which becomes a value.
    fn named(
        &mut self,
        name: &str,
        names: &mut Vec<Option<Ident>>,
        literal: &LitStr,
    ) -> Option<usize> {
        let is_it = |known: &Option<Ident>| known.as_ref().is_some_and(|known| known == name);
        if let Some(at) = names.iter().position(is_it) {
            return Some(at);
        }
        let mut variable: Ident = Ident::parse_any.parse_str(name).ok()?;
        variable.set_span(literal.span());
        self.values.push(variable.to_token_stream());
        names.push(Some(variable));
        Some(names.len() - 1)
    }

    /// Tells one more value at the end.
    fn tell(&mut self, value: TokenStream) {
        self.told.push(self.values.len());
        self.values.push(value);
    }

    fn prefixed(self, before: &str) -> Self {
        Self { text: format!("{before}{}", self.text), ..self }
    }

    /// What ends the thread with this text.
    fn alone(text: String) -> TokenStream {
        quote!(::celerity_kernel::device::stop_with(#text))
    }

    /// What ends the thread with it.
    fn stop(self) -> TokenStream {
        let Self { text, values, told } = self;
        if told.is_empty() {
            let text = text.replace("{{", "{").replace("}}", "}");
            return Self::alone(text);
        }
        let names: Vec<_> = (0..values.len())
            .map(|nth| Ident::new(&format!("value_{nth}"), Span::mixed_site()))
            .collect();
        let told = told.into_iter().map(|nth| &names[nth]);
        let teller = Ident::new("teller", Span::mixed_site());
        quote! {
            match (#(&(#values),)*) {
                (#(#names,)*) => ::celerity_kernel::device::stop_telling(#text, |#teller| {
                    use ::celerity_kernel::told::tell::*;
                    #((&&&&Telling(#told)).tell(#teller);)*
                }),
            }
        }
    }
}

/// Whether hosts can format what devices tell so: not to widths that are values, nor addresses.
fn is_told(spec: &str) -> bool {
    let mut chars = spec.chars();
    let behind_fill = match (chars.next(), chars.next()) {
        (Some(_), Some('<' | '^' | '>')) => chars.as_str(),
        _ => spec,
    };
    !behind_fill.contains('$') && !behind_fill.contains(".*") && !behind_fill.ends_with('p')
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    fn tokens(text: &str) -> TokenStream {
        TokenStream::from_str(text).unwrap()
    }

    fn device(name: &str, arguments: &str) -> Option<String> {
        on_device(name, tokens(arguments)).map(|device| device.to_string())
    }

    /// The text that a device leaves, and what it tells.
    fn told(arguments: &str) -> (String, String) {
        let parser = Punctuated::<Argument, Token![,]>::parse_terminated;
        let arguments: Vec<_> = parser.parse2(tokens(arguments)).unwrap().into_iter().collect();
        let Message { text, values, told } = Message::parse(&arguments).unwrap();
        let told: Vec<_> = told.into_iter().map(|nth| values[nth].to_string()).collect();
        (text, told.join(", "))
    }

    #[test]
    fn macros_are_taken_wherever_they_stand_and_paths_are_left_alone() {
        let block: Block = parse_quote!({
            assert!(x > 0, "no {x}");
            core::assert!(x > 0);
            let y = match x {
                0 => panic!("none"),
                _ => my::panic!("mine") + other!(unreachable!()),
            };
            const { assert!(N < 3) };
            const LEAST: usize = {
                assert!(N > 1);
                N
            };
            const fn half(x: usize) -> usize {
                assert!(x > 1);
                x / 2
            }
            let panic = y != 3;
            assert_eq!(panic, true);
            while todo != (3) && self.assert != [1] {
                let pair = Pair { a: panic!("{x}"), b };
            }
        });
        let expected = quote!({
            ::celerity_kernel::told::assert!(x > 0, "no {x}");
            core::assert!(x > 0);
            let y = match x {
                0 => ::celerity_kernel::told::panic!("none"),
                _ => my::panic!("mine") + other!(::celerity_kernel::told::unreachable!()),
            };
            const { assert!(N < 3) };
            const LEAST: usize = {
                assert!(N > 1);
                N
            };
            const fn half(x: usize) -> usize {
                assert!(x > 1);
                x / 2
            }
            let panic = y != 3;
            ::celerity_kernel::told::assert_eq!(panic, true);
            while todo != (3) && self.assert != [1] {
                let pair = Pair { a: ::celerity_kernel::told::panic!("{x}"), b };
            }
        });
        assert_eq!(take(&block).unwrap().to_token_stream().to_string(), expected.to_string());
    }

    #[test]
    fn placeholders_get_their_values_in_order() {
        let is = |text: &str, values: &str| (text.to_owned(), values.to_owned());
        assert_eq!(told(r#""none {{}}""#), is("none {{}}", ""));
        assert_eq!(told(r#""{} of {:5.2}", a + 1, b"#), is("{} of {:5.2}", "a + 1, b"));
        assert_eq!(
            told(r#""{1} {0:?} {x:#x} {y}", a, b, y = c"#),
            is("{} {:?} {:#x} {}", "b, a, x, c")
        );
        assert_eq!(told(r#""{{{}}}", a == b"#), is("{{{}}}", "a == b"));
        assert_eq!(
            told(r#""{self:?} {:*^8}{:$>3} {:5 }", a, b, c"#),
            is("{:?} {:*^8}{:$>3} {:5}", "self, a, b, c")
        );
    }

    #[test]
    fn values_are_found_out_once_and_in_the_order_of_arguments() {
        let device = device("panic", r#""{1} {0} {x} {1:?} {x}", a(), b()"#).unwrap();
        assert!(device.starts_with("match (& (a ()) , & (b ()) , & (x) ,) {"), "{device}");
        let told: Vec<_> = device.split("Telling (").skip(1).collect();
        let told: Vec<_> = told.iter().map(|it| it.split_once(')').unwrap().0).collect();
        assert_eq!(told, ["value_1", "value_0", "value_2", "value_1", "value_2"]);
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_compiler() {
        for arguments in [
            r#""{:1$} {}", a, b"#,
            r#""{:.*}", 3, a"#,
            r#""{:p}", a"#,
            r#""{}""#,
            r#""{ ""#,
            r#""}""#,
            r#"concat!("a", "b")"#,
            r#"text"#,
        ] {
            let arguments = tokens(arguments);
            assert_eq!(on_device("panic", arguments.clone()).map(|it| it.to_string()), None);
            let expected = quote!(::core::panic!(#arguments)).to_string();
            assert_eq!(expand("panic", arguments).to_string(), expected);
        }
        assert_eq!(device("assert", ""), None);
        assert_eq!(device("assert_eq", "a"), None);
        assert_eq!(device("assert_eq", "a, b, c"), None);
    }

    #[test]
    fn texts_are_those_of_core() {
        for (name, arguments, text) in [
            ("panic", "", "explicit panic"),
            ("panic", r#""a {{b}}""#, "a {b}"),
            ("todo", "", "not yet implemented"),
            ("todo", r#""a""#, "not yet implemented: a"),
            ("unimplemented", "", "not implemented"),
            ("unreachable", r#""{x}""#, "internal error: entered unreachable code: {}"),
            ("assert_eq", "a, b", r"assertion `left == right` failed\n  left: {:?}\n right: {:?}"),
            (
                "assert_ne",
                r#"a, b, "of {c}","#,
                r"assertion `left != right` failed: of {}\n  left: {:?}\n right: {:?}",
            ),
        ] {
            let device = device(name, arguments).unwrap();
            assert!(device.contains(&format!("\"{text}\"")), "{name}!({arguments}): {device}");
        }
        for (expression, text) in [
            ("* cell > 2.5 && of > 0", "*cell > 2.5 && of > 0"),
            ("! x.iter ( ) .any(|& x| x == - 1)", "!x.iter().any(|&x| x == -1)"),
            (
                "a [ i ] . b (c , & mut d) as u32 <= f :: < u32 > ( )",
                "a[i].b(c, &mut d) as u32 <= f::<u32>()",
            ),
            ("matches ! (x, 1 | 2)", "matches!(x, 1 | 2)"),
            (
                "first . checked_add ( second ) . and_then(|sum| sum . checked_mul ( third ) ) . is_some_and ( holds ) && b",
                "first.checked_add(second).and_then(|sum| sum.checked_mul(third)).is_some_and(holds) && b",
            ),
        ] {
            let check = device("assert", expression).unwrap();
            assert!(check.contains(&format!("(\"assertion failed: {text}\")")), "{check}");
        }
        assert!(device("debug_assert", "a").unwrap().starts_with("if :: core :: cfg"));
    }
}
