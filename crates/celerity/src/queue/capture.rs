//! Captures: what a program takes out of the runtime at a barrier, or at its end, as values
//! (IJPP 2022, §5.3).

use std::panic::Location;

use celerity_executor::{NodeFrontend, RunError};
use celerity_regions::Subrange;

use super::Queue;
use super::asking::Asking;
use crate::buffer::{Buffer, Element};
use crate::error::Result;
use crate::fence::{Awaited, Fence, ObjectFence, Snapshot};
use crate::object::HostObject;
use crate::tuples::for_tuples;

/// A request for a copy of a part of a buffer: what [`Buffer::capture`] and
/// [`Buffer::capture_part`] return, for [`Queue::barrier_with`] and [`Queue::finish`], which make a
/// [`Snapshot`] of it.
#[derive(Debug)]
#[must_use = "a capture does nothing until it is given to `barrier_with` or `finish`"]
pub struct BufferCapture<T, const D: usize> {
    buffer: Buffer<T, D>,
    part: Subrange<D>,
}

/// A request for a copy of a host object's value: what [`HostObject::capture`] returns, for
/// [`Queue::barrier_with`] and [`Queue::finish`], which make a `T` of it.
#[derive(Debug)]
#[must_use = "a capture does nothing until it is given to `barrier_with` or `finish`"]
pub struct ObjectCapture<T> {
    object: HostObject<T>,
}

/// A capture for one node: what [`BufferCapture::on_node`] and [`ObjectCapture::on_node`] return.
/// `Some` value on that node, `None` on all others.
#[derive(Debug)]
#[must_use = "a capture does nothing until it is given to `barrier_with` or `finish`"]
pub struct OnNode<C> {
    capture: C,
    node: usize,
}

impl<T: Element, const D: usize> Buffer<T, D> {
    /// Asks for a copy of the whole buffer at a barrier, or at the end: see
    /// [`Queue::barrier_with`].
    pub fn capture(&self) -> BufferCapture<T, D> {
        self.capture_part(Subrange::whole(self.range()))
    }

    /// Asks for a copy of a part of the buffer, whose elements have been written, at a barrier, or
    /// at the end: see [`Queue::barrier_with`].
    pub fn capture_part(&self, part: Subrange<D>) -> BufferCapture<T, D> {
        BufferCapture { buffer: self.clone(), part }
    }
}

impl<T: Clone + Send + 'static> HostObject<T> {
    /// Asks for a clone of this node's value at a barrier, or at the end, behind all earlier tasks
    /// with the object: see [`Queue::barrier_with`]. The object goes on;
    /// [`take`](Self::take) gives back a value that is no `Clone`, and ends it.
    ///
    /// ```compile_fail,E0599
    /// use celerity::prelude::*;
    ///
    /// struct Connection; // is not `Clone`
    ///
    /// celerity::run(|queue| {
    ///     let link = queue.host_object(Connection);
    ///     queue.barrier_with(link.capture())?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn capture(&self) -> ObjectCapture<T> {
        ObjectCapture { object: self.clone() }
    }
}

impl<T: Element, const D: usize> BufferCapture<T, D> {
    /// Asks for the copy on this node alone, counted from 0: no other one gets the data, and each
    /// finds `None`. All nodes ask for the same node.
    pub fn on_node(self, node: usize) -> OnNode<Self> {
        OnNode { capture: self, node }
    }
}

impl<T: Clone + Send + 'static> ObjectCapture<T> {
    /// Asks for the value of this node alone, counted from 0: each other node finds `None`. All
    /// nodes ask for the same node.
    pub fn on_node(self, node: usize) -> OnNode<Self> {
        OnNode { capture: self, node }
    }
}

/// What a program can take out at a barrier or at its end: a capture, a tuple of up to twenty, or a
/// `Vec` or an array of captures of one type; sealed.
#[diagnostic::on_unimplemented(
    message = "a barrier cannot capture `{Self}`",
    label = "not a capture, nor a tuple or a list of captures",
    note = "captures are what `.capture()` and `.capture_part(..)` of a buffer, and `.capture()` of \
            a host object return, each perhaps followed by `.on_node(..)`, and tuples of up to twenty"
)]
pub trait Captures: sealed::Sealed {
    /// What comes of it: [`Snapshot`]s of buffers, values of host objects, an `Option` for what
    /// one node has asked for; for a tuple a tuple of them, and for a list a list.
    type Values;
    #[doc(hidden)]
    type Asked: Awaited<Value = Self::Values>;

    #[doc(hidden)]
    fn ask(self, queue: &Queue, asking: Asking) -> Result<Self::Asked>;
}

impl<T: Element, const D: usize> Captures for BufferCapture<T, D> {
    type Values = Snapshot<T, D>;
    type Asked = Fence<T, D>;

    fn ask(self, queue: &Queue, asking: Asking) -> Result<Fence<T, D>> {
        queue.ask_part(&self.buffer, self.part, asking)
    }
}

impl<T: Clone + Send + 'static> Captures for ObjectCapture<T> {
    type Values = T;
    type Asked = ObjectFence<T>;

    fn ask(self, queue: &Queue, asking: Asking) -> Result<ObjectFence<T>> {
        queue.ask_clone(&self.object, asking)
    }
}

impl<C: Captures> Captures for OnNode<C> {
    type Values = Option<C::Values>;
    type Asked = Option<C::Asked>;

    fn ask(self, queue: &Queue, asking: Asking) -> Result<Option<C::Asked>> {
        let asked = self.capture.ask(queue, Asking { node: Some(self.node), ..asking })?;
        Ok((self.node == queue.node()).then_some(asked))
    }
}

impl<C: Captures> Captures for Vec<C> {
    type Values = Vec<C::Values>;
    type Asked = Vec<C::Asked>;

    fn ask(self, queue: &Queue, asking: Asking) -> Result<Self::Asked> {
        self.into_iter().map(|capture| capture.ask(queue, asking)).collect()
    }
}

impl<C: Captures, const N: usize> Captures for [C; N] {
    type Values = [C::Values; N];
    type Asked = [C::Asked; N];

    fn ask(self, queue: &Queue, asking: Asking) -> Result<Self::Asked> {
        let asked = Vec::from(self).ask(queue, asking)?;
        Ok(asked.try_into().unwrap_or_else(|_| unreachable!("each has been asked for")))
    }
}

macro_rules! tuple_captures {
    ($($capture:ident $name:ident $index:tt),*) => {
        impl<$($capture: Captures),*> Captures for ($($capture,)*) {
            type Values = ($($capture::Values,)*);
            type Asked = ($($capture::Asked,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn ask(self, queue: &Queue, asking: Asking) -> Result<Self::Asked> {
                Ok(($(self.$index.ask(queue, asking)?,)*))
            }
        }

        impl<$($capture: sealed::Sealed),*> sealed::Sealed for ($($capture,)*) {}
    };
}

for_tuples!(tuple_captures);

impl Queue {
    /// A [`barrier`](Self::barrier) that gives the program values: waits until everything that was
    /// submitted so far is done, on all nodes, and returns copies of buffers, of parts of buffers
    /// and of host objects, as they are then.
    ///
    /// All of it is on its way before the program waits, once. Every node must call this, at the
    /// same point of the program and with the same captures, and gets a copy of each, except for
    /// those that are asked for [on one node](BufferCapture::on_node).
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// Config::default().nodes(2).run(|queue| {
    ///     let u = queue.buffer::<u32, 1>(8);
    ///     let log = queue.host_object(Vec::new());
    ///     queue.task("count").parallel_for(8, u.write(one_to_one()), |i, u| *u = i[0] as u32)?;
    ///     queue.host_task("note").everywhere(log.sequential(), |part, log| log.push(part.node()))?;
    ///
    ///     let end = Subrange { offset: [6], range: [2] };
    ///     let last = u.capture_part(end).on_node(1);
    ///     let (u, log, last) = queue.barrier_with((u.capture(), log.capture(), last))?;
    ///     assert_eq!(u[3], 3);
    ///     assert_eq!(log, [queue.node()]);
    ///     assert_eq!(last.map(|last| last.into_vec()), (queue.node() == 1).then(|| vec![6, 7]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fence_part`](Self::fence_part) and [`fence_object`](Self::fence_object), and
    /// [`Error::NoSuchNode`](crate::Error::NoSuchNode): then nothing is waited for, and the run
    /// goes on. As [`barrier`](Self::barrier) and [`Fence::wait`].
    #[track_caller]
    pub fn barrier_with<C: Captures>(&self, captures: C) -> Result<C::Values> {
        self.extract(captures, Location::caller(), NodeFrontend::barrier)
    }

    /// Ends the run on this node with a [`barrier_with`](Self::barrier_with): what it returns is
    /// what the run leaves. `()` captures nothing.
    ///
    /// Nothing can be submitted afterwards: tasks, fences and barriers are refused with
    /// [`RunError::Ended`]. The program itself goes on, and its other nodes, too. A program that
    /// does not call this ends the same way when it returns. Every node must call it, or none.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let (squares, sum) = celerity::run(|queue| {
    ///     let squares = queue.buffer::<u64, 1>(10);
    ///     let sum = queue.buffer::<u64, 0>([]);
    ///     let accesses = (squares.write(one_to_one()), sum.reduce(celerity::Sum));
    ///     queue.task("square").parallel_for(10, accesses, |item, (square, sum)| {
    ///         *square = (item[0] * item[0]) as u64;
    ///         sum.combine(*square);
    ///     })?;
    ///     queue.finish((squares.capture(), sum.capture()))
    /// })?;
    /// assert_eq!((squares[9], sum[[]]), (81, 285));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`barrier_with`](Self::barrier_with).
    #[track_caller]
    pub fn finish<C: Captures>(&self, captures: C) -> Result<C::Values> {
        self.extract(captures, Location::caller(), NodeFrontend::finish)
    }

    fn extract<C: Captures>(
        &self,
        captures: C,
        location: &'static Location<'static>,
        wait: fn(&NodeFrontend) -> Result<(), RunError>,
    ) -> Result<C::Values> {
        let asked = captures.ask(self, Asking { act: "capture of", node: None, location })?;
        wait(&self.frontend)?;
        asked.wait_for()
    }
}

mod sealed {
    use super::{BufferCapture, ObjectCapture, OnNode};

    pub trait Sealed {}
    impl<T, const D: usize> Sealed for BufferCapture<T, D> {}
    impl<T> Sealed for ObjectCapture<T> {}
    impl<C> Sealed for OnNode<C> {}
    impl<C: Sealed> Sealed for Vec<C> {}
    impl<C: Sealed, const N: usize> Sealed for [C; N] {}
}
