//! What of a kernel the description, the host's side and the entry point have in common, as tokens.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Lifetime, Type, parse_quote};

use crate::signature::{ParsedKernel, ParsedParameter};
use crate::views::{Kind, ViewType, with_lifetime};

/// What a kernel takes behind its views, in order: values by their names, arrays of local memory by their
/// position among all of them, and slices of it by where they begin behind all arrays, and their lengths.
pub(crate) fn arguments(
    kernel: &ParsedKernel,
    scalar: impl Fn(&Ident) -> TokenStream,
    array: impl Fn(usize) -> TokenStream,
    slice: impl Fn(TokenStream, TokenStream) -> TokenStream,
) -> Vec<TokenStream> {
    let (mut arrays, mut slices) = (0.., Vec::new());
    let argument = |ParsedParameter { name, ty, kind }: &ParsedParameter| match kind {
        Kind::Value => Some(scalar(name)),
        Kind::Array => arrays.next().map(&array),
        Kind::Slice => {
            let start = quote!(::celerity_kernel::abi::slices_bytes(&[#(#slices),*]));
            slices.push(len_and_size(&scalar(name), ty));
            Some(slice(start, scalar(name)))
        }
    };
    kernel.rest.iter().filter_map(argument).collect()
}

/// A slice of local memory as `abi::slices_bytes` takes it.
fn len_and_size(len: &TokenStream, ty: &Type) -> TokenStream {
    let ty = with_lifetime(ty, &Lifetime::new("'static", Span::call_site()));
    quote!((#len, <#ty as ::celerity_kernel::LocalValues>::SIZE))
}

/// Names and types of what a kernel takes by value.
pub(crate) fn names_and_types(kernel: &ParsedKernel) -> (Vec<&Ident>, Vec<Type>) {
    let scalars = kernel.scalars().map(|ParsedParameter { name, ty, kind }| match kind {
        Kind::Slice => (name, parse_quote!(usize)),
        Kind::Value | Kind::Array => (name, ty.clone()),
    });
    scalars.unzip()
}

/// The arrays of local memory of a kernel, described.
pub(crate) fn local_parameters(kernel: &ParsedKernel) -> TokenStream {
    let lifetime = Lifetime::new("'static", Span::call_site());
    let names = kernel.locals(Kind::Array).map(|local| &local.name);
    let types = kernel.locals(Kind::Array).map(|local| with_lifetime(&local.ty, &lifetime));
    quote! {
        &[#(::celerity_kernel::abi::LocalParameter {
            name: stringify!(#names),
            bytes: <#types as ::celerity_kernel::LocalArray>::BYTES,
        }),*]
    }
}

/// How a kernel says how much its slices of local memory take, if it has some.
pub(crate) fn slice_bytes(kernel: &ParsedKernel) -> Option<TokenStream> {
    let slices = kernel.locals(Kind::Slice);
    let slices =
        slices.map(|ParsedParameter { name, ty, .. }| len_and_size(&quote!(self.#name), ty));
    let slices: Vec<_> = slices.collect();
    (!slices.is_empty()).then(|| {
        quote! {
            fn slice_bytes(&self) -> usize {
                ::celerity_kernel::abi::slices_bytes(&[#(#slices),*])
            }
        }
    })
}

/// Each view as the trait that says how it is called in a signature.
pub(crate) fn view_traits(kernel: &ParsedKernel) -> Vec<TokenStream> {
    let (lifetime, dims) = (Lifetime::new("'static", Span::call_site()), &kernel.dims);
    let view = |view: &ViewType| {
        let ty = view.with_lifetime(&lifetime);
        match view.reduces {
            true => quote!(<#ty as ::celerity_kernel::Reduction>),
            false => quote!(<#ty as ::celerity_kernel::View<{ #dims }>>),
        }
    };
    kernel.views.list.iter().map(view).collect()
}
