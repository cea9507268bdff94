//! Accesses to elements that all items of a chunk update together.
#![allow(unsafe_code)]

use celerity_kernel::{Atomic, AtomicView, Row};

use super::KernelAccess;
use crate::access::memories::{Memories, next};
use crate::access::{AccessedElements, Lowering, Rows, UpdateAccess};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::ChunkMapper;

impl<T, M, const K: usize, const D: usize> KernelAccess<K> for UpdateAccess<T, D, M>
where
    T: Element + Atomic,
    M: ChunkMapper<K, D>,
{
    type ItemView<'a> = AtomicView<'a, T, D>;
    type RowView<'a> = AtomicView<'a, T, D>;
    type Plan = ();
    type Bound<'m> = AtomicView<'m, T, D>;
    type Rows<'r> = &'r AtomicView<'r, T, D>;
    type Cursor<'r> = &'r AtomicView<'r, T, D>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
        self.lower_to::<K>(lowering)
    }

    unsafe fn bind<'m>((): &'m (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; all cursors of the access are such views of single steps, and
        // nobody else touches what is bound to a write: see `BoundMemory`.
        unsafe { AccessedElements::new(next(memory)).shared() }
    }

    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<K>) -> Self::Rows<'r> {
        bound
    }

    shared_view!(K);
}
