//! The forms of kernels.

/// What a kernel is called with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Item,
    Row,
    /// Items in groups.
    Group,
}
