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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_one_behind_the_other() {
        let array = |bytes| LocalParameter { name: "", bytes };
        let arrays = [array(1), array(32), array(20)];
        assert_eq!([0, 1, 2, 3].map(|index| local_offset(&arrays, index)), [0, 16, 48, 80]);
    }
}
