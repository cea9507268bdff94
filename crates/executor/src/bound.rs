//! The memory that one chunk of a task may touch, as kernels and host functions get it. Knows
//! neither who allocates it nor who runs there.
#![allow(unsafe_code)]

use celerity_regions::{Box3, Region};

use crate::memory::BasePtr;

/// Live memory for one access of a chunk.
///
/// Whoever [makes](Self::new) one promises, for as long as `'a` lasts:
/// * [`base`](Self::base) points to `extent.volume()` initialised elements of the access's
///   buffer, row-major over [`extent`](Self::extent), aligned for the buffer's element type, in
///   memory of the device that runs the chunk;
/// * [`region`](Self::region) is inside `extent`, and its elements are current where the access
///   reads;
/// * nobody else writes `region`, and nobody else reads it either if the access writes, not
///   through another access of the same task either.
///
/// Elements outside of `region` must not be touched.
///
/// Safe code cannot make one, so a safe function that gets one can rely on it:
///
/// ```compile_fail,E0133
/// # use celerity_executor::BoundMemory;
/// # use celerity_regions::{Box3, Region};
/// let (extent, region) = (Box3::from_range([8]), Region::from(Box3::from_range([8])));
/// let anywhere = BoundMemory::new(std::ptr::without_provenance_mut(8), extent, &region);
/// ```
///
/// nor call a kernel with what it has got for another one:
///
/// ```compile_fail,E0133
/// # use celerity_executor::{BoundMemory, DeviceKernel};
/// # use celerity_regions::Box3;
/// fn misuse(other: &dyn DeviceKernel, chunk: &Box3, memory: &[BoundMemory<'_>]) {
///     other.run(chunk, memory);
/// }
/// ```
///
/// That accesses of a task share nothing that one of them writes is seen at submission
/// ([`ConflictingAccesses`](celerity_tdag::DeclareError::ConflictingAccesses)), and where a
/// user's mapper says something else of a chunk than of the whole index space, before the chunk
/// is launched ([`SharedElements`](celerity_idag::Diagnostic::SharedElements)).
#[derive(Clone, Copy, Debug)]
pub struct BoundMemory<'a> {
    base: *mut u8,
    extent: Box3,
    region: &'a Region,
}

// SAFETY: an address, an extent and a region: nothing is reached through them but by `unsafe` code,
// which then has to keep threads apart.
unsafe impl Send for BoundMemory<'_> {}
// SAFETY: as above.
unsafe impl Sync for BoundMemory<'_> {}

impl<'a> BoundMemory<'a> {
    /// The memory of an allocation of `extent` that begins at `base`, of which `region` may be
    /// touched.
    ///
    /// # Safety
    /// For as long as `'a` lasts it is as [the type](Self) says.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, extent: Box3, region: &'a Region) -> Self {
        Self { base, extent, region }
    }

    /// What an access is bound to that touches nothing.
    #[must_use]
    pub fn of_nothing(region: &'a Region) -> Self {
        assert!(region.is_empty(), "{region} is not nothing");
        Self { base: BasePtr::dangling().as_ptr(), extent: Box3::EMPTY, region }
    }

    /// The first element of the extent; dangling if the extent is empty.
    #[inline]
    #[must_use]
    pub const fn base(&self) -> *mut u8 {
        self.base
    }

    /// The elements that the allocation holds, in buffer coordinates.
    #[inline]
    #[must_use]
    pub const fn extent(&self) -> &Box3 {
        &self.extent
    }

    /// The elements that the chunk may touch: inside of the extent.
    #[inline]
    #[must_use]
    pub const fn region(&self) -> &'a Region {
        self.region
    }
}
