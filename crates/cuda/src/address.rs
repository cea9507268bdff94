//! Addresses of host memory, as drivers count them.

/// The host memory at an address that a driver has given.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    let address = usize::try_from(address).expect("64-bit hosts only");
    std::ptr::with_exposed_provenance_mut(address)
}
