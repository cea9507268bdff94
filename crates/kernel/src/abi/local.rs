//! Where the arrays of local memory lie in what a launch gives each group.

/// What every array of local memory begins at a multiple of, in bytes.
pub(crate) const ALIGNMENT: usize = 16;

/// An array of local memory that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalParameter {
    /// Its name in the user's source.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
}

/// Where the array at `index` begins; behind the last, the size of all. O(index).
#[must_use]
pub const fn local_offset(arrays: &[LocalParameter], index: usize) -> usize {
    let (mut offset, mut array) = (0, 0);
    while array < index {
        offset += arrays[array].bytes.next_multiple_of(ALIGNMENT);
        array += 1;
    }
    offset
}

/// Bytes of slices of local memory, behind each other: of each, how many values there are, and the bytes of
/// one. As many as there are numbers for, if they are more. O(slices).
#[must_use]
#[inline(always)]
pub const fn slices_bytes(slices: &[(usize, usize)]) -> usize {
    let (mut bytes, mut slice) = (0_usize, 0);
    while slice < slices.len() {
        let (len, size) = slices[slice];
        bytes = match len.saturating_mul(size).checked_next_multiple_of(ALIGNMENT) {
            Some(more) => bytes.saturating_add(more),
            None => usize::MAX,
        };
        slice += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_one_behind_the_other() {
        let array = |bytes| LocalParameter { name: "", bytes };
        let arrays = [array(1), array(32), array(20)];
        assert_eq!([0, 1, 2, 3].map(|index| local_offset(&arrays, index)), [0, 16, 48, 80]);
    }

    #[test]
    fn slices_lie_one_behind_the_other() {
        assert_eq!(slices_bytes(&[]), 0);
        assert_eq!(slices_bytes(&[(1, 1), (0, 8), (5, 4)]), 16 + 32);
        for slices in [&[(usize::MAX, 1)][..], &[(1 << 61, 8), (1, 1)], &[(1, 1), (1 << 62, 4)]] {
            assert_eq!(slices_bytes(slices), usize::MAX);
        }
    }
}
