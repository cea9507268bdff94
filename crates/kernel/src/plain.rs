//! Plain old data: what elements and parameters are made of. Knows neither buffers nor launches.

use core::marker::PhantomData;

/// Plain old data: any bit pattern is a value, and no byte is padding. Numbers, arrays of them,
/// `f16`, `bf16` and complex numbers (features `half` and `num-complex`), and structs that
/// [derive](derive@crate::PlainData) it. What buffers are made of, and what kernels take by value.
///
/// Implemented for everything that is [`bytemuck::Pod`], [`Send`] and [`Sync`].
#[cfg(not(target_arch = "nvptx64"))]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain old data",
    label = "some bits of it would be no value, or it has padding, or a pointer",
    note = "plain are numbers, arrays of them, and structs with `#[derive(Clone, Copy, PlainData)]` \
            and `#[repr(C)]`; use `u8` for `bool` and `char`, and numbers for enums"
)]
pub trait PlainData: bytemuck::Pod + Send + Sync {}

#[cfg(not(target_arch = "nvptx64"))]
#[diagnostic::do_not_recommend]
impl<T: bytemuck::Pod + Send + Sync> PlainData for T {}

/// On devices whatever a host has found to be plain: both compile the same text.
#[cfg(target_arch = "nvptx64")]
pub trait PlainData: Copy + Send + Sync + 'static {}

#[cfg(target_arch = "nvptx64")]
#[diagnostic::do_not_recommend]
impl<T: Copy + Send + Sync + 'static> PlainData for T {}

/// What a kernel can take by value: [plain old data](PlainData) of at least one byte, aligned to 16
/// bytes at most.
///
/// The bytes that a host writes are those that the device reads: both are
/// little-endian machines with 64-bit addresses, and have the same layout for what is `repr(C)`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot take a `{Self}` by value",
    label = "not plain old data",
    note = "pass numbers (`f32`, `u32`, `usize`, ...), arrays of them, or a struct with \
            `#[derive(Clone, Copy, Debug, PlainData)]` and `#[repr(C)]`; a `bool` as `u32`"
)]
pub trait Scalar: PlainData {
    /// Hands the value's bytes on, with its alignment.
    fn put(&self, sink: &mut dyn FnMut(&[u8], usize));
}

impl<T: PlainData> Scalar for T {
    #[cfg(not(target_arch = "nvptx64"))]
    fn put(&self, sink: &mut dyn FnMut(&[u8], usize)) {
        const {
            assert!(size_of::<T>() > 0, "what a kernel takes by value has at least one byte");
            assert!(align_of::<T>() <= 16, "a kernel takes values that are aligned to 16 bytes");
        }
        sink(bytemuck::bytes_of(self), align_of::<T>());
    }

    #[cfg(target_arch = "nvptx64")]
    fn put(&self, _sink: &mut dyn FnMut(&[u8], usize)) {}
}

/// What a kernel can take by value, under a name that has the right words where a type is not.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot take a `{Self}` by value",
    label = "`{Self}` is not plain old data",
    note = "take numbers (`f32`, `u32`, `usize`, ...), arrays of them, or a struct with \
            `#[derive(Clone, Copy, Debug, PlainData)]` and `#[repr(C)]`; a `bool` as `u32`"
)]
#[doc(hidden)]
pub trait TakenByValue {}

#[diagnostic::do_not_recommend]
impl<T: Scalar> TakenByValue for T {}

/// What `#[kernel]` names for each type that a kernel takes by value, before anything that asks
/// whether the type is `Copy`: so this is what the compiler complains about first.
#[doc(hidden)]
pub struct ByValue<T: TakenByValue>(PhantomData<T>);

/// What `#[derive(PlainData)]` writes.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub mod derived {
    pub use bytemuck::{Pod, Zeroable};

    pub use super::PlainData;
}
