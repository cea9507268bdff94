//! Types of views and of local memory as users write them, without lifetimes, and as generated code
//! needs them, with one.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    AngleBracketedGenericArguments, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn,
    Lifetime, Lit, Pat, PathArguments, Result, Type, TypeArray, TypePath, TypeReference,
    parse_quote,
};

use crate::form::Form;

/// The second parameter: a view, a list of views of one type, or a tuple of such.
pub(crate) struct Views {
    /// All views, those of a list one after the other: what devices have parameters for.
    pub(crate) list: Vec<ViewType>,
    /// What the parameter consists of, in order: a view, or a list of so many.
    members: Vec<Option<usize>>,
    /// Whether it is the only member, not in a tuple.
    bare: bool,
}

/// So many views are what there is room for among the parameters of a launch.
const MOST_VIEWS: usize = 128;

/// So many views of a list there are accesses for.
const MOST_OF_A_LIST: usize = 32;

impl Views {
    pub(crate) fn parse(ty: &Type, form: Form) -> Result<Self> {
        let mut views = Self { list: Vec::new(), members: Vec::new(), bare: false };
        if let Type::Tuple(tuple) = ty {
            if tuple.elems.len() > 20 {
                let what = "a tuple of views has at most twenty members: let views of one type be a \
                            list, as `[&mut f32; 19]`, or elements that belong together be one, as \
                            `[f32; 4]` or `f32x4`";
                return Err(Error::new(tuple.span(), what));
            }
            tuple.elems.iter().try_for_each(|ty| views.push(ty, form))?;
        } else {
            views.bare = true;
            views.push(ty, form)?;
        }
        if views.list.len() > MOST_VIEWS {
            let what = format!(
                "a kernel has at most {MOST_VIEWS} views, those of lists counted: what a launch has \
                 room for"
            );
            return Err(Error::new(ty.span(), what));
        }
        Ok(views)
    }

    /// Adds a member.
    fn push(&mut self, ty: &Type, form: Form) -> Result<()> {
        let Type::Array(TypeArray { elem, len, .. }) = ty else {
            self.list.push(ViewType::parse(ty, form)?);
            self.members.push(None);
            return Ok(());
        };
        let Expr::Lit(ExprLit { lit: Lit::Int(len), .. }) = len else {
            let what = "a list of views says how many there are by a number, as `[&mut f32; 19]`: \
                        devices get a parameter for each";
            return Err(Error::new(len.span(), what));
        };
        let (view, len) = (ViewType::parse(elem, form)?, len.base10_parse()?);
        if !(1..=MOST_OF_A_LIST).contains(&len) {
            let what = format!("a list of views has one at least, and {MOST_OF_A_LIST} at most");
            return Err(Error::new(ty.span(), what));
        }
        self.list.extend(std::iter::repeat_n(view, len));
        self.members.push(Some(len));
        Ok(())
    }

    /// The parameter's type, with `lifetime` wherever one was left out.
    pub(crate) fn ty(&self, lifetime: &Lifetime) -> TokenStream {
        let types = self.list.iter().map(|view| view.with_lifetime(lifetime));
        self.put_together(types, |list| {
            let (first, len) = (&list[0], list.len());
            quote!([#first; #len])
        })
    }

    /// Whether there are several views in a list.
    pub(crate) fn have_lists(&self) -> bool {
        self.members.iter().flatten().any(|&len| len > 1)
    }

    /// Of each view, which one is the first of its list, or it is itself.
    pub(crate) fn firsts(&self) -> Vec<usize> {
        let mut firsts = Vec::with_capacity(self.list.len());
        for len in &self.members {
            firsts.extend(std::iter::repeat_n(firsts.len(), len.unwrap_or(1)));
        }
        firsts
    }

    /// The function, with its views one by one in a tuple, from which it makes its lists itself: so they are in registers
    /// before it is a part of anything else.
    pub(crate) fn taken_one_by_one(&self, mut function: ItemFn) -> ItemFn {
        let Some((views, lists)) = self.in_lists() else { return function };
        if let Some(FnArg::Typed(parameter)) = function.sig.inputs.iter_mut().nth(1) {
            let (pattern, ty) = (&parameter.pat, &parameter.ty);
            let lists = parse_quote!(let #pattern: #ty = #lists;);
            let types = self.list.iter().map(|view| &view.ty);
            (*parameter.pat, *parameter.ty) =
                (parse_quote!((#(#views,)*)), parse_quote!((#(#types,)*)));
            function.block.stmts.insert(0, lists);
        }
        function
    }

    /// The parameter's value, taken apart for [that](Self::taken_one_by_one), and what its function is called with.
    pub(crate) fn one_by_one(&self, value: &TokenStream) -> TokenStream {
        match self.in_lists() {
            Some((views, pattern)) => quote!({ let #pattern = #value; (#(#views,)*) }),
            None => value.clone(),
        }
    }

    /// Names for all views, and the parameter made of these, if there are lists in it.
    fn in_lists(&self) -> Option<(Vec<Ident>, TokenStream)> {
        self.members.iter().any(Option::is_some).then(|| {
            let views: Vec<_> =
                (0..self.list.len()).map(|at| format_ident!("__view{at}")).collect();
            let lists = self.put_together(&views, |list| quote!([#(#list),*]));
            (views, lists)
        })
    }

    /// All views as the function takes them.
    pub(crate) fn all(&self, views: impl IntoIterator<Item = TokenStream>) -> TokenStream {
        let views: Vec<_> = views.into_iter().collect();
        match &self.members[..] {
            [None] if self.bare => quote!(#(#views)*),
            _ => quote!((#(#views,)*)),
        }
    }

    /// What the parameter's pattern calls the lists among its members.
    pub(crate) fn names_of_lists(&self, pattern: &Pat) -> Vec<Ident> {
        let name = |pattern: &Pat| match pattern {
            Pat::Ident(name) => Some(name.ident.clone()),
            _ => None,
        };
        let is_list = |len: &Option<usize>| len.is_some();
        match pattern {
            Pat::Tuple(tuple) if !self.bare => {
                let members = tuple.elems.iter().zip(&self.members);
                members.filter(|(_, len)| is_list(len)).filter_map(|(it, _)| name(it)).collect()
            }
            _ if self.bare && self.members.iter().all(is_list) => {
                name(pattern).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn put_together<T: ToTokens>(
        &self,
        views: impl IntoIterator<Item = T>,
        list: impl Fn(&[T]) -> TokenStream,
    ) -> TokenStream {
        let mut views = views.into_iter();
        let members = self.members.iter().map(|len| match len {
            None => views.next().into_token_stream(),
            Some(len) => list(&views.by_ref().take(*len).collect::<Vec<_>>()),
        });
        let members: Vec<_> = members.collect();
        match self.bare {
            true => quote!(#(#members)*),
            false => quote!((#(#members,)*)),
        }
    }
}

/// The type of a view, checked.
#[derive(Clone)]
pub(crate) struct ViewType {
    ty: Type,
    /// Whether items are combined through it.
    pub(crate) reduces: bool,
    /// Whether it shows nothing but an item's own element, or those of a run.
    pub(crate) is_own: bool,
    /// Whether it shows what is around them.
    pub(crate) is_bordered: bool,
}

const VIEWS: &str = "not a view; views are `&T`, `&mut T`, `NeighborhoodItem<'_, T, D>`, \
                     `PeriodicItem<'_, T, D>`, `WholeView<'_, T, D>`, `PartView<'_, T, D>`, \
                     `PartViewMut<'_, T, D>`, `AtomicView<'_, T, D>`, `Reducer<'_, T, O>` and \
                     `ArrayReducer<'_, T, O, D>`, and per row `&[T]`, `&mut [T]`, \
                     `NeighborhoodRow<'_, T, D>` and `PeriodicRow<'_, T, D>`; views of one type may be a \
                     list, `[&mut T; 3]`; they are told by their names, so no other name for one will do";

impl ViewType {
    pub(crate) fn parse(ty: &Type, form: Form) -> Result<Self> {
        let name = match ty {
            Type::Reference(reference) => {
                elided(reference.lifetime.as_ref())?;
                reference_name(&reference.elem)
            }
            Type::Path(path) => path_name(path)?,
            _ => return Err(Error::new(ty.span(), VIEWS)),
        };
        match (form, name.as_str()) {
            (Form::Item | Form::Group, "[]") => Err(Error::new(
                ty.span(),
                "a kernel over items gets single elements, `&T`; take a `Row` to get slices",
            )),
            (Form::Item | Form::Group, "NeighborhoodRow") => Err(Error::new(
                ty.span(),
                "a kernel over items gets a `NeighborhoodItem`; take a `Row` to get rows",
            )),
            (Form::Item | Form::Group, "PeriodicRow") => Err(Error::new(
                ty.span(),
                "a kernel over items gets a `PeriodicItem`; take a `Row` to get rows",
            )),
            (Form::Row, "PeriodicItem") => Err(Error::new(
                ty.span(),
                "a kernel over rows gets a `PeriodicRow`; take an `Item` to get single items",
            )),
            (Form::Row, "&") => Err(Error::new(
                ty.span(),
                "a kernel over rows gets slices, `&[T]`; take an `Item` to get single elements",
            )),
            (Form::Row, "NeighborhoodItem") => Err(Error::new(
                ty.span(),
                "a kernel over rows gets a `NeighborhoodRow`; take an `Item` to get single items",
            )),
            (_, name) => {
                let reduces = matches!(name, "Reducer" | "ArrayReducer");
                let is_own = matches!(name, "&" | "[]");
                let is_bordered = name.starts_with("Neighborhood") || name.starts_with("Periodic");
                Ok(Self { ty: ty.clone(), reduces, is_own, is_bordered })
            }
        }
    }

    /// The type with `lifetime` wherever one was left out.
    pub(crate) fn with_lifetime(&self, lifetime: &Lifetime) -> Type {
        with_lifetime(&self.ty, lifetime)
    }
}

/// What stands behind the views.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is taken by value.
    Value,
    /// `Local<'_, T, N>`: local memory, as much as the type says.
    Array,
    /// `LocalSlice<'_, T>`: local memory, as much as the launch says.
    Slice,
}

impl Kind {
    /// What a type behind the views is.
    ///
    /// # Errors
    /// If it is local memory and has a lifetime of its own.
    pub(crate) fn of(ty: &Type) -> Result<Self> {
        let Type::Path(path) = ty else { return Ok(Self::Value) };
        let Some(last) = path.path.segments.last() else { return Ok(Self::Value) };
        let PathArguments::AngleBracketed(arguments) = &last.arguments else {
            return Ok(Self::Value);
        };
        let kind = match last.ident.to_string().as_str() {
            "Local" => Self::Array,
            "LocalSlice" => Self::Slice,
            _ => return Ok(Self::Value),
        };
        if let Some(GenericArgument::Lifetime(lifetime)) = arguments.args.first() {
            elided(Some(lifetime))?;
        }
        Ok(kind)
    }
}

/// The type of a view or of local memory with `lifetime` where one was left out.
pub(crate) fn with_lifetime(ty: &Type, lifetime: &Lifetime) -> Type {
    let mut ty = ty.clone();
    match &mut ty {
        Type::Reference(TypeReference { lifetime: place, .. }) => *place = Some(lifetime.clone()),
        Type::Path(path) => insert(path, lifetime),
        _ => unreachable!("`parse` lets only references and paths pass"),
    }
    ty
}

fn reference_name(element: &Type) -> String {
    if let Type::Slice(_) = element { "[]".into() } else { "&".into() }
}

fn path_name(path: &TypePath) -> Result<String> {
    let wrong = || Error::new(path.span(), VIEWS);
    let last = path.path.segments.last().ok_or_else(wrong)?;
    let name = last.ident.to_string();
    let known = [
        "NeighborhoodItem",
        "NeighborhoodRow",
        "PeriodicItem",
        "PeriodicRow",
        "WholeView",
        "PartView",
        "PartViewMut",
        "AtomicView",
        "Reducer",
        "ArrayReducer",
    ];
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Err(wrong()) };
    if name == "RegionView" {
        let what = "a view of several boxes is for closures alone (`parallel_for`): read the box \
                    around all of them through a `PartView`";
        return Err(Error::new(path.span(), what));
    }
    if !known.contains(&name.as_str()) {
        return Err(wrong());
    }
    if let Some(GenericArgument::Lifetime(lifetime)) = arguments.args.first() {
        elided(Some(lifetime))?;
    }
    Ok(name)
}

fn elided(lifetime: Option<&Lifetime>) -> Result<()> {
    match lifetime {
        Some(lifetime) if lifetime.ident != "_" => {
            Err(Error::new(lifetime.span(), "leave lifetimes out of views, or write `'_`"))
        }
        _ => Ok(()),
    }
}

fn insert(path: &mut TypePath, lifetime: &Lifetime) {
    let last = path.path.segments.last_mut().expect("checked when it was parsed");
    let PathArguments::AngleBracketed(AngleBracketedGenericArguments { args, .. }) =
        &mut last.arguments
    else {
        unreachable!("checked when it was parsed")
    };
    let given = args.iter().filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
    let lifetime = GenericArgument::Lifetime(lifetime.clone());
    *args = std::iter::once(lifetime).chain(given.cloned()).collect::<Punctuated<_, _>>();
}
