//! Base addresses as entry points take them. References, not raw pointers: the
//! compiler learns from their types that nothing else aliases what they lead to,
//! and uses the read-only cache.

use core::fmt;

/// Stands for all elements of an allocation. Has no size of its own, so a
/// reference to it says nothing of how many there are.
#[repr(C, align(16))]
struct Allocation<T>([T; 0]);

/// The base of an allocation that a launch only reads.
#[repr(transparent)]
pub struct SharedPointer<T: 'static>(&'static Allocation<T>);

/// The base of an allocation that a launch alone uses through this access.
#[repr(transparent)]
pub struct ExclusivePointer<T: 'static>(&'static mut Allocation<T>);

/// A base address with the type of its elements; sealed.
pub trait DevicePointer: sealed::Sealed {
    /// The type of the elements that it points to.
    type Element;

    /// The first element, if there is one. Only an [`ExclusivePointer`] may be
    /// written through.
    fn address(&mut self) -> *mut Self::Element;
}

impl<T> DevicePointer for SharedPointer<T> {
    type Element = T;

    #[inline]
    fn address(&mut self) -> *mut T {
        core::ptr::from_ref(self.0).cast::<T>().cast_mut()
    }
}

impl<T> DevicePointer for ExclusivePointer<T> {
    type Element = T;

    #[inline]
    fn address(&mut self) -> *mut T {
        core::ptr::from_mut(self.0).cast()
    }
}

impl<T> fmt::Debug for SharedPointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPointer({:p})", self.0)
    }
}

impl<T> fmt::Debug for ExclusivePointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExclusivePointer({:p})", self.0)
    }
}

/// What a device does with an address; here, for launches that tests run on the
/// host.
#[cfg(test)]
#[allow(unsafe_code)]
pub(super) mod host {
    use super::*;

    pub(in crate::abi) trait FromAddress: DevicePointer {
        /// # Safety
        /// The elements are there as long as the pointer is used, and used through
        /// it alone if they are written.
        unsafe fn from_address(address: u64) -> Self;
    }

    impl<T> FromAddress for SharedPointer<T> {
        unsafe fn from_address(address: u64) -> Self {
            // SAFETY: not null, aligned for its type, and of size 0.
            Self(unsafe { &*core::ptr::with_exposed_provenance(address as usize) })
        }
    }

    impl<T> FromAddress for ExclusivePointer<T> {
        unsafe fn from_address(address: u64) -> Self {
            // SAFETY: as above.
            Self(unsafe { &mut *core::ptr::with_exposed_provenance_mut(address as usize) })
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::SharedPointer<T> {}
    impl<T> Sealed for super::ExclusivePointer<T> {}
}
