//! What all fences have in common: a program waits for them, one by one or several in a tuple.

use super::{Fence, ObjectFence, Snapshot};
use crate::buffer::Element;
use crate::error::Result;
use crate::tuples::for_tuples;

/// What a program can wait for: a [`Fence`], an [`ObjectFence`], a tuple of up to twenty of
/// them, of any kinds, or a `Vec` or an array of one kind; sealed.
#[diagnostic::on_unimplemented(
    message = "a program cannot wait for `{Self}`",
    label = "not a fence, nor a tuple or a list of fences",
    note = "fences are what `queue.fence(..)`, `.fence_part(..)` and `.fence_object(..)` return"
)]
pub trait Awaited: sealed::Sealed {
    /// What comes: the snapshot of a buffer, the value of a host object, a tuple of them.
    type Value;

    #[doc(hidden)]
    fn wait_for(self) -> Result<Self::Value>;
}

impl<T: Element, const D: usize> Awaited for Fence<T, D> {
    type Value = Snapshot<T, D>;

    fn wait_for(self) -> Result<Snapshot<T, D>> {
        self.wait()
    }
}

impl<T> Awaited for ObjectFence<T> {
    type Value = T;

    fn wait_for(self) -> Result<T> {
        self.wait()
    }
}

/// What only one node has asked for.
impl<A: Awaited> Awaited for Option<A> {
    type Value = Option<A::Value>;

    fn wait_for(self) -> Result<Option<A::Value>> {
        self.map(A::wait_for).transpose()
    }
}

impl<A: Awaited> Awaited for Vec<A> {
    type Value = Vec<A::Value>;

    fn wait_for(self) -> Result<Self::Value> {
        self.into_iter().map(A::wait_for).collect()
    }
}

impl<A: Awaited, const N: usize> Awaited for [A; N] {
    type Value = [A::Value; N];

    fn wait_for(self) -> Result<Self::Value> {
        let values = Vec::from(self).wait_for()?;
        Ok(values.try_into().unwrap_or_else(|_| unreachable!("there is a value of each")))
    }
}

macro_rules! tuple_awaited {
    ($($awaited:ident $name:ident $index:tt),*) => {
        impl<$($awaited: Awaited),*> Awaited for ($($awaited,)*) {
            type Value = ($($awaited::Value,)*);

            #[allow(clippy::unused_unit)]
            fn wait_for(self) -> Result<Self::Value> {
                Ok(($(self.$index.wait_for()?,)*))
            }
        }

        impl<$($awaited: sealed::Sealed),*> sealed::Sealed for ($($awaited,)*) {}
    };
}

for_tuples!(tuple_awaited);

mod sealed {
    use super::{Fence, ObjectFence};

    pub trait Sealed {}
    impl<T, const D: usize> Sealed for Fence<T, D> {}
    impl<T> Sealed for ObjectFence<T> {}
    impl<S: Sealed> Sealed for Option<S> {}
    impl<S: Sealed> Sealed for Vec<S> {}
    impl<S: Sealed, const N: usize> Sealed for [S; N] {}
}
