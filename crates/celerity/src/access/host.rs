//! What host tasks get for their accesses.
#![allow(unsafe_code)]

use celerity_executor::BoundMemory;
use celerity_kernel::{Bounds, PartView, PartViewMut, WholeView, WholeViewMut};

use super::elements::AccessedElements;
use super::kernel::sealed::Sealed;
use super::memories::{Memories, next};
use super::{Lowering, ReadAccess, WriteAccess};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::{
    All, CustomMapper, DisjointMapper, Fixed, Neighborhood, OneToOne, PerDimension, Shifted, Slice,
};
use crate::tuples::for_tuples;

/// An access that a host task over `K` dimensions can have; sealed.
///
/// A task that runs once has an index space of 0 dimensions, so `all`, `fixed`
/// and mappers over 0 dimensions fit. One that runs on every node, collective or not, has one item
/// per node in 1 dimension, and one that is distributed what the program says. Through a
/// neighbourhood along axes it gets the box around it.
///
/// A `Vec` or an array of accesses of one type is one, too: for buffers whose number a program
/// learns when it runs.
///
/// ```
/// use celerity::prelude::*;
///
/// let total = Config::default().nodes(2).run(|queue| {
///     // As many buffers as there are blocks of a mesh, of their own sizes.
///     let blocks: Result<Vec<_>, _> =
///         [3, 5, 2].into_iter().map(|size| queue.buffer_from(size, vec![1_u64; size])).collect();
///     let (blocks, total) = (blocks?, queue.buffer::<u64, 0>([]));
///     let reads: Vec<_> = blocks.iter().map(|block| block.read(all())).collect();
///     queue.host_task("sum").once((reads, total.write(all())), |(blocks, mut total)| {
///         total[[]] = blocks.iter().flat_map(|block| block.as_slice()).sum();
///     })?;
///     Ok(queue.fence(&total)?.wait()?[[]])
/// })?;
/// assert_eq!(total, 10);
/// # Ok::<(), celerity::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a host task cannot have the access `{Self}`",
    label = "not an access that a host task can have",
    note = "a task that runs once has no index space to map: use `all()` or `fixed(..)`",
    note = "one that is distributed maps its index space as a kernel does, and writes through \
            `one_to_one`, `slice` or `disjoint_mapper`"
)]
pub trait HostAccess<const K: usize = 0>: Sealed {
    /// What the host task gets.
    type View<'a>;
    #[doc(hidden)]
    type Plan: Clone + Send + Sync + 'static;
    #[doc(hidden)]
    type Bound<'m>;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// Takes its memory, if it is an access to a buffer.
    ///
    /// # Safety
    /// The next of `memory` keeps the executor's promise for this access, if it is one to a buffer.
    #[doc(hidden)]
    unsafe fn bind<'m>(plan: Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m>;

    #[doc(hidden)]
    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a>;
}

impl<T: Element, const K: usize, const D: usize> HostAccess<K> for ReadAccess<T, D, All> {
    type View<'a> = WholeView<'a, T, D>;
    type Plan = [usize; D];
    type Bound<'m> = (AccessedElements<'m, T, D>, [usize; D]);

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<[usize; D]> {
        let range = self.buffer.range();
        self.lower_to::<K>(lowering)?;
        Ok(range)
    }

    unsafe fn bind<'m>(range: [usize; D], memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        (unsafe { AccessedElements::new(next(memory)) }, range)
    }

    fn view<'a>((elements, range): &'a mut Self::Bound<'_>) -> WholeView<'a, T, D> {
        // SAFETY: nobody writes what is bound to a read, not through another access of the
        // task either: see `BoundMemory`.
        unsafe { elements.whole(*range) }
    }
}

/// In a task with several items it is refused when it is submitted: all would write the same.
impl<T: Element, const K: usize, const D: usize> HostAccess<K> for WriteAccess<T, D, All> {
    type View<'a> = WholeViewMut<'a, T, D>;
    type Plan = [usize; D];
    type Bound<'m> = (AccessedElements<'m, T, D>, [usize; D]);

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<[usize; D]> {
        let range = self.buffer.range();
        self.lower_to::<K>(lowering)?;
        Ok(range)
    }

    unsafe fn bind<'m>(range: [usize; D], memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        (unsafe { AccessedElements::new(next(memory)) }, range)
    }

    fn view<'a>((elements, range): &'a mut Self::Bound<'_>) -> WholeViewMut<'a, T, D> {
        // SAFETY: nobody else touches what is bound to a write, see `BoundMemory`, and
        // `elements` is borrowed exclusively.
        unsafe { elements.whole_mut(*range) }
    }
}

/// Through the remaining mappers, host tasks see the declared part.
macro_rules! host_reads {
    ([$($generics:tt)*] $mapper:ty, $k:tt, $d:tt, $lower:expr) => {
        impl<T: Element, $($generics)*> HostAccess<$k> for ReadAccess<T, $d, $mapper> {
            type View<'a> = PartView<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = AccessedElements<'m, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                $lower(self).lower_to::<$k>(lowering)
            }

            unsafe fn bind<'m>((): (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { AccessedElements::new(next(memory)) }
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
                // SAFETY: nobody writes what is bound to a read, not through another access of the
                // task either: see `BoundMemory`.
                unsafe { bound.part() }
            }
        }
    };
}

/// As [`host_reads`].
macro_rules! host_writes {
    ([$($generics:tt)*] $mapper:ty, $k:tt, $d:tt) => {
        impl<T: Element, $($generics)*> HostAccess<$k> for WriteAccess<T, $d, $mapper> {
            type View<'a> = PartViewMut<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = AccessedElements<'m, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<$k>(lowering)
            }

            unsafe fn bind<'m>((): (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { AccessedElements::new(next(memory)) }
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
                let part: Bounds<$d> = bound.single_box();
                // SAFETY: nobody else touches what is bound to a write, see
                // `BoundMemory`, and `bound` is borrowed exclusively.
                unsafe { bound.part_mut(part) }
            }
        }
    };
}

host_reads!([const N: usize] OneToOne, N, N, |access| access);
host_reads!([const N: usize] Shifted<N>, N, N, |access| access);
host_reads!([const N: usize] Slice, N, N, |access| access);
host_reads!([const N: usize] Neighborhood<N>, N, N, Self::boxed);
host_reads!([const K: usize, const D: usize] Fixed<D>, K, D, |access| access);
host_reads!([const K: usize, const D: usize] PerDimension<D>, K, D, |access| access);
host_reads!([const K: usize, const D: usize] CustomMapper<K, D>, K, D, |access| access);
host_reads!([const K: usize, const D: usize] DisjointMapper<K, D>, K, D, |access| access);

host_writes!([const N: usize] OneToOne, N, N);
host_writes!([const N: usize] Shifted<N>, N, N);
host_writes!([const N: usize] Slice, N, N);
host_writes!([const K: usize, const D: usize] Fixed<D>, K, D);
host_writes!([const K: usize, const D: usize] PerDimension<D>, K, D);
host_writes!([const K: usize, const D: usize] DisjointMapper<K, D>, K, D);
// Of one item, so that there is nobody else to write the same.
host_writes!([const D: usize] CustomMapper<0, D>, 0, D);

impl<T: Element, const N: usize> ReadAccess<T, N, Neighborhood<N>> {
    /// The same with a neighbourhood that is a box, as views of parts are.
    fn boxed(self) -> Self {
        Self { mapper: self.mapper.boxed(), ..self }
    }
}

/// The accesses of a host task: one access, a list of accesses of one type, as a `Vec` or an array, or a
/// tuple of up to twenty of these; sealed. The function gets the views in the same order, and
/// of a list a list.
#[diagnostic::on_unimplemented(
    message = "a host task cannot have the accesses `{Self}`",
    label = "not accesses that a host task can have",
    note = "a task that runs once has no index space to map: use `all()` or `fixed(..)`",
    note = "one that is distributed maps its index space as a kernel does, and writes through \
            `one_to_one`, `slice` or `disjoint_mapper`"
)]
pub trait HostAccesses<const K: usize = 0>: Sealed {
    /// What the host task gets.
    type Views<'a>;
    #[doc(hidden)]
    type Plan: Clone + Send + Sync + 'static;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// # Safety
    /// As [`HostAccess::bind`], for one memory per access to a buffer, in order.
    #[doc(hidden)]
    unsafe fn call<F, R>(plan: Self::Plan, memory: &[BoundMemory<'_>], function: F) -> R
    where
        F: for<'a> FnOnce(Self::Views<'a>) -> R;
}

macro_rules! tuple_host_accesses {
    ($($access:ident $bound:ident $index:tt),*) => {
        impl<const K: usize, $($access: HostAccess<K>),*> HostAccesses<K> for ($($access,)*) {
            type Views<'a> = ($($access::View<'a>,)*);
            type Plan = ($($access::Plan,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.reserve(<[usize]>::len(&[$($index),*]));
                Ok(($(self.$index.lower(lowering)?,)*))
            }

            #[allow(unused_variables, unused_mut)]
            unsafe fn call<Function, R>(
                plan: Self::Plan,
                memory: &[BoundMemory<'_>],
                function: Function,
            ) -> R
            where
                Function: for<'a> FnOnce(Self::Views<'a>) -> R,
            {
                let mut memory = memory.iter();
                // SAFETY: passed on; each access takes as much of the memory as is its own.
                $(let mut $bound = unsafe { $access::bind(plan.$index, &mut memory) };)*
                function(($($access::view(&mut $bound),)*))
            }
        }
    };
}

for_tuples!(tuple_host_accesses);

/// A single access is a tuple of one whose function gets the view bare.
macro_rules! single_host_access {
    ([$($generics:tt)*] $access:ty) => {
        impl<$($generics)*, const K: usize> HostAccesses<K> for $access
        where
            Self: HostAccess<K>,
        {
            type Views<'a> = <Self as HostAccess<K>>::View<'a>;
            type Plan = <(Self,) as HostAccesses<K>>::Plan;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                <(Self,) as HostAccesses<K>>::lower((self,), lowering)
            }

            unsafe fn call<F, R>(plan: Self::Plan, memory: &[BoundMemory<'_>], function: F) -> R
            where
                F: for<'a> FnOnce(Self::Views<'a>) -> R,
            {
                let bare = |(view,): <(Self,) as HostAccesses<K>>::Views<'_>| function(view);
                // SAFETY: passed on.
                unsafe { <(Self,) as HostAccesses<K>>::call(plan, memory, bare) }
            }
        }
    };
}
pub(super) use single_host_access;

single_host_access!([T, M, const D: usize] ReadAccess<T, D, M>);
single_host_access!([T, M, const D: usize] WriteAccess<T, D, M>);
