#![doc = include_str!("../README.md")]

mod entry;
mod expand;
mod forbid;
mod form;
mod instances;
mod parts;
mod signature;
mod views;

use proc_macro::TokenStream;

/// Makes a function a kernel that runs on hosts and devices.
///
/// See the [crate's documentation](crate) for what the function may look like and
/// what becomes of it.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, function: TokenStream) -> TokenStream {
    expand::kernel(attribute.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
