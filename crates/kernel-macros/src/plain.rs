//! `#[derive(PlainData)]`: from a struct to the promise that it is plain old data, and to the checks
//! that make it true. Each check stands at the field that it is about.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Field, Ident, Item, ItemStruct, Meta, Result, Token, Type, parse2};

const LAYOUT: &str = "plain data has a layout that is the same for every compiler: add `#[repr(C)]` \
                      above the struct, or `#[repr(transparent)]` to one with a single field";

/// Expands `#[derive(PlainData)]` on `item`, in terms of the crate `root`.
///
/// # Errors
/// What is wrong with the struct, and what to write instead.
pub(crate) fn derive(item: TokenStream, root: &str) -> Result<TokenStream> {
    let item = structure(parse2(item)?)?;
    let root = Ident::new(root, Span::call_site());
    let name = &item.ident;
    let mut checks = TokenStream::new();
    let mut last = None;
    for (index, field) in item.fields.iter().enumerate() {
        checks.extend(check(&item, index, field));
        last = Some(field);
    }
    let Some(last) = last else {
        return Err(Error::new(name.span(), "plain data has at least one byte: add a field"));
    };
    let end = message(name, "at its end");
    let end = quote_spanned! { last.span() => assert!(size_of::<#name>() == end, #end); };
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            const fn is_plain<T: ::#root::PlainData>() -> usize {
                size_of::<T>()
            }
            let end = 0;
            #checks
            #end

            #[automatically_derived]
            unsafe impl ::#root::derived::Zeroable for #name {}

            #[automatically_derived]
            unsafe impl ::#root::derived::Pod for #name {}
        };
    })
}

/// Of a field: its type is plain, and it begins where the one before it ends.
fn check(item: &ItemStruct, index: usize, field: &Field) -> TokenStream {
    let (name, ty) = (&item.ident, &field.ty);
    let member = match &field.ident {
        Some(ident) => quote!(#ident),
        None => {
            let index = syn::Index::from(index);
            quote!(#index)
        }
    };
    let before = message(name, &format!("before its field `{member}`"));
    let begins = quote_spanned! { field.span() =>
        assert!(::core::mem::offset_of!(#name, #member) == end, #before);
    };
    let size = quote_spanned! { ty.span() => is_plain::<#ty>() };
    quote! {
        #begins
        let end = end + #size;
    }
}

fn message(name: &Ident, place: &str) -> String {
    format!(
        "`{name}` has padding {place}, and padding has no value: let fields with the larger \
         alignment come first, or add a field in its place, such as `padding: [u8; 4]`"
    )
}

/// A struct of which size and layout are known.
fn structure(item: Item) -> Result<ItemStruct> {
    let (span, what) = match item {
        Item::Struct(item) => return known(item),
        Item::Enum(item) => (
            item.enum_token.span,
            "an enum is not plain data, as some bits are none of its values: use a number, and \
             constants for its values",
        ),
        Item::Union(item) => (
            item.union_token.span,
            "a union is not plain data, as its bytes may be padding: use a struct, or an array of \
             bytes",
        ),
        other => (other.span(), "only structs are plain data"),
    };
    Err(Error::new(span, what))
}

fn known(item: ItemStruct) -> Result<ItemStruct> {
    if !item.generics.params.is_empty() {
        let what = "whether it has padding depends on what is put in for its parameters: derive \
                    `PlainData` for a struct without any";
        return Err(Error::new(item.generics.span(), what));
    }
    if let Some(field) = item.fields.iter().find(|field| has_pointer(&field.ty)) {
        let what = "an address means nothing to other nodes and devices: put the data itself into \
                    the struct, or into a buffer";
        return Err(Error::new(field.ty.span(), what));
    }
    match item.attrs.iter().any(fixes_layout) {
        true => Ok(item),
        false => Err(Error::new(item.ident.span(), LAYOUT)),
    }
}

fn has_pointer(ty: &Type) -> bool {
    matches!(ty, Type::Reference(_) | Type::Ptr(_) | Type::Slice(_))
}

/// Whether it is `#[repr(C)]` or `#[repr(transparent)]`, maybe with more.
fn fixes_layout(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let names = || {
        let parser = syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated;
        list.parse_args_with(parser).ok()
    };
    attribute.path().is_ident("repr")
        && names().is_some_and(|names| {
            names
                .iter()
                .any(|meta| meta.path().is_ident("C") || meta.path().is_ident("transparent"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(item: &str) -> String {
        derive(item.parse().expect("an item"), "celerity").unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_plain_says_what_to_write() {
        for (item, expected) in [
            ("struct A { x: f32 }", "#[repr(C)]"),
            ("#[repr(align(8))] struct A { x: f32 }", "#[repr(C)]"),
            ("#[derive(Clone)] #[repr(Rust)] struct A(f32);", "#[repr(C)]"),
            ("#[repr(C)] struct A;", "at least one byte"),
            ("#[repr(C)] struct A {}", "at least one byte"),
            ("#[repr(C)] struct A<T> { x: T }", "without any"),
            ("#[repr(C)] struct A<const N: usize> { x: [f32; N] }", "without any"),
            ("#[repr(C)] struct A { x: *mut f32 }", "an address"),
            ("#[repr(C)] struct A { x: &'static f32 }", "an address"),
            ("#[repr(u8)] enum A { B, C }", "use a number"),
            ("#[repr(C)] union A { x: f32, y: u32 }", "use a struct"),
        ] {
            let message = error(item);
            assert!(message.contains(expected), "{item}: {message}");
        }
    }

    #[test]
    fn every_field_is_checked_where_it_stands() {
        let item = "#[repr(C, align(8))] struct A { x: f32, y: [u16; 2] }";
        let code = derive(item.parse().unwrap(), "celerity_kernel").unwrap().to_string();
        for part in ["before its field `x`", "before its field `y`", "at its end", ":: PlainData"] {
            assert!(code.contains(part), "{part} is missing in {code}");
        }
        assert_eq!(code.matches(":: celerity_kernel :: derived").count(), 2, "{code}");
        let tuple = "#[repr(transparent)] struct A(f32);";
        assert!(derive(tuple.parse().unwrap(), "celerity").is_ok());
    }
}
