//! Kernels as values: what `#[kernel]` makes of a function, for hosts to run or
//! to launch. Knows neither queues nor drivers.
#![allow(unsafe_code)]

use crate::abi::{AccessMemory, Chunk, Description, Geometry, LaunchError, write_parameters};
use crate::group::NdItem;
use crate::item::{Item, Row};
use crate::local::LocalMemory;
use crate::module::Module;

/// A kernel with what it takes by value; implemented by `#[kernel]`.
///
/// # Safety
/// In the [module](Self::module) stand entry points of the [described](Self::DESCRIPTION) names that take what
/// [`Self::put_launch`] writes, and that touch no memory but the parts that it is told of and the launch's local
/// memory, of which they use [`Self::slice_bytes`] beside that of the description.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a compiled kernel",
    note = "put `#[kernel]` on a function; of a generic one, list the instances: \
            `#[kernel(instances(f32, f64))]`"
)]
pub unsafe trait Kernel: Copy + Send + Sync + 'static {
    /// Its names and parameters.
    const DESCRIPTION: Description;

    /// The module that holds its code for devices.
    fn module() -> &'static Module;

    /// Hands on what it takes by value, each value in pieces with their alignment.
    fn put_scalars(&self, sink: &mut dyn FnMut(&[u8], usize));

    /// Bytes of its slices of local memory, which it says the lengths of. O(slices).
    fn slice_bytes(&self) -> usize {
        0
    }

    /// Writes all parameters of the launch of one chunk, and says how large it
    /// is. `accesses` are in the order of the kernel's views; `sink` gets bytes
    /// and the alignment at which to append them.
    ///
    /// # Errors
    /// See [`LaunchError`].
    fn put_launch(
        &self,
        chunk: &Chunk,
        accesses: &[AccessMemory],
        sink: &mut dyn FnMut(&[u8], usize),
    ) -> Result<Geometry, LaunchError> {
        let slices = self.slice_bytes();
        let geometry = write_parameters(&Self::DESCRIPTION, slices, chunk, accesses, sink)?;
        self.put_scalars(sink);
        Ok(geometry)
    }
}

/// What a kernel is called with; implemented by `#[kernel]`, for all instances at once.
pub trait KernelForm {
    /// [`PerItem`], [`PerRow`] or [`PerGroup`], as the first parameter says.
    type Form;
}

/// The form of a kernel whose first parameter is an [`Item`]: it implements [`ItemKernel`].
#[derive(Debug)]
pub enum PerItem {}

/// The form of a kernel whose first parameter is a [`Row`]: it implements [`RowKernel`].
#[derive(Debug)]
pub enum PerRow {}

/// The form of a kernel whose first parameter is an [`NdItem`]: it implements [`GroupKernel`].
#[derive(Debug)]
pub enum PerGroup {}

/// A kernel over `K` dimensions that is called with items. `Views` are its views,
/// in the order of the accesses: one bare view, or a tuple.
///
/// ```
/// # use celerity_kernel::Module;
/// use celerity_kernel::{Item, ItemKernel, kernel};
///
/// #[kernel]
/// fn scale(_item: Item<1>, x: &mut f32, by: f32) {
///     *x *= by;
/// }
///
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {
/// let mut x = 3.0;
/// scale { by: 2.0 }.item(Item::new([0], [1]), &mut x);
/// assert_eq!(x, 6.0);
/// # }
/// ```
///
/// What does not fit is a compile error: views of another element type,
///
/// ```compile_fail,E0277
/// # use celerity_kernel::{Item, ItemKernel, Module, kernel};
/// # #[kernel]
/// # fn scale(_item: Item<1>, x: &mut f32, by: f32) {}
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn launch<K: for<'a> ItemKernel<1, &'a mut f64>>(kernel: K) {}
/// # fn main() {
/// launch(scale { by: 2.0 }); // for a buffer of `f64`
/// # }
/// ```
///
/// a neighbourhood of other dimensions than the index space,
///
/// ```compile_fail,E0277
/// # use celerity_kernel::{Item, Module, NeighborhoodItem, kernel};
/// #[kernel]
/// fn smooth(_item: Item<1>, (out, u): (&mut f32, NeighborhoodItem<'_, f32, 2>)) {
///     *out = u.clamped([0, 0]);
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
///
/// a value that is no number,
///
/// ```compile_fail,E0277
/// # use celerity_kernel::{Item, Module, kernel};
/// #[kernel]
/// fn scale(_item: Item<1>, x: &mut f32, twice: bool) {}
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
///
/// or an instance of a generic kernel that was not compiled.
///
/// ```compile_fail,E0277
/// # use celerity_kernel::{Item, Kernel, Module, kernel};
/// #[kernel(instances(f32, f64))]
/// fn copy<T: Copy + Send + Sync + 'static>(_item: Item<1>, (to, from): (&mut T, &T)) {
///     *to = *from;
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn launch<K: Kernel>(kernel: K) {}
/// # fn main() {
/// launch(copy::<u8>::new());
/// # }
/// ```
///
/// # Safety
/// `Views` are the views of the [description](Kernel::DESCRIPTION), of the same elements: what the accesses of a
/// task are checked with.
#[diagnostic::on_unimplemented(
    message = "the kernel `{Self}` does not take these views per item: `{Views}`",
    note = "views must match the accesses in number, order and element type: `&T` for \
            `read(one_to_one())`, `&mut T` for `write` and `read_write` of the same, `AtomicView` for \
            `update`, `NeighborhoodItem` for the neighbourhoods, `WholeView` for `all`, `PartView` \
            and `PartViewMut` for other parts"
)]
pub unsafe trait ItemKernel<const K: usize, Views>:
    Kernel + KernelForm<Form = PerItem>
{
    /// Runs one item on the host.
    fn item(&self, item: Item<K>, views: Views);
}

/// A kernel over `K` dimensions that is called with rows of items. Otherwise as
/// [`ItemKernel`].
///
/// # Safety
/// As of [`ItemKernel`].
#[diagnostic::on_unimplemented(
    message = "the kernel `{Self}` does not take these views per row: `{Views}`",
    note = "views must match the accesses in number, order and element type: `&[T]` for \
            `read(one_to_one())`, `&mut [T]` for `write` and `read_write` of the same, `AtomicView` \
            for `update`, `NeighborhoodRow` for the neighbourhoods, `WholeView` for `all`, \
            `PartView` and `PartViewMut` for other parts"
)]
pub unsafe trait RowKernel<const K: usize, Views>:
    Kernel + KernelForm<Form = PerRow>
{
    /// Runs one row on the host.
    fn row(&self, row: Row<K>, views: Views);
}

/// A kernel over `K` dimensions that is called with items in groups. Otherwise as
/// [`ItemKernel`].
///
/// # Safety
/// As of [`ItemKernel`].
#[diagnostic::on_unimplemented(
    message = "the kernel `{Self}` does not take these views per item of a group: `{Views}`",
    note = "views must match the accesses in number, order and element type: `&T` for \
            `read(one_to_one())`, `&mut T` for `write` and `read_write` of the same, `AtomicView` for \
            `update`, `NeighborhoodItem` for the neighbourhoods, `WholeView` for `all`, `PartView` \
            and `PartViewMut` for other parts"
)]
pub unsafe trait GroupKernel<const K: usize, Views>:
    Kernel + KernelForm<Form = PerGroup>
{
    /// Whether an item may wait for the others of its group where it cannot let go of the thread, as in a function
    /// that it calls: it needs a stack of its own, to be left there. Otherwise it only ever waits by being pending.
    const NEEDS_STACK: bool;

    /// One item on the host: it runs while it is polled. `local` is the memory of its group, with
    /// [`Description::local_bytes`] bytes, and behind them those of its [slices](Kernel::slice_bytes).
    fn item(
        &self,
        item: NdItem<'_, K>,
        views: Views,
        local: LocalMemory<'_>,
    ) -> impl Future<Output = ()>;
}
