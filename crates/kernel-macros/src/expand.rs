//! From a kernel, understood, to what stands for it: a value, its implementation
//! for hosts, and an entry point for devices.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Generics, Ident, ItemFn, Lifetime, Result, Type, parse_quote, parse2};

use crate::forbid;
use crate::form::Form;
use crate::instances::{Arguments, Instance, instances};
use crate::signature::{Kernel, Parameter};
use crate::views::with_lifetime;

/// Expands `#[kernel(attribute)] function`.
///
/// # Errors
/// What is wrong with the function, and what to write instead.
pub(crate) fn kernel(attribute: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = parse2(attribute)?;
    let function: ItemFn = parse2(function)?;
    forbid::check(&function.sig.ident, function.block.to_token_stream())?;
    let kernel = Kernel::parse(function)?;
    let instances = instances(&arguments, &kernel.name, &kernel.generics)?;
    let parts = [value(&kernel), host(&kernel)]
        .into_iter()
        .chain(instances.iter().map(|instance| compiled(&kernel, instance)));
    Ok(parts.collect())
}

/// The value that is launched, with the function in it. Documentation stays with
/// the value, other attributes with the function.
fn value(kernel: &Kernel) -> TokenStream {
    let Kernel { attributes, visibility, name, generics, function, .. } = kernel;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let attributes = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let (names, types) = names_and_types(kernel);
    let docs: Vec<_> =
        names.iter().map(|scalar| format!("`{scalar}` of the kernel [`{name}`].")).collect();
    let marker = marker(generics);
    let (field, init) = match &marker {
        Some(ty) => (quote!(marker: #ty,), quote!(marker: ::core::marker::PhantomData,)),
        None => (TokenStream::new(), TokenStream::new()),
    };
    let (fields, build) = match names.is_empty() && marker.is_none() {
        true => (quote!(;), quote!(Self)),
        false => (
            quote!({ #(#[doc = #docs] pub #names: #types,)* #field }),
            quote!(Self { #(#names,)* #init }),
        ),
    };
    let mut call: ItemFn = function.clone();
    call.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    call.attrs.push(parse_quote!(#[inline(always)]));
    call.vis = syn::Visibility::Inherited;
    call.sig.ident = Ident::new("call", Span::call_site());
    call.sig.generics = Generics::default();
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name #impl_generics #where_clause #fields

        impl #impl_generics #name #type_generics #where_clause {
            /// The kernel with what it takes by value.
            #[must_use]
            #[allow(clippy::new_without_default, clippy::too_many_arguments)]
            pub const fn new(#(#names: #types),*) -> Self {
                #build
            }

            #[allow(clippy::inline_always, clippy::too_many_arguments)]
            #call
        }
    }
}

/// Something of the generic parameters' types, if there are any.
fn marker(generics: &Generics) -> Option<Type> {
    let types: Vec<_> = generics.type_params().map(|parameter| &parameter.ident).collect();
    let any = !generics.params.is_empty();
    any.then(|| parse_quote!(::core::marker::PhantomData<fn() -> (#(#types,)*)>))
}

/// How hosts run it, for all instances at once.
fn host(kernel: &Kernel) -> TokenStream {
    let Kernel { name, generics, dims, .. } = kernel;
    let lifetime = Lifetime::new("'views", Span::call_site());
    let views = views_with(kernel, &lifetime);
    let (_, type_generics, _) = generics.split_for_impl();
    let mut extended = generics.clone();
    extended.params.insert(0, parse_quote!(#lifetime));
    if !generics.params.is_empty() {
        let bounds = extended.make_where_clause();
        bounds.predicates.push(parse_quote!(#name #type_generics: ::celerity_kernel::Kernel));
    }
    let (impl_generics, _, where_clause) = extended.split_for_impl();
    let (kernel_trait, method, at, local) = match kernel.form {
        Form::Item => (quote!(ItemKernel), quote!(item), quote!(Item<{ #dims }>), None),
        Form::Row => (quote!(RowKernel), quote!(row), quote!(Row<{ #dims }>), None),
        Form::Group => {
            let local = quote!(local: ::celerity_kernel::LocalMemory<'_>);
            (quote!(GroupKernel), quote!(item), quote!(NdItem<'_, { #dims }>), Some(local))
        }
    };
    let described = quote!(<Self as ::celerity_kernel::Kernel>::DESCRIPTION.local);
    let rest = arguments(
        kernel,
        |scalar| quote!(self.#scalar),
        |index| quote!(local.array(::celerity_kernel::abi::local_offset(#described, #index))),
    );
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        impl #impl_generics ::celerity_kernel::#kernel_trait<{ #dims }, #views>
            for #name #type_generics #where_clause
        {
            #[inline]
            #[allow(unused_variables)]
            fn #method(&self, at: ::celerity_kernel::#at, views: #views, #local) {
                Self::call(at, views, #(#rest),*);
            }
        }
    }
}

/// What a kernel takes behind its views, in order: values by their names, and local
/// memory by its position among all of it.
fn arguments(
    kernel: &Kernel,
    scalar: impl Fn(&Ident) -> TokenStream,
    local: impl Fn(usize) -> TokenStream,
) -> Vec<TokenStream> {
    let mut locals = 0..;
    let argument = |parameter: &Parameter| match parameter.is_local {
        true => locals.next().map(&local),
        false => Some(scalar(&parameter.name)),
    };
    kernel.rest.iter().filter_map(argument).collect()
}

/// Names and types of what a kernel takes by value.
fn names_and_types(kernel: &Kernel) -> (Vec<&Ident>, Vec<&Type>) {
    kernel.scalars().map(|scalar| (&scalar.name, &scalar.ty)).unzip()
}

/// What there is once for each instance: its description, and its entry point.
fn compiled(kernel: &Kernel, instance: &Instance) -> TokenStream {
    let aliases = &instance.aliases;
    let entry_name = format!("{}{}", kernel.name, instance.suffix);
    let description = description(kernel, &entry_name);
    let entry = entry(kernel, &entry_name);
    quote! {
        const _: () = {
            #aliases
            #description
            #entry
        };
    }
}

fn description(kernel: &Kernel, entry: &str) -> TokenStream {
    let Kernel { name, generics, dims, form, .. } = kernel;
    let (_, type_generics, _) = generics.split_for_impl();
    let views = static_views(kernel);
    let form = match form {
        Form::Item => quote!(Item),
        Form::Row => quote!(Row),
        Form::Group => quote!(Group),
    };
    let (names, types) = names_and_types(kernel);
    let local = local_parameters(kernel);
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        impl ::celerity_kernel::Kernel for #name #type_generics {
            const DESCRIPTION: ::celerity_kernel::abi::Description =
                ::celerity_kernel::abi::Description {
                    name: stringify!(#name),
                    entry: #entry,
                    form: ::celerity_kernel::abi::Form::#form,
                    dims: #dims,
                    views: &[#(<#views as ::celerity_kernel::View<{ #dims }>>::PARAMETER),*],
                    scalars: &[
                        #(::celerity_kernel::abi::ScalarParameter::of::<#types>(stringify!(#names))),*
                    ],
                    local: #local,
                };

            fn module() -> &'static ::celerity_kernel::Module {
                &crate::MODULE
            }

            fn put_scalars(&self, sink: &mut dyn FnMut(&[u8], usize)) {
                let _ = &sink;
                #(::celerity_kernel::abi::Scalar::put(&self.#names, sink);)*
            }
        }
    }
}

/// The local memory of a kernel, described.
fn local_parameters(kernel: &Kernel) -> TokenStream {
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

/// The function that a device starts with: parameters in the order of the
/// calling convention, base addresses as references.
fn entry(kernel: &Kernel, entry_name: &str) -> TokenStream {
    let Kernel { name, generics, dims, .. } = kernel;
    let (_, type_generics, _) = generics.split_for_impl();
    let turbofish = type_generics.as_turbofish();
    let views = static_views(kernel);
    let number = |what: &str| -> Vec<Ident> {
        (0..views.len()).map(|index| format_ident!("{what}{index}")).collect()
    };
    let (pointers, blocks, states) = (number("pointer"), number("block"), number("state"));
    let made = quote!(#(<#views as ::celerity_kernel::View<{ #dims }>>::view(&mut #states)),*);
    let made = match (kernel.views.bare, views.len()) {
        (true, _) => made,
        (false, 1) => quote!((#made,)),
        (false, _) => quote!((#made)),
    };
    let (names, types) = names_and_types(kernel);
    let local = local_parameters(kernel);
    let rest = arguments(
        kernel,
        |scalar| quote!(#scalar),
        |index| {
            quote!(::celerity_kernel::Local::at(
                const { ::celerity_kernel::abi::local_offset(LOCAL, #index) }
            ))
        },
    );
    let run = run(kernel, |at| {
        quote!({
            #(
                // SAFETY: hosts start this by its calling convention.
                let mut #states = unsafe {
                    <#views as ::celerity_kernel::View<{ #dims }>>::state(
                        &mut #pointers, &#blocks, &place,
                    )
                };
            )*
            // SAFETY: one view of each state, and none outlives the call.
            let views = unsafe { #made };
            // SAFETY: launches have the local memory that the description says.
            unsafe { #name #turbofish::call(#at, views, #(#rest),*) };
        })
    });
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #[allow(
            unsafe_code, improper_ctypes_definitions, unused_mut, unused_unsafe, unused_variables,
            dead_code
        )]
        #[unsafe(export_name = #entry_name)]
        pub unsafe extern "ptx-kernel" fn entry(
            launch: ::celerity_kernel::abi::LaunchBlock,
            #(
                mut #pointers: <#views as ::celerity_kernel::View<{ #dims }>>::Pointer,
                #blocks: ::celerity_kernel::abi::AccessBlock,
            )*
            #(#names: #types),*
        ) {
            const BORDERED: bool = false #(|| matches!(
                <#views as ::celerity_kernel::View<{ #dims }>>::PARAMETER.kind,
                ::celerity_kernel::abi::ViewKind::Neighborhood
            ))*;
            const LOCAL: &[::celerity_kernel::abi::LocalParameter] = #local;
            #run
        }
    }
}

/// How a device runs `body` wherever the kernel stands, and what the kernel is called
/// with there.
fn run(kernel: &Kernel, body: impl FnOnce(TokenStream) -> TokenStream) -> TokenStream {
    let Kernel { name, dims, .. } = kernel;
    let run = quote!(::celerity_kernel::device::run::<{ #dims }>);
    match kernel.form {
        Form::Item => {
            let body = body(quote!(::celerity_kernel::Item::new(place.start, place.global)));
            quote!(#run(stringify!(#name), &launch, false, BORDERED, |place| #body);)
        }
        Form::Row => {
            let at = quote!(::celerity_kernel::Row::new(place.start, place.len, place.global));
            let body = body(at);
            quote!(#run(stringify!(#name), &launch, true, BORDERED, |place| #body);)
        }
        Form::Group => {
            let run = quote!(::celerity_kernel::device::run_groups::<{ #dims }>);
            let body = body(quote!(item));
            quote!(#run(stringify!(#name), &launch, |place, item| #body);)
        }
    }
}

/// The type of the second parameter.
fn views_with(kernel: &Kernel, lifetime: &Lifetime) -> TokenStream {
    let views = kernel.views.list.iter().map(|view| view.with_lifetime(lifetime));
    match kernel.views.bare {
        true => quote!(#(#views)*),
        false => quote!((#(#views,)*)),
    }
}

fn static_views(kernel: &Kernel) -> Vec<Type> {
    let lifetime = Lifetime::new("'static", Span::call_site());
    kernel.views.list.iter().map(|view| view.with_lifetime(&lifetime)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(attribute: TokenStream, function: TokenStream) -> String {
        kernel(attribute, function).expect_err("the kernel is wrong").to_string()
    }

    #[test]
    fn what_a_kernel_cannot_be_says_what_to_write() {
        for (function, expected) in [
            ("fn k() {}", "item: Item<2>"),
            ("fn k(i: usize, a: &f32) {}", "item: Item<2>"),
            ("fn k(item: Item<1>) {}", "second parameter holds the views"),
            ("fn k(item: Item<1>, a: f32) {}", "not a view"),
            ("fn k(item: Item<1>, a: &[f32]) {}", "take a `Row`"),
            ("fn k(row: Row<1>, a: &f32) {}", "slices, `&[T]`"),
            ("fn k(item: Item<1>, a: NeighborhoodRow<f32, 1>) {}", "`NeighborhoodItem`"),
            ("fn k(row: Row<1>, a: NeighborhoodItem<f32, 1>) {}", "`NeighborhoodRow`"),
            ("fn k(item: NdItem<'static, 1>, a: &f32) {}", "`item: NdItem<'_, 2>`"),
            ("fn k(item: NdItem<'_, 1>, a: &[f32]) {}", "take a `Row`"),
            (
                "fn k(item: Item<1>, a: &f32, tile: Local<'_, f32, 64>) {}",
                "take an `NdItem<'_, K>` first",
            ),
            ("fn k(item: Item<4>, a: &f32) {}", "at most 3 dimensions"),
            ("fn k(row: Row<5>, a: &[f32]) {}", "at most 3 dimensions"),
            ("fn k(item: NdItem<'_, 4>, a: &f32) {}", "at most 3 dimensions"),
            ("fn k<'a>(item: Item<1>, a: &'a f32) {}", "no lifetime parameters"),
            ("fn k(item: Item<1>, a: &'static f32) {}", "leave lifetimes out"),
            ("fn k(item: Item<1>, a: &f32, b: &f32) {}", "put the data into a buffer"),
            ("fn k(item: Item<1>, a: &f32, (x, y): [f32; 2]) {}", "needs a name"),
            ("fn k(item: Item<1>, a: &f32) -> f32 { 1.0 }", "returns nothing"),
            ("async fn k(item: Item<1>, a: &f32) {}", "plain function"),
            ("unsafe fn k(item: Item<1>, a: &f32) {}", "plain function"),
            ("fn k<T>(item: Item<1>, a: &T) {}", "instances(f32, f64)"),
        ] {
            let message = error(TokenStream::new(), function.parse().expect("a function"));
            assert!(message.contains(expected), "{function}: {message}");
        }
    }

    #[test]
    fn what_a_body_cannot_do_names_the_kernel() {
        for (body, expected) in [
            (quote!({ println!("{}", 1) }), "cannot print"),
            (
                quote!({
                    if true {
                        let v = vec![1];
                    }
                }),
                "cannot allocate",
            ),
            (
                quote!({
                    let b = Box::new(1);
                }),
                "cannot allocate",
            ),
            (
                quote!({
                    std::fs::read("x");
                }),
                "cannot use `std`",
            ),
            (quote!({ k(item, a) }), "calls itself"),
        ] {
            let message = error(TokenStream::new(), quote!(fn k(item: Item<1>, a: &f32) #body));
            assert!(message.starts_with("kernel `k`") && message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_method_or_macro_of_the_same_name_is_no_recursion() {
        let function = quote!(
            fn k(item: Item<1>, a: &f32) {
                a.k(1);
                other::k(2);
                k!(3);
            }
        );
        assert!(kernel(TokenStream::new(), function).is_ok());
    }

    #[test]
    fn instances_must_fit_the_generics() {
        let generic = quote!(
            fn k<T, const N: usize>(item: Item<1>, a: &mut T) {}
        );
        assert!(error(quote!(instances((f32))), generic.clone()).contains("2 generic parameters"));
        assert!(error(quote!(instance(f32)), generic).contains("knows only `instances"));
        let plain = quote!(
            fn k(item: Item<1>, a: &mut f32) {}
        );
        assert!(error(quote!(instances(f32)), plain).contains("only a generic kernel"));
    }

    #[test]
    fn documentation_stays_with_the_value_and_lints_with_the_function() {
        let function = quote!(
            /// Doubles.
            #[allow(clippy::some_lint)]
            fn k(item: Item<1>, a: &mut f32) {}
        );
        let code = kernel(TokenStream::new(), function).unwrap().to_string();
        let (value, rest) = code.split_once("struct k").unwrap();
        assert!(value.contains("Doubles") && !value.contains("some_lint"), "{value}");
        assert!(rest.contains("some_lint") && !rest.contains("Doubles"), "{rest}");
    }

    #[test]
    fn each_instance_has_an_entry_point_of_its_own() {
        let generic = quote!(
            fn k<T: Copy, const N: usize>(item: Item<1>, a: &mut T, b: [T; N]) {}
        );
        let code = kernel(quote!(instances((f32, 4), (u8, 2))), generic).unwrap().to_string();
        for entry in ["\"k_f32_4\"", "\"k_u8_2\""] {
            assert!(code.contains(&format!("export_name = {entry}")), "{code}");
        }
    }
}
