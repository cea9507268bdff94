//! A checksum that programs in other languages can compute as well. Knows nothing of what it is of.

/// FNV-1a, 64 bits, of bytes part by part.
pub(crate) fn checksum(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
