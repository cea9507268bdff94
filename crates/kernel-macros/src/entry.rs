//! The functions that a device starts with. What it names itself begins with `__`: a kernel, its
//! parameters, and what stands beside it may have any other name.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Ident, Lifetime};

use crate::form::Form;
use crate::instances::KernelOptions;
use crate::parts::{arguments, local_parameters, names_and_types, view_traits};
use crate::signature::ParsedKernel;
use crate::views::Kind;

/// What the entry point calls the parameters and the state of a view.
struct Names {
    pointer: Ident,
    block: Ident,
    /// The block that says where elements are: its own, or that of the first of its list.
    place: Ident,
    state: Ident,
    /// Of a reduction: what a thread keeps of its tile.
    tile: Ident,
}

/// The kinds of entry points there are: `celerity_kernel::abi::EntryKind`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Plain,
    Narrow,
    Stacked,
    Apart,
}

impl EntryKind {
    /// Those that not every kernel has.
    pub(crate) const OTHERS: [Self; 3] = [Self::Narrow, Self::Stacked, Self::Apart];

    pub(crate) fn path(self) -> TokenStream {
        let name = match self {
            Self::Plain => quote!(Plain),
            Self::Narrow => quote!(Narrow),
            Self::Stacked => quote!(Stacked),
            Self::Apart => quote!(Apart),
        };
        quote!(::celerity_kernel::abi::EntryKind::#name)
    }
}

/// What a kernel's entry point of another kind is called, if it may have one: what it sees must be elements of items, and
/// what is around them; for stacks, in one buffer of several dimensions. Whether it has one, the size of elements says. No
/// function of a user's has such a name.
pub(crate) fn other_name(
    kernel: &ParsedKernel,
    entry_name: &str,
    entry_kind: EntryKind,
) -> Option<String> {
    let views = &kernel.views.list;
    let around = || views.iter().filter(|view| view.is_bordered);
    let may = kernel.form != Form::Group
        && views.iter().all(|view| view.is_own || view.is_bordered)
        && around().next().is_some();
    let is_one_field = around().count() == 1;
    match entry_kind {
        EntryKind::Narrow if may => Some(format!("{entry_name}$narrow")),
        EntryKind::Stacked if may && is_one_field && kernel.dims.to_string() != "1" => {
            Some(format!("{entry_name}$stacked"))
        }
        EntryKind::Apart if kernel.views.have_lists() => Some(format!("{entry_name}$apart")),
        _ => None,
    }
}

/// An entry point: parameters in the order of the calling convention, base addresses as
/// references. There is one in the code that is compiled for its arithmetic, fast or strict; in the other
/// code it is a function that nobody calls.
pub(crate) fn entry(
    kernel: &ParsedKernel,
    entry_name: &str,
    entry_kind: EntryKind,
    arguments: &KernelOptions,
) -> TokenStream {
    let (traits, all) = (view_traits(kernel), names(kernel, entry_kind));
    let (pointers, blocks): (Vec<_>, Vec<_>) =
        all.iter().map(|Names { pointer, block, .. }| (pointer, block)).unzip();
    let (scalars, types) = names_and_types(kernel);
    let local = local_parameters(kernel);
    let dims = &kernel.dims;
    let (tiles, run) = match reduces(kernel) {
        true => {
            let tiles = quote!(__tiles: ::celerity_kernel::abi::TileBlock,);
            (Some(tiles), in_tile(kernel, &traits, &all))
        }
        false => (None, run(kernel, entry_kind, &traits, &all)),
    };
    let slices = kernel.locals(Kind::Slice).next().map(|_| {
        quote! {
            const __SLICES: usize = ::celerity_kernel::abi::slices_begin(
                ::celerity_kernel::abi::Form::Group, __LOCAL, &[#(#traits::PARAMETER),*]
            );
        }
    });
    let arithmetic = if arguments.is_fast { quote!(fast) } else { quote!(strict) };
    let limits = arguments.registers.as_ref();
    let limit = limits.and_then(|limits| match entry_kind {
        EntryKind::Plain | EntryKind::Apart => limits.wide,
        EntryKind::Narrow => limits.narrow,
        EntryKind::Stacked => limits.stacked,
    });
    let limit = limit.map(|registers| {
        let line = format!("// celerity: {entry_name} has at most {registers} registers");
        quote!(#line)
    });
    quote! {
        ::celerity_kernel::entry_point! { #arithmetic #entry_name [#limit]
        #[allow(
            improper_ctypes_definitions, unused_mut, unused_unsafe, unused_variables,
            dead_code
        )]
        pub unsafe extern "ptx-kernel" fn __entry(
            __launch: ::celerity_kernel::abi::LaunchBlock,
            #tiles
            #(
                mut #pointers: #traits::Pointer,
                #blocks: ::celerity_kernel::abi::AccessBlock,
            )*
            #(#scalars: #types),*
        ) {
            const __DIMS: usize = { #dims };
            const __LOCAL: &[::celerity_kernel::abi::LocalParameter] = #local;
            #slices
            #run
        }
        }
    }
}

fn reduces(kernel: &ParsedKernel) -> bool {
    kernel.views.list.iter().any(|view| view.reduces)
}

fn names(kernel: &ParsedKernel, entry_kind: EntryKind) -> Vec<Names> {
    let firsts = kernel.views.firsts();
    let block_of = |index: usize| match entry_kind {
        EntryKind::Apart => index,
        EntryKind::Plain | EntryKind::Narrow | EntryKind::Stacked => firsts[index],
    };
    let names = |index: usize| Names {
        pointer: format_ident!("__pointer{index}"),
        block: format_ident!("__block{index}"),
        place: format_ident!("__block{}", block_of(index)),
        state: format_ident!("__state{index}"),
        tile: format_ident!("__tile{index}"),
    };
    (0..kernel.views.list.len()).map(names).collect()
}

/// How a device runs the kernel wherever it stands.
fn run(
    kernel: &ParsedKernel,
    entry_kind: EntryKind,
    traits: &[TokenStream],
    names: &[Names],
) -> TokenStream {
    let name = &kernel.name;
    let at = at(kernel.form);
    let body = body(kernel, traits, names, &at);
    if let Form::Group = kernel.form {
        let call = inlined(&quote!(__place, __item), &body);
        return quote!(
            ::celerity_kernel::device::run_groups::<__DIMS>(stringify!(#name), &__launch, #call);
        );
    }
    let form = form(kernel.form);
    let signature = quote!(#form, &[#(#traits::PARAMETER),*]);
    let (entry_kind, is_short) = (entry_kind.path(), kernel.is_short);
    let traversal = quote!(::celerity_kernel::abi::traversal(#entry_kind, #signature));
    let call = inlined(&quote!(__place), &body);
    quote!(
        struct __Kernel;
        impl ::celerity_kernel::abi::Traverse for __Kernel {
            const TRAVERSAL: ::celerity_kernel::abi::Traversal = match #traversal {
                Some(it) => it,
                None => ::celerity_kernel::abi::plain_traversal(#signature),
            };
            const TAKES_STEPS: bool = ::celerity_kernel::abi::takes_steps(#signature, #is_short);
        }
        // Of large elements nothing is launched otherwise than plainly, and there is no code for it.
        if const { #traversal.is_some() } {
            ::celerity_kernel::device::run::<__DIMS, __Kernel>(stringify!(#name), &__launch, #call);
        }
    )
}

/// `celerity_kernel::abi::Form`.
fn form(form: Form) -> TokenStream {
    let name = match form {
        Form::Item => quote!(Item),
        Form::Row => quote!(Row),
        Form::Group => quote!(Group),
    };
    quote!(::celerity_kernel::abi::Form::#name)
}

/// A closure that is part of the entry point, however large the kernel is: as a function of its own it would get all
/// views through local memory, and the length of a run would be no constant.
fn inlined(parameters: &TokenStream, body: &TokenStream) -> TokenStream {
    quote!(#[inline(always)] |#parameters| #body)
}

/// How a block of a device computes a tile: all threads meet before the first item and behind the
/// last, so that what one of them has combined is there for all.
fn in_tile(kernel: &ParsedKernel, traits: &[TokenStream], names: &[Names]) -> TokenStream {
    let name = &kernel.name;
    let body = body(kernel, traits, names, &at(kernel.form));
    let static_lifetime = Lifetime::new("'static", Span::call_site());
    let reductions = || kernel.views.list.iter().zip(names).filter(|(view, _)| view.reduces);
    let begin = reductions().map(|(view, Names { pointer, block, tile, .. })| {
        let ty = view.with_lifetime(&static_lifetime);
        quote!(
            // SAFETY: hosts start this by its calling convention, one block for each tile.
            let #tile = unsafe {
                <#ty as ::celerity_kernel::InTile>::begin(
                    &mut #pointer, &#block, __tile.number, &__team,
                )
            };
        )
    });
    let end = reductions().map(|(view, Names { tile, .. })| {
        let ty = view.with_lifetime(&static_lifetime);
        // SAFETY: as above; the threads have met.
        quote!(unsafe { <#ty as ::celerity_kernel::InTile>::end(&#tile, __lanes, &__team) };)
    });
    let run = match kernel.form {
        Form::Group => {
            let call = inlined(&quote!(__place, __item), &body);
            quote!(::celerity_kernel::device::run_tile_groups::<__DIMS>(&__launch, &__tile, #call))
        }
        Form::Item | Form::Row => {
            let call = inlined(&quote!(__place, __nth), &body);
            quote!(::celerity_kernel::device::run_tile::<__DIMS, __Kernel>(&__launch, &__tile, #call))
        }
    };
    let form = form(kernel.form);
    quote! {
        struct __Kernel;
        impl ::celerity_kernel::abi::Traverse for __Kernel {
            const TRAVERSAL: ::celerity_kernel::abi::Traversal =
                ::celerity_kernel::abi::plain_traversal(#form, &[#(#traits::PARAMETER),*]);
        }
        let __tile = ::celerity_kernel::device::tile::<__DIMS>(stringify!(#name), &__launch, &__tiles);
        let __team = ::celerity_kernel::device::Block::at(
            const { ::celerity_kernel::abi::local_offset(__LOCAL, __LOCAL.len()) }
        );
        #(#begin)*
        ::celerity_kernel::Team::meet(&__team);
        let __lanes = #run;
        ::celerity_kernel::Team::meet(&__team);
        #(#end)*
    }
}

/// What the kernel is called with where it stands.
fn at(form: Form) -> TokenStream {
    match form {
        Form::Item => quote!(::celerity_kernel::Item::new(__place.start, __place.global)),
        Form::Row => {
            quote!(::celerity_kernel::Row::new(__place.start, __place.len, __place.global))
        }
        Form::Group => quote!(__item),
    }
}

/// The call of the kernel at one place.
fn body(
    kernel: &ParsedKernel,
    traits: &[TokenStream],
    names: &[Names],
    at: &TokenStream,
) -> TokenStream {
    let name = &kernel.name;
    let (_, type_generics, _) = kernel.generics.split_for_impl();
    let turbofish = type_generics.as_turbofish();
    let list = || kernel.views.list.iter().zip(traits).zip(names);
    let states = list().filter(|((view, _), _)| !view.reduces).map(
        |((_, view), Names { pointer, place: block, state, .. })| {
            quote!(
                // SAFETY: hosts start this by its calling convention.
                let mut #state = unsafe { #view::state(&mut #pointer, &#block, &__place) };
            )
        },
    );
    let ends =
        list().filter(|((view, _), _)| !view.reduces).map(|((_, view), Names { state, .. })| {
            quote!(
                // SAFETY: as above, and the views are gone.
                unsafe { #view::finish(#state) };
            )
        });
    let static_lifetime = Lifetime::new("'static", Span::call_site());
    // An item of a group is combined into the only accumulator of its thread.
    let nth = if let Form::Group = kernel.form { quote!(0) } else { quote!(__nth) };
    let made = list().map(|((view, ty), Names { state, tile, .. })| match view.reduces {
        true => {
            let ty = view.with_lifetime(&static_lifetime);
            quote!(<#ty as ::celerity_kernel::InTile>::view(&#tile, #nth))
        }
        false => quote!(#ty::view(&mut #state)),
    });
    let made = kernel.views.all(made);
    let rest = arguments(
        kernel,
        |scalar| quote!(#scalar),
        |index| {
            quote!(::celerity_kernel::Local::at(
                const { ::celerity_kernel::abi::local_offset(__LOCAL, #index) }
            ))
        },
        |start, len| quote!(::celerity_kernel::LocalSlice::at(__SLICES + #start, #len)),
    );
    quote!({
        #(#states)*
        // SAFETY: one view of each state, and none outlives the call.
        let __views = unsafe { #made };
        // SAFETY: launches have the local memory that the description says.
        unsafe { #name #turbofish::call(#at, __views, #(#rest),*) };
        #(#ends)*
    })
}
