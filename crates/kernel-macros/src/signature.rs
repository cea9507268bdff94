//! What the function says, taken apart and checked: an item or a row, views, and
//! values. Generates nothing.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Generics, Ident, ItemFn, Pat, PathArguments, Result,
    ReturnType, Safety, Signature, Type, Visibility,
};

use crate::views::View;

/// A kernel, understood.
pub(crate) struct Kernel {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) form: Form,
    /// The number of dimensions, as written.
    pub(crate) dims: TokenStream,
    pub(crate) views: Views,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) function: ItemFn,
}

/// Whether a kernel is called with items or with rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Item,
    Row,
}

/// The second parameter.
pub(crate) struct Views {
    pub(crate) list: Vec<View>,
    /// Whether it is a single view, not in a tuple.
    pub(crate) bare: bool,
}

/// A parameter that is taken by value.
pub(crate) struct Scalar {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl Kernel {
    pub(crate) fn parse(function: ItemFn) -> Result<Self> {
        plain(&function.sig)?;
        let mut inputs = function.sig.inputs.iter();
        let (form, dims) = item(inputs.next(), &function.sig)?;
        let views = views(inputs.next(), form, &function.sig)?;
        let scalars = inputs.map(scalar).collect::<Result<_>>()?;
        Ok(Self {
            attributes: function.attrs.clone(),
            visibility: function.vis.clone(),
            name: function.sig.ident.clone(),
            generics: function.sig.generics.clone(),
            form,
            dims,
            views,
            scalars,
            function,
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

const FIRST: &str = "the first parameter is where the kernel stands: `item: Item<2>`, or \
                     `row: Row<2>` for a kernel over runs of items";

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
        _ => return Err(wrong()),
    };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Err(wrong()) };
    match (arguments.args.first(), arguments.args.len()) {
        (Some(dims @ (GenericArgument::Const(_) | GenericArgument::Type(_))), 1) => {
            Ok((form, dims.to_token_stream()))
        }
        _ => Err(wrong()),
    }
}

fn views(input: Option<&FnArg>, form: Form, signature: &Signature) -> Result<Views> {
    let Some(FnArg::Typed(input)) = input else {
        let what = "the second parameter holds the views, in the order of the accesses: \
                    `(out, a): (&mut f32, &f32)`, or `(): ()` without any";
        return Err(Error::new(signature.paren_token.span.join(), what));
    };
    let Type::Tuple(tuple) = &*input.ty else {
        return Ok(Views { list: vec![View::parse(&input.ty, form)?], bare: true });
    };
    if tuple.elems.len() > 8 {
        return Err(Error::new(tuple.span(), "a kernel has at most eight views"));
    }
    let list = tuple.elems.iter().map(|ty| View::parse(ty, form)).collect::<Result<_>>()?;
    Ok(Views { list, bare: false })
}

fn scalar(input: &FnArg) -> Result<Scalar> {
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
    Ok(Scalar { name: pattern.ident.clone(), ty: (*input.ty).clone() })
}
