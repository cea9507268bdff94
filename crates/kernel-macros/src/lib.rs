#![doc = include_str!("../README.md")]

mod entry;
mod expand;
mod forbid;
mod form;
mod instances;
mod parts;
mod plain;
mod ranges;
mod refused;
mod signature;
mod tokens;
mod told;
mod unroll;
mod views;
mod waits;

use proc_macro::TokenStream;

/// Makes a function a kernel that runs on hosts and devices.
///
/// See the [crate's documentation](crate) for what the function may look like and
/// what becomes of it.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, function: TokenStream) -> TokenStream {
    let function = proc_macro2::TokenStream::from(function);
    expand::kernel(attribute.into(), function.clone())
        .unwrap_or_else(|error| refused::refused(&error, function))
        .into()
}

/// Macros that end a thread, for `celerity_kernel::told`.
macro_rules! told {
    ($($here:ident: $name:literal;)*) => {$(
        #[doc = concat!("`", $name, "!` of `core`, whose numbers devices tell, too.")]
        #[proc_macro]
        pub fn $here(arguments: TokenStream) -> TokenStream {
            told::expand($name, arguments.into()).into()
        }
    )*};
}

told! {
    told_assert: "assert";
    told_assert_eq: "assert_eq";
    told_assert_ne: "assert_ne";
    told_debug_assert: "debug_assert";
    told_debug_assert_eq: "debug_assert_eq";
    told_debug_assert_ne: "debug_assert_ne";
    told_panic: "panic";
    told_todo: "todo";
    told_unimplemented: "unimplemented";
    told_unreachable: "unreachable";
}

/// Promises that a struct is plain old data, and makes sure of it: it is `#[repr(C)]` or
/// `#[repr(transparent)]`, its fields are plain, and there is no padding between or behind them.
/// It must be `Copy`, too.
///
/// Written in terms of the crate `celerity_kernel`, for crates of kernels.
#[proc_macro_derive(PlainData)]
pub fn plain_data(item: TokenStream) -> TokenStream {
    plain::derive(item.into(), "celerity_kernel")
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// The same in terms of the crate `celerity`, which gives it the name `PlainData`.
#[doc(hidden)]
#[proc_macro_derive(PlainDataOfFacade)]
pub fn plain_data_of_facade(item: TokenStream) -> TokenStream {
    plain::derive(item.into(), "celerity").unwrap_or_else(syn::Error::into_compile_error).into()
}
