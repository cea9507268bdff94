//! Types of views and of local memory as users write them, without lifetimes, and as generated code
//! needs them, with one.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    AngleBracketedGenericArguments, Error, GenericArgument, Lifetime, PathArguments, Result, Type,
    TypePath, TypeReference,
};

use crate::form::Form;

/// The type of a view, checked.
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
                     `NeighborhoodRow<'_, T, D>` and `PeriodicRow<'_, T, D>`";

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
