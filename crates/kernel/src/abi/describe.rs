//! What a kernel's entry point takes, as plain data: the host's side of the
//! signature, and the types that may stand in it.

use super::blocks::{AccessBlock, LaunchBlock};
use super::local::{LocalParameter, local_offset};

/// Bytes of each block's shared memory that a module keeps for itself.
const MODULE_SHARED_BYTES: usize = 48;

/// A kernel as a host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The function's name in the user's source.
    pub name: &'static str,
    /// The entry point's name in the compiled module.
    pub entry: &'static str,
    /// What it is called with.
    pub form: Form,
    /// Dimensions of its index space.
    pub dims: usize,
    /// One for each access, in order.
    pub views: &'static [ViewParameter],
    /// What else it takes, by value, in order.
    pub scalars: &'static [ScalarParameter],
    /// The arrays of local memory that it takes, in order.
    pub local: &'static [LocalParameter],
}

/// How a kernel is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For each item.
    Item,
    /// For runs of items along the fastest dimension.
    Row,
    /// For each item, beside the others of its group.
    Group,
}

/// The view that a kernel gets for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewParameter {
    /// What it shows.
    pub kind: ViewKind,
    /// Whether it can be written through.
    pub writes: bool,
    /// Dimensions of the buffer.
    pub dims: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Alignment of an element, in bytes.
    pub align: usize,
}

/// What a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// The item's own element, or those of a run: `&T`, `&[T]`.
    Own,
    /// What is around them: `NeighborhoodItem`, `NeighborhoodRow`.
    Neighborhood,
    /// The whole buffer: `WholeView`.
    Whole,
    /// One box, the same for the whole chunk: `PartView`.
    Part,
    /// A box of the item's own: `PartViewMut`.
    OwnPart,
    /// One box that all items of the chunk update: `AtomicView`.
    Shared,
}

/// A parameter that a kernel takes by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarParameter {
    /// Its name in the user's source.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
}

impl ScalarParameter {
    /// A parameter of type `T`.
    #[must_use]
    pub const fn of<T: Scalar>(name: &'static str) -> Self {
        Self { name, size: size_of::<T>(), align: align_of::<T>() }
    }
}

/// One parameter of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
}

impl Parameter {
    const fn of<T>() -> Self {
        Self { size: size_of::<T>(), align: align_of::<T>() }
    }
}

impl Description {
    /// Bytes of local memory that each group needs. O(arrays).
    #[must_use]
    pub const fn local_bytes(&self) -> usize {
        local_offset(self.local, self.local.len())
    }

    /// Bytes of shared memory that each block takes: local memory, and the module's own.
    /// O(arrays).
    #[must_use]
    pub const fn shared_bytes(&self) -> usize {
        self.local_bytes() + MODULE_SHARED_BYTES
    }

    /// The entry point's parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        let access = [Parameter::of::<u64>(), Parameter::of::<AccessBlock>()];
        let views = self.views.iter().flat_map(move |_| access);
        let scalars = self
            .scalars
            .iter()
            .map(|&ScalarParameter { size, align, .. }| Parameter { size, align });
        core::iter::once(Parameter::of::<LaunchBlock>()).chain(views).chain(scalars)
    }
}

/// What a kernel can take by value: numbers and arrays of them; sealed.
///
/// The bytes that a host writes are those that the device reads: both are
/// little-endian machines with 64-bit addresses.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot take a `{Self}` by value",
    label = "neither a number nor an array of numbers",
    note = "pass numbers (`f32`, `u32`, `usize`, ...) or arrays of them; take a structure apart \
            into its fields, and a `bool` as `u32`"
)]
pub trait Scalar: Copy + Send + Sync + 'static + sealed::Sealed {
    /// Hands the value's bytes on, in pieces, each with its alignment.
    fn put(&self, sink: &mut dyn FnMut(&[u8], usize));
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}
        impl Scalar for $number {
            fn put(&self, sink: &mut dyn FnMut(&[u8], usize)) {
                sink(&self.to_ne_bytes(), align_of::<Self>());
            }
        }
    )*};
}

numbers!(f32 f64 u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl<T: Scalar, const N: usize> sealed::Sealed for [T; N] {}

impl<T: Scalar, const N: usize> Scalar for [T; N] {
    fn put(&self, sink: &mut dyn FnMut(&[u8], usize)) {
        const { assert!(N > 0, "a kernel cannot take an empty array by value") };
        self.iter().for_each(|element| element.put(sink));
    }
}

const _: () = assert!(size_of::<usize>() == 8, "hosts and devices have 64-bit addresses");
