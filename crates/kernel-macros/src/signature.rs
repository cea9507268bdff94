//! What the function says, taken apart and checked: an item or a row, views,
//! values and local memory. Generates nothing.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{
    Attribute, Block, Error, FnArg, GenericArgument, Generics, Ident, ItemFn, LitInt, Pat,
    PathArguments, Result, ReturnType, Safety, Signature, Type, Visibility,
};

use crate::form::Form;
use crate::views::{Kind, Views};
use crate::{ranges, unroll, waits};

/// A kernel, understood.
pub(crate) struct ParsedKernel {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) form: Form,
    /// The number of dimensions, as written.
    pub(crate) dims: TokenStream,
    pub(crate) views: Views,
    /// What comes behind the views, in order.
    pub(crate) rest: Vec<ParsedParameter>,
    pub(crate) function: ItemFn,
    /// Whether there are no loops in it.
    pub(crate) is_short: bool,
    /// The body of an item of a group that [can be a future](crate::waits).
    pub(crate) future: Option<Block>,
}

/// A parameter behind the views.
pub(crate) struct ParsedParameter {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
}

impl ParsedKernel {
    /// What it takes by value, the lengths of slices of local memory among it.
    pub(crate) fn scalars(&self) -> impl Iterator<Item = &ParsedParameter> {
        self.rest.iter().filter(|parameter| parameter.kind != Kind::Array)
    }

    /// The local memory of one kind that it takes.
    pub(crate) fn locals(&self, kind: Kind) -> impl Iterator<Item = &ParsedParameter> {
        self.rest.iter().filter(move |parameter| parameter.kind == kind)
    }

    pub(crate) fn parse(mut function: ItemFn) -> Result<Self> {
        plain(&function.sig)?;
        let mut inputs = function.sig.inputs.iter();
        let (form, dims) = item(inputs.next(), &function.sig)?;
        let views = views(inputs.next(), form, &function.sig)?;
        let rest = inputs.map(|input| parameter(input, form)).collect::<Result<_>>()?;
        let lists = match function.sig.inputs.get(1) {
            Some(FnArg::Typed(parameter)) => views.names_of_lists(&parameter.pat),
            _ => Vec::new(),
        };
        if !lists.is_empty() {
            unroll::lists(&mut function.block, &lists);
        }
        if form == Form::Item && views.list.iter().any(|view| view.is_bordered) {
            unroll::offsets(&mut function.block);
        }
        // Loops of groups, through tiles and warps, are such as they were written for: counted, LLVM takes two turns at once, and
        // a product in tiles lost 3 % of its rate, bodies in double precision 2 %, and gained 5 % in single.
        let is_short = form != Form::Group && !ranges::count(&mut function.block);
        let future = match function.sig.inputs.first() {
            Some(FnArg::Typed(item)) if form == Form::Group => {
                waits::as_future(&item.pat, &function.block)
            }
            _ => None,
        };
        Ok(Self {
            attributes: function.attrs.clone(),
            visibility: function.vis.clone(),
            name: function.sig.ident.clone(),
            generics: function.sig.generics.clone(),
            form,
            dims,
            views,
            rest,
            function,
            is_short,
            future,
        })
    }
}

fn unsafety(safety: &Safety) -> Option<Span> {
    match safety {
        Safety::Unsafe(word) => Some(word.span()),
        Safety::Safe(word) => Some(word.span()),
        Safety::Default => None,
    }
}

/// A kernel is a plain function that returns nothing.
fn plain(signature: &Signature) -> Result<()> {
    let odd = [
        signature.constness.as_ref().map(Spanned::span),
        signature.asyncness.as_ref().map(Spanned::span),
        unsafety(&signature.safety),
        signature.abi.as_ref().map(Spanned::span),
        signature.variadic.as_ref().map(Spanned::span),
    ];
    if let Some(span) = odd.into_iter().flatten().next() {
        return Err(Error::new(
            span,
            "a kernel is a plain function: write `fn`, nothing before it",
        ));
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        let what = "a kernel has no lifetime parameters: write `&f32` or `'_` in its views";
        return Err(Error::new(lifetime.span(), what));
    }
    match &signature.output {
        ReturnType::Default => Ok(()),
        ReturnType::Type(_, ty) => {
            Err(Error::new(ty.span(), "a kernel returns nothing: write results through a view"))
        }
    }
}

const FIRST: &str = "the first parameter is where the kernel stands: `item: Item<2>`, \
                     `row: Row<2>` for a kernel over runs of items, or `item: NdItem<'_, 2>` for \
                     one over items in groups";

fn item(input: Option<&FnArg>, signature: &Signature) -> Result<(Form, TokenStream)> {
    let Some(input) = input else {
        return Err(Error::new(signature.paren_token.span.join(), FIRST));
    };
    let wrong = || Error::new(input.span(), FIRST);
    let FnArg::Typed(input) = input else { return Err(wrong()) };
    let Type::Path(path) = &*input.ty else { return Err(wrong()) };
    let last = path.path.segments.last().ok_or_else(wrong)?;
    let form = match last.ident.to_string().as_str() {
        "Item" => Form::Item,
        "Row" => Form::Row,
        "NdItem" => Form::Group,
        _ => return Err(wrong()),
    };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Err(wrong()) };
    let is_elided = |argument: &&GenericArgument| {
        form == Form::Group
            && matches!(argument, GenericArgument::Lifetime(lifetime) if lifetime.ident == "_")
    };
    let given: Vec<_> = arguments.args.iter().skip_while(is_elided).collect();
    match given[..] {
        [dims @ (GenericArgument::Const(_) | GenericArgument::Type(_))] => {
            let dims = dims.to_token_stream();
            few_dimensions(&dims)?;
            Ok((form, dims))
        }
        _ => Err(wrong()),
    }
}

/// Refuses numbers that are too large. What is no number is looked at where kernels are launched.
fn few_dimensions(dims: &TokenStream) -> Result<()> {
    let number = syn::parse2::<LitInt>(dims.clone()).and_then(|it| it.base10_parse::<usize>());
    match number {
        Ok(4..) => {
            let what = "index spaces have at most 3 dimensions: combine some of them into one";
            Err(Error::new(dims.span(), what))
        }
        _ => Ok(()),
    }
}

fn views(input: Option<&FnArg>, form: Form, signature: &Signature) -> Result<Views> {
    let Some(FnArg::Typed(input)) = input else {
        let what = "the second parameter holds the views, in the order of the accesses: \
                    `(out, a): (&mut f32, &f32)`, or `(): ()` without any";
        return Err(Error::new(signature.paren_token.span.join(), what));
    };
    Views::parse(&input.ty, form)
}

fn parameter(input: &FnArg, form: Form) -> Result<ParsedParameter> {
    let FnArg::Typed(input) = input else {
        return Err(Error::new(input.span(), "a kernel is no method: it has no `self`"));
    };
    let Pat::Ident(pattern) = &*input.pat else {
        let what = "what a kernel takes by value needs a name: take values apart in the body";
        return Err(Error::new(input.pat.span(), what));
    };
    if let Type::Reference(_) | Type::Ptr(_) | Type::Slice(_) = &*input.ty {
        let what = "a kernel takes numbers by value and everything else through an access: put \
                    the data into a buffer and add a view of it to the second parameter";
        return Err(Error::new(input.ty.span(), what));
    }
    if let Type::ImplTrait(_) | Type::FnPtr(_) | Type::TraitObject(_) = &*input.ty {
        let what = "a kernel takes no functions: devices have it compiled for them, so let it call one by \
                    name, or choose among several by a number";
        return Err(Error::new(input.ty.span(), what));
    }
    let kind = Kind::of(&input.ty)?;
    if kind != Kind::Value && form != Form::Group {
        let what = "only items in groups have local memory: take an `NdItem<'_, K>` first";
        return Err(Error::new(input.ty.span(), what));
    }
    Ok(ParsedParameter { name: pattern.ident.clone(), ty: (*input.ty).clone(), kind })
}
