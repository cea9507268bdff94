//! The checksum of a recording's body: CRC-32 as in Ethernet, gzip and PNG (reflected polynomial
//! `0xEDB88320`). Finds every burst of up to 32 damaged bits. It is no protection against somebody
//! who means harm; what is decoded is validated for that.

/// By the byte that enters: the remainder of that byte alone.
const TABLE: [u32; 256] = table();

/// The CRC-32 of `bytes`. O(bytes).
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc: u32, &byte| (crc >> 8) ^ TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)])
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte as u32, 0);
        while bit < 8 {
            let divides = remainder & 1 == 1;
            remainder = (remainder >> 1) ^ if divides { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn agrees_with_published_values() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414F_A339);
    }
}
