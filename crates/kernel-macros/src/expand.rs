//! From a kernel, understood, to what stands for it: a value, its implementation
//! for hosts, and an entry point for devices.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, Ident, ItemFn, Lifetime, Result, Type, parse_quote, parse2};

use crate::entry::{self, EntryKind};
use crate::form::Form;
use crate::instances::{Instance, KernelOptions, instances};
use crate::parts::{arguments, local_parameters, names_and_types, slice_bytes, view_traits};
use crate::signature::{ParsedKernel, ParsedParameter};
use crate::views::Kind;
use crate::{forbid, ranges, told};

/// Expands `#[kernel(attribute)] function`.
///
/// # Errors
/// What is wrong with the function, and what to write instead.
pub(crate) fn kernel(attribute: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments: KernelOptions = parse2(attribute)?;
    let mut function: ItemFn = parse2(function)?;
    let body = function.block.to_token_stream();
    forbid::check(&function.sig.ident, body.clone())?;
    function.block = parse2(ranges::half_open(body))?;
    let mut kernel = ParsedKernel::parse(function)?;
    *kernel.function.block = told::take(&kernel.function.block)?;
    if kernel.scalars().next().is_none() && marker(&kernel).is_none() {
        forbid::check_patterns(&kernel.function)?;
    }
    let instances = instances(&arguments, &kernel.name, &kernel.generics)?;
    let parts = [value(&kernel), host(&kernel)]
        .into_iter()
        .chain(instances.iter().map(|instance| compiled(&kernel, instance, &arguments)));
    Ok(parts.collect())
}

/// The value that is launched, with the function in it. Documentation stays with
/// the value, other attributes with the function.
fn value(kernel: &ParsedKernel) -> TokenStream {
    let ParsedKernel { attributes, visibility, name, generics, function, .. } = kernel;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let attributes = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let (names, types) = names_and_types(kernel);
    let docs = kernel.scalars().map(|ParsedParameter { name: scalar, kind, .. }| match kind {
        Kind::Slice => {
            format!("How many values `{scalar}` of the kernel [`{name}`] has, for each group.")
        }
        Kind::Value | Kind::Array => format!("`{scalar}` of the kernel [`{name}`]."),
    });
    let docs: Vec<_> = docs.collect();
    let marker = marker(kernel);
    let (field, init) = match &marker {
        Some(ty) => (quote!(made_by_new: #ty,), quote!(made_by_new: ::core::marker::PhantomData,)),
        None => (TokenStream::new(), TokenStream::new()),
    };
    let (fields, build) = match names.is_empty() && marker.is_none() {
        true => (quote!(;), quote!(Self)),
        false => (
            quote!({ #(#[doc = #docs] pub #names: #types,)* #field }),
            quote!(Self { #(#names,)* #init }),
        ),
    };
    let by_value = by_value(kernel);
    let mut call: ItemFn = function.clone();
    call.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    call.attrs.push(parse_quote!(#[inline(always)]));
    call.vis = syn::Visibility::Inherited;
    call.sig.ident = Ident::new("call", Span::call_site());
    call.sig.generics = Generics::default();
    let call = on_hosts_too(kernel, call);
    quote! {
        #by_value

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

            #call
        }
    }
}

/// The function, and for hosts what is a future in its place, if that is something else.
fn on_hosts_too(kernel: &ParsedKernel, call: ItemFn) -> TokenStream {
    let allowed = quote! {
        #[allow(
            clippy::inline_always, clippy::too_many_arguments, clippy::type_complexity,
            clippy::unused_async
        )]
    };
    let Some(body) = &kernel.future else {
        let call = kernel.views.taken_one_by_one(call);
        return quote!(#allowed #call);
    };
    let mut future = call.clone();
    future.sig.asyncness = Some(parse_quote!(async));
    *future.block = body.clone();
    let [call, future] = [call, future].map(|function| kernel.views.taken_one_by_one(function));
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #allowed
        #call

        #[cfg(not(target_arch = "nvptx64"))]
        #allowed
        #future
    }
}

/// Refuses what cannot be taken by value, each type where it stands. Types that name a generic
/// parameter are looked at in the description of each instance.
fn by_value(kernel: &ParsedKernel) -> TokenStream {
    let parameters: Vec<_> = kernel.generics.params.iter().map(parameter_name).collect();
    let concrete = names_and_types(kernel).1.into_iter().filter(|ty| !mentions(ty, &parameters));
    concrete
        .map(|ty| {
            quote_spanned! { ty.span() =>
                const _: Option<::celerity_kernel::ByValue<#ty>> = None;
            }
        })
        .collect()
}

/// Something of the type parameters that no value is made of, if there are any: such a value can be
/// made by `new` alone, which the field's name says wherever the compiler complains about it.
fn marker(kernel: &ParsedKernel) -> Option<Type> {
    let values = names_and_types(kernel).1;
    let types = kernel.generics.type_params().map(|parameter| &parameter.ident);
    let unused = types.filter(|name| !values.iter().any(|ty| mentions(ty, &[*name])));
    let unused: Vec<_> = unused.collect();
    (!unused.is_empty()).then(|| parse_quote!(::core::marker::PhantomData<fn() -> (#(#unused,)*)>))
}

fn parameter_name(parameter: &GenericParam) -> &Ident {
    match parameter {
        GenericParam::Type(parameter) => &parameter.ident,
        GenericParam::Const(parameter) => &parameter.ident,
        GenericParam::Lifetime(parameter) => &parameter.lifetime.ident,
    }
}

/// Whether one of the names occurs in a type.
fn mentions(ty: &Type, names: &[&Ident]) -> bool {
    fn any(tokens: TokenStream, names: &[&Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => any(group.stream(), names),
            TokenTree::Ident(ident) => names.contains(&&ident),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    any(ty.to_token_stream(), names)
}

/// How hosts run it, for all instances at once.
fn host(kernel: &ParsedKernel) -> TokenStream {
    let ParsedKernel { name, generics, dims, .. } = kernel;
    let lifetime = Lifetime::new("'__views", Span::call_site());
    let views = kernel.views.ty(&lifetime);
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
            let local = quote!(__local: ::celerity_kernel::LocalMemory<'_>);
            (quote!(GroupKernel), quote!(item), quote!(NdItem<'_, { #dims }>), Some(local))
        }
    };
    let described = quote!(<Self as ::celerity_kernel::Kernel>::DESCRIPTION);
    let rest = arguments(
        kernel,
        |scalar| quote!(self.#scalar),
        |index| quote!(__local.array(::celerity_kernel::abi::local_offset(#described.local, #index))),
        |start, len| quote!(__local.slice(#described.local_bytes().saturating_add(#start), #len)),
    );
    let form = form_type(kernel.form);
    let taken = kernel.views.one_by_one(&quote!(__views));
    let call = quote!(Self::call(__at, #taken, #(#rest),*));
    let (needs_stack, output, run) = match (kernel.form, &kernel.future) {
        (Form::Item | Form::Row, _) => (None, None, quote!(#call;)),
        (Form::Group, future) => {
            let needs_stack = future.is_none();
            let run = if needs_stack { quote!(async move { #call }) } else { call };
            let needs_stack = quote!(const NEEDS_STACK: bool = #needs_stack;);
            (Some(needs_stack), Some(quote!(-> impl ::core::future::Future<Output = ()>)), run)
        }
    };
    let (of_all, _, where_all) = generics.split_for_impl();
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        impl #of_all ::celerity_kernel::KernelForm for #name #type_generics #where_all {
            type Form = #form;
        }

        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl #impl_generics ::celerity_kernel::#kernel_trait<{ #dims }, #views>
            for #name #type_generics #where_clause
        {
            #needs_stack

            #[inline(always)]
            #[allow(unused_variables, clippy::inline_always)]
            fn #method(&self, __at: ::celerity_kernel::#at, __views: #views, #local) #output {
                #run
            }
        }
    }
}

/// What there is once for each instance: its description, and its entry points.
fn compiled(kernel: &ParsedKernel, instance: &Instance, arguments: &KernelOptions) -> TokenStream {
    let aliases = &instance.aliases;
    let entry_name = format!("{}{}", kernel.name, instance.suffix);
    let description = description(kernel, &entry_name);
    let entry = entry::entry(kernel, &entry_name, EntryKind::Plain, arguments);
    let others = EntryKind::OTHERS.into_iter().filter_map(|entry_kind| {
        let name = entry::other_name(kernel, &entry_name, entry_kind)?;
        let entry = entry::entry(kernel, &name, entry_kind, arguments);
        Some(quote!(const _: () = { #entry };))
    });
    quote! {
        const _: () = {
            #aliases
            #description
            #entry
            #(#others)*
        };
    }
}

fn description(kernel: &ParsedKernel, entry: &str) -> TokenStream {
    let ParsedKernel { name, generics, dims, form, is_short, .. } = kernel;
    let (_, type_generics, _) = generics.split_for_impl();
    let views = view_traits(kernel);
    let form = match form {
        Form::Item => quote!(Item),
        Form::Row => quote!(Row),
        Form::Group => quote!(Group),
    };
    let (names, types) = names_and_types(kernel);
    let (local, slice_bytes) = (local_parameters(kernel), slice_bytes(kernel));
    let firsts = if kernel.views.have_lists() { kernel.views.firsts() } else { Vec::new() };
    let [narrow, stacked, apart] = EntryKind::OTHERS.map(|entry_kind| {
        let Some(name) = entry::other_name(kernel, entry, entry_kind) else { return quote!(None) };
        let entry_kind = entry_kind.path();
        quote!({
            let traversal = ::celerity_kernel::abi::traversal(
                #entry_kind, ::celerity_kernel::abi::Form::#form, &[#(#views::PARAMETER),*]
            );
            if traversal.is_some() { Some(#name) } else { None }
        })
    });
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl ::celerity_kernel::Kernel for #name #type_generics {
            const DESCRIPTION: ::celerity_kernel::abi::Description =
                ::celerity_kernel::abi::Description {
                    name: stringify!(#name),
                    entry: #entry,
                    narrow_entry: #narrow,
                    stacked_entry: #stacked,
                    apart_entry: #apart,
                    takes_steps: ::celerity_kernel::abi::takes_steps(
                        ::celerity_kernel::abi::Form::#form, &[#(#views::PARAMETER),*], #is_short
                    ),
                    form: ::celerity_kernel::abi::Form::#form,
                    dims: #dims,
                    views: &[#(#views::PARAMETER),*],
                    firsts: &[#(#firsts),*],
                    scalars: &[
                        #(::celerity_kernel::abi::ScalarParameter::of::<#types>(stringify!(#names))),*
                    ],
                    local: #local,
                };

            fn module() -> &'static ::celerity_kernel::Module {
                &crate::MODULE
            }

            fn put_scalars(&self, __sink: &mut dyn FnMut(&[u8], usize)) {
                let _ = &__sink;
                #(::celerity_kernel::abi::Scalar::put(&self.#names, __sink);)*
            }

            #slice_bytes
        }
    }
}

/// The type that stands for a form.
fn form_type(form: Form) -> TokenStream {
    match form {
        Form::Item => quote!(::celerity_kernel::PerItem),
        Form::Row => quote!(::celerity_kernel::PerRow),
        Form::Group => quote!(::celerity_kernel::PerGroup),
    }
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
            ("fn k(item: Item<1>, a: [f32; 3]) {}", "not a view"),
            ("fn k(item: Item<1>, a: [&[f32]; 3]) {}", "take a `Row`"),
            ("fn k(item: Item<1>, a: [&f32; N]) {}", "by a number"),
            ("fn k(item: Item<1>, a: [&f32; 0]) {}", "one at least"),
            ("fn k(item: Item<1>, a: [[&f32; 2]; 2]) {}", "not a view"),
            ("fn k(item: Item<1>, a: [&f32; 33]) {}", "and 32 at most"),
            (
                "fn k(item: Item<1>, a: ([&f32; 32], [&u8; 32], [&i8; 32], [&f64; 32], &u64)) {}",
                "at most 128 views",
            ),
            ("fn k(item: Item<1>, a: &[f32]) {}", "take a `Row`"),
            ("fn k(row: Row<1>, a: &f32) {}", "slices, `&[T]`"),
            ("fn k(item: Item<1>, a: NeighborhoodRow<f32, 1>) {}", "`NeighborhoodItem`"),
            ("fn k(row: Row<1>, a: NeighborhoodItem<f32, 1>) {}", "`NeighborhoodRow`"),
            ("fn k(item: Item<1>, a: PeriodicRow<f32, 1>) {}", "`PeriodicItem`"),
            ("fn k(row: Row<1>, a: PeriodicItem<f32, 1>) {}", "`PeriodicRow`"),
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
            ("fn k(item: Item<1>, k: &f32) {}", "of its own name"),
            ("fn k(item: Item<1>, a: &f32, f: impl Fn(f32) -> f32) {}", "takes no functions"),
            ("fn k(item: Item<1>, a: &f32, f: fn(f32) -> f32) {}", "takes no functions"),
            ("fn k(item: Item<1>, a: RegionView<'_, f32, 1>) {}", "closures alone"),
            ("fn k(item: Item<1>, (a, k): (&f32, &f32)) {}", "of its own name"),
            ("fn k(item: Item<1>, a: &f32) { for k in 0..3 { f(k) } }", "of its own name"),
            ("fn k(item: Item<1>, a: &f32) { let g = |(b, k)| b; }", "of its own name"),
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
            (
                quote!({
                    static mut LAST: f32 = 0.0;
                }),
                "cannot have a `static mut`",
            ),
            (
                quote!({
                    thread_local! { static LAST: f32 = 0.0 }
                }),
                "cannot have variables of threads",
            ),
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
        let message = error(quote!(instance(f32)), generic);
        assert!(message.contains("does not know `instance`"), "{message}");
        let plain = quote!(
            fn k(item: Item<1>, a: &mut f32) {}
        );
        assert!(error(quote!(instances(f32)), plain).contains("only a generic kernel"));
    }

    #[test]
    fn what_the_attribute_does_not_know_is_named() {
        let function = quote!(
            fn k(item: Item<1>, a: &mut f32) {}
        );
        for (attribute, expected) in [
            (quote!(fsat), "does not know `fsat`: write `fast`"),
            (quote!(fast, fast), "`fast` stands here twice"),
            (quote!(fast fast), "expected `,`"),
            (quote!(registers = 8), "16 to 255 registers"),
            (quote!(registers), "expected `=`"),
            (quote!(registers(128)), "expected ident"),
            (quote!(registers(all = 128)), "rows are `wide`, `narrow` or `stacked`"),
            (quote!(registers(wide = 64, wide = 32)), "`wide` stands here twice"),
            (quote!(registers(narrow = 256)), "16 to 255 registers"),
            (quote!(registers(wide = 64), registers = 64), "`registers` stands here twice"),
        ] {
            let message = error(attribute, function.clone());
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_limit_of_registers_is_left_for_the_build() {
        let function = quote!(
            fn k(item: Item<1>, a: &mut f32) {}
        );
        let code = kernel(quote!(registers = 128, fast), function).unwrap().to_string();
        let limited = code.contains("fast \"k\" [\"// celerity: k has at most 128 registers\"]");
        assert!(limited, "{code}");
        let stencil = quote!(
            fn k(item: Item<1>, (to, u): (&mut f32, NeighborhoodItem<f32, 1>)) {}
        );
        for (attribute, of_wide, of_narrow) in [
            (quote!(registers = 64), Some(64), Some(64)),
            (quote!(registers(wide = 64)), Some(64), None),
            (quote!(registers(narrow = 40)), None, Some(40)),
            (quote!(registers(narrow = 40, wide = 64)), Some(64), Some(40)),
        ] {
            let code = kernel(attribute, stencil.clone()).unwrap().to_string();
            for (entry, limit) in [("k", of_wide), ("k$narrow", of_narrow)] {
                let line = |registers| {
                    format!("\"// celerity: {entry} has at most {registers} registers\"")
                };
                let line = limit.map(line).unwrap_or_default();
                assert!(code.contains(&format!("strict \"{entry}\" [{line}]")), "{code}");
            }
        }
    }

    #[test]
    fn arithmetic_and_instances_come_in_any_order() {
        let generic = quote!(
            fn k<T: Copy>(item: Item<1>, a: &mut T) {}
        );
        for attribute in [quote!(fast, instances(f32)), quote!(instances(f32), fast,)] {
            let code = kernel(attribute, generic.clone()).unwrap().to_string();
            assert!(code.contains("entry_point ! { fast \"k_f32\""), "{code}");
        }
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
    fn stencils_alone_have_entry_points_of_other_kinds() {
        let kinds = |function: TokenStream| {
            let code = kernel(TokenStream::new(), function).unwrap().to_string();
            let has = |name: &str| code.contains(&format!("strict \"k${name}\""));
            let (narrow, stacked) = (has("narrow"), has("stacked"));
            let others = usize::from(narrow) + usize::from(stacked);
            assert_eq!(code.matches("entry_point !").count(), 1 + others, "{code}");
            (narrow, stacked)
        };
        let both = quote!(
            fn k(item: Item<2>, (to, u): (&mut f32, NeighborhoodItem<f32, 2>)) {}
        );
        assert_eq!(kinds(both), (true, true));
        let round = quote!(
            fn k(row: Row<2>, (to, a, u): (&mut [f32], &[f32], PeriodicRow<f32, 2>)) {}
        );
        assert_eq!(kinds(round), (true, true));
        for narrow in [
            quote!(
                fn k(item: Item<1>, (to, u): (&mut f32, NeighborhoodItem<f32, 1>)) {}
            ),
            quote!(
                fn k(
                    row: Row<2>,
                    (to, u, v): (&mut [f32], NeighborhoodRow<f32, 2>, NeighborhoodRow<f32, 2>),
                ) {
                }
            ),
        ] {
            assert_eq!(kinds(narrow.clone()), (true, false), "{narrow}");
        }
        for other in [
            quote!(
                fn k(item: Item<2>, to: &mut f32) {}
            ),
            quote!(
                fn k(
                    item: Item<2>,
                    (to, u, all): (&mut f32, NeighborhoodItem<f32, 2>, WholeView<f32, 1>),
                ) {
                }
            ),
            quote!(
                fn k(item: NdItem<'_, 2>, (to, u): (&mut f32, NeighborhoodItem<f32, 2>)) {}
            ),
            quote!(
                fn k(item: Item<2>, (sum, u): (Reducer<f32, Sum>, NeighborhoodItem<f32, 2>)) {}
            ),
        ] {
            assert_eq!(kinds(other.clone()), (false, false), "{other}");
        }
    }

    #[test]
    fn lists_are_taken_one_by_one_and_have_an_entry_point_for_buffers_apart() {
        let code = |function: TokenStream| {
            let code = kernel(TokenStream::new(), function).unwrap().to_string();
            code.replace(' ', "")
        };
        let listed = code(quote!(
            fn k(item: Item<1>, (to, by, from): ([&mut f32; 2], &f32, [&f32; 3])) {
                for at in 0..2 {
                    *to[at] = *by * *from[at];
                }
            }
        ));
        for expected in [
            "strict\"k$apart\"",
            "firsts:&[0usize,0usize,2usize,3usize,3usize,3usize]",
            "(__view0,__view1,__view2,__view3,__view4,__view5,):(&mutf32,&mutf32,&f32,&f32,&f32,&f32,)",
            "let(to,by,from):([&mutf32;2],&f32,[&f32;3])=([__view0,__view1],__view2,[__view3,__view4,__view5],);",
            "identity(1)",
        ] {
            assert!(listed.contains(expected), "{expected} is not in {listed}");
        }
        // One alone has nothing to differ from.
        let alone = code(quote!(
            fn k(item: Item<1>, to: [&mut f32; 1]) {}
        ));
        assert!(!alone.contains("$apart") && alone.contains("firsts:&[]"), "{alone}");
    }

    #[test]
    fn loops_are_counted_but_for_those_of_groups() {
        let code = |item: TokenStream| {
            let function = quote!(
                fn k(item: #item, a: &mut f32, n: u32) {
                    for _ in 0..n {
                        *a += 1.0;
                    }
                }
            );
            kernel(TokenStream::new(), function).unwrap().to_string()
        };
        assert!(code(quote!(Item<1>)).contains("counted"));
        assert!(!code(quote!(NdItem<'_, 1>)).contains("counted"));
    }

    #[test]
    fn each_instance_has_an_entry_point_of_its_own() {
        let generic = quote!(
            fn k<T: Copy, const N: usize>(item: Item<1>, a: &mut T, b: [T; N]) {}
        );
        let code = kernel(quote!(instances((f32, 4), (u8, 2))), generic).unwrap().to_string();
        for entry in ["\"k_f32_4\"", "\"k_u8_2\""] {
            assert!(code.contains(&format!("entry_point ! {{ strict {entry}")), "{code}");
        }
    }
}
