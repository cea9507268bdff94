//! What of a kernel the description, the host's side and the entry point have in common, as tokens.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Lifetime, Type};

use crate::signature::{ParsedKernel, ParsedParameter};
use crate::views::{ViewType, with_lifetime};

/// What a kernel takes behind its views, in order: values by their names, and local
/// memory by its position among all of it.
pub(crate) fn arguments(
    kernel: &ParsedKernel,
    scalar: impl Fn(&Ident) -> TokenStream,
    local: impl Fn(usize) -> TokenStream,
) -> Vec<TokenStream> {
    let mut locals = 0..;
    let argument = |parameter: &ParsedParameter| match parameter.is_local {
        true => locals.next().map(&local),
        false => Some(scalar(&parameter.name)),
    };
    kernel.rest.iter().filter_map(argument).collect()
}

/// Names and types of what a kernel takes by value.
pub(crate) fn names_and_types(kernel: &ParsedKernel) -> (Vec<&Ident>, Vec<&Type>) {
    kernel.scalars().map(|scalar| (&scalar.name, &scalar.ty)).unzip()
}

/// The local memory of a kernel, described.
pub(crate) fn local_parameters(kernel: &ParsedKernel) -> TokenStream {
    let lifetime = Lifetime::new("'static", Span::call_site());
    let names = kernel.locals().map(|local| &local.name);
    let types = kernel.locals().map(|local| with_lifetime(&local.ty, &lifetime));
    quote! {
        &[#(::celerity_kernel::abi::LocalParameter {
            name: stringify!(#names),
            bytes: <#types as ::celerity_kernel::LocalArray>::BYTES,
        }),*]
    }
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
