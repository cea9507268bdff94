//! What stands for a kernel that is refused: the error, and nothing that draws others after it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, Signature};

/// The error, and somewhere a function with the kernel's parameters: what is imported for those is not
/// reported as unused above the error.
pub(crate) fn refused(error: &syn::Error, function: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    let Ok(ItemFn { sig, .. }) = syn::parse2(function) else { return error };
    let Signature { ident, generics, inputs, output, .. } = &sig;
    let bounds = &generics.where_clause;
    quote! {
        #error
        #[allow(unused)]
        const _: () = {
            fn #ident #generics(#inputs) #output #bounds {
                loop {}
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands_for(function: TokenStream) -> String {
        let error = syn::Error::new(proc_macro2::Span::call_site(), "no");
        refused(&error, function).to_string()
    }

    #[test]
    fn parameters_stay_and_the_body_goes() {
        let text = stands_for(quote! {
            pub fn scale<const D: usize>(_item: Item<D>, (x, by): (&mut f32, &f32)) where [(); D]: Sized {
                *x *= std::env::args().count() as f32;
            }
        });
        let expected = quote! {
            #[allow(unused)]
            const _: () = {
                fn scale<const D: usize>(_item: Item<D>, (x, by): (&mut f32, &f32)) where [(); D]: Sized {
                    loop {}
                }
            };
        };
        assert!(text.ends_with(&expected.to_string()), "{text}");
        assert!(text.contains("compile_error"));
    }

    #[test]
    fn what_is_no_function_is_an_error_alone() {
        let text = stands_for(quote! { struct Kernel; });
        assert!(text.contains("compile_error") && !text.contains("fn"), "{text}");
    }
}
