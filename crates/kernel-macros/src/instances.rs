//! The attribute's arguments: how a kernel computes, and which instances of a generic one there are.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{
    Error, GenericArgument, GenericParam, Generics, Ident, LitInt, Result, Token, parenthesized,
};

/// `fast`, `registers = 128` or `registers(wide = 64)`, `instances(f32, f64)`, in any order.
#[derive(Default)]
pub(crate) struct KernelOptions {
    /// Whether devices may fuse and approximate.
    pub(crate) is_fast: bool,
    /// How many registers a thread may have.
    pub(crate) registers: Option<Registers>,
    /// What stands in `instances((f32, 4), (f64, 8))`.
    list: Option<(Ident, TokenStream)>,
}

impl Parse for KernelOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            let is_new = match name.to_string().as_str() {
                "fast" => !std::mem::replace(&mut arguments.is_fast, true),
                "registers" => arguments.registers.replace(input.parse()?).is_none(),
                "instances" => {
                    let list;
                    parenthesized!(list in input);
                    arguments.list.replace((name.clone(), list.parse()?)).is_none()
                }
                _ => return Err(unknown(&name)),
            };
            if !is_new {
                return Err(Error::new(name.span(), format!("`{name}` stands here twice")));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn unknown(name: &Ident) -> Error {
    let what = format!(
        "`#[kernel]` does not know `{name}`: write `fast`, for fused and approximate arithmetic on \
         devices, `registers = 128`, for what a thread of a device may have, `registers(wide = 128)`, if \
         that is for rows that are neither narrow nor taken in stacks, or `instances(...)`, the instances of a generic kernel"
    );
    Error::new(name.span(), what)
}

/// How many registers a thread may have, by the rows that it is for.
pub(crate) struct Registers {
    pub(crate) wide: Option<u32>,
    pub(crate) narrow: Option<u32>,
    pub(crate) stacked: Option<u32>,
}

impl Parse for Registers {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(Paren) {
            input.parse::<Token![=]>()?;
            let all = Some(count(&input.parse()?)?);
            return Ok(Self { wide: all, narrow: all, stacked: all });
        }
        let limits;
        parenthesized!(limits in input);
        let mut of = Self { wide: None, narrow: None, stacked: None };
        for limit in Punctuated::<Limit, Token![,]>::parse_terminated(&limits)? {
            let place = match limit.rows.to_string().as_str() {
                "wide" => &mut of.wide,
                "narrow" => &mut of.narrow,
                "stacked" => &mut of.stacked,
                _ => {
                    let what = "rows are `wide`, `narrow` or `stacked`";
                    return Err(Error::new(limit.rows.span(), what));
                }
            };
            if place.replace(limit.count).is_some() {
                let what = format!("`{}` stands here twice", limit.rows);
                return Err(Error::new(limit.rows.span(), what));
            }
        }
        Ok(of)
    }
}

/// `wide = 64`.
struct Limit {
    rows: Ident,
    count: u32,
}

impl Parse for Limit {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let rows = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self { rows, count: count(&input.parse()?)? })
    }
}

/// So many have no meaning to the driver, or are what threads have at most anyway.
fn count(number: &LitInt) -> Result<u32> {
    match number.base10_parse()? {
        count @ 16..=255 => Ok(count),
        _ => Err(Error::new(number.span(), "a thread of a device has 16 to 255 registers")),
    }
}

/// One instance: what stands for each generic parameter.
pub(crate) struct Instance {
    /// `type T = f32;`, `const N: usize = 4;`
    pub(crate) aliases: TokenStream,
    /// What the instance's entry point has behind the kernel's name.
    pub(crate) suffix: String,
}

/// All instances of a kernel; a single one without aliases if it is not generic.
pub(crate) fn instances(
    arguments: &KernelOptions,
    name: &Ident,
    generics: &Generics,
) -> Result<Vec<Instance>> {
    let parameters: Vec<_> = generics.params.iter().collect();
    match (&arguments.list, parameters.is_empty()) {
        (None, true) => Ok(vec![Instance { aliases: TokenStream::new(), suffix: String::new() }]),
        (None, false) => Err(Error::new(
            name.span(),
            "a generic kernel is compiled for the instances that are listed: write \
             `#[kernel(instances(f32, f64))]`",
        )),
        (Some((word, _)), true) => {
            Err(Error::new(word.span(), "only a generic kernel has instances"))
        }
        (Some((_, list)), false) => {
            let parser = |input: ParseStream<'_>| assignments(input, parameters.len());
            let list = Parser::parse2(parser, list.clone())?;
            list.iter().map(|values| instance(&parameters, values)).collect()
        }
    }
}

fn assignments(input: ParseStream<'_>, parameters: usize) -> Result<Vec<Assignment>> {
    let mut list = Vec::new();
    while !input.is_empty() {
        list.push(Assignment::parse(input, parameters)?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(list)
}

/// A value for each generic parameter.
struct Assignment(Vec<GenericArgument>);

impl Assignment {
    fn parse(input: ParseStream<'_>, parameters: usize) -> Result<Self> {
        if parameters == 1 {
            return Ok(Self(vec![input.parse()?]));
        }
        let values;
        let parentheses = parenthesized!(values in input);
        let values = Punctuated::<GenericArgument, Token![,]>::parse_terminated(&values)?;
        if values.len() != parameters {
            let what = format!("the kernel has {parameters} generic parameters");
            return Err(Error::new(parentheses.span.join(), what));
        }
        Ok(Self(values.into_iter().collect()))
    }
}

fn instance(parameters: &[&GenericParam], values: &Assignment) -> Result<Instance> {
    let (mut aliases, mut suffix) = (TokenStream::new(), String::new());
    for (parameter, value) in parameters.iter().zip(&values.0) {
        aliases.extend(match parameter {
            GenericParam::Type(parameter) => {
                let name = &parameter.ident;
                quote!(type #name = #value;)
            }
            GenericParam::Const(parameter) => {
                let (name, ty) = (&parameter.ident, &parameter.ty);
                quote!(const #name: #ty = #value;)
            }
            GenericParam::Lifetime(parameter) => {
                return Err(Error::new(parameter.span(), "a kernel has no lifetime parameters"));
            }
        });
        suffix.push('_');
        suffix.extend(quote!(#value).to_string().chars().filter_map(in_name));
    }
    Ok(Instance { aliases, suffix })
}

/// A character as it may stand in the name of an entry point.
fn in_name(character: char) -> Option<char> {
    match character {
        ' ' => None,
        _ if character.is_ascii_alphanumeric() => Some(character),
        _ => Some('_'),
    }
}
