//! Neighbourhoods in buffers whose opposite edges meet.

use celerity_kernel::Reach;
use celerity_tdag::Mapper;

use super::{MapperFor, Neighborhood, Unfit};

/// The range mapper that [`Neighborhood::periodic`] and [`Neighborhood::periodic_along`] make: a border that goes on at
/// the opposite edge of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Periodic<const D: usize> {
    around: Neighborhood<D>,
    along: [bool; D],
    /// A dimension that was asked for, and is none.
    beyond: Option<usize>,
}

impl<const D: usize> Neighborhood<D> {
    /// The same, and opposite edges of the buffer meet: what would lie outside of it comes in again
    /// at the other side. Kernels get a [`PeriodicItem`] or a [`PeriodicRow`], and nobody copies
    /// borders. No border may be wider than the buffer.
    ///
    /// What an item at an edge reads is at both edges. Chunks at an edge along which the index space
    /// is cut therefore have what lies between in one range of addresses; memory is only behind
    /// what is touched where the system provides it page by page, as for CPU devices.
    ///
    /// [`PeriodicItem`]: celerity_kernel::PeriodicItem
    /// [`PeriodicRow`]: celerity_kernel::PeriodicRow
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let sums = celerity::run(|queue| {
    ///     let u = queue.buffer_from([2, 3], vec![1, 2, 3, 10, 20, 30])?;
    ///     let sums = queue.buffer::<i32, 2>([2, 3]);
    ///     let ring = neighborhood([1, 1]).periodic();
    ///     let accesses = (sums.write(one_to_one()), u.read(ring));
    ///     queue.task("sum").parallel_for([2, 3], accesses, |_, (sum, u)| {
    ///         *sum = u.at([0, -1]) + u.at([0, 1]) + u.at([-1, 0]);
    ///     })?;
    ///     Ok(queue.fence(&sums)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(sums, [2 + 3 + 10, 1 + 3 + 20, 1 + 2 + 30, 20 + 30 + 1, 10 + 30 + 2, 10 + 20 + 3]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn periodic(self) -> Periodic<D> {
        Periodic { around: self, along: [true; D], beyond: None }
    }

    /// As [`periodic`](Self::periodic), but edges meet along these dimensions only (0 is the
    /// slowest). Along others, what would lie outside is the nearest element inside, as
    /// [`clamped`](celerity_kernel::NeighborhoodItem::clamped) has it: a channel, whose ends meet
    /// and whose walls do not.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let means = celerity::run(|queue| {
    ///     let u = queue.buffer_from([2, 2], vec![1, 2, 10, 20])?;
    ///     let to_the_north_west = queue.buffer::<i32, 2>([2, 2]);
    ///     let channel = neighborhood([1, 1]).periodic_along([1]);
    ///     let accesses = (to_the_north_west.write(one_to_one()), u.read(channel));
    ///     queue.task("look").parallel_for([2, 2], accesses, |_, (out, u)| {
    ///         *out = u.at([-1, -1]);
    ///     })?;
    ///     Ok(queue.fence(&to_the_north_west)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(means, [2, 1, 2, 1]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn periodic_along<const N: usize>(self, dims: [usize; N]) -> Periodic<D> {
        let mut along = [false; D];
        let mut beyond = None;
        for dim in dims {
            match along.get_mut(dim) {
                Some(along) => *along = true,
                None => beyond = Some(dim),
            }
        }
        Periodic { around: self, along, beyond }
    }
}

impl<const D: usize> Periodic<D> {
    /// How far a kernel may look, and along which dimensions edges meet.
    pub(crate) fn reach(&self) -> (Reach<D>, [bool; D]) {
        (self.around.reach(), self.along)
    }
}

impl<const N: usize> MapperFor<N, N> for Periodic<N> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        match self.beyond {
            Some(dim) => Err(Unfit::PeriodicAlong { dim }),
            None => {
                let Neighborhood { shape, .. } = self.around;
                Ok(Mapper::periodic(self.around.reach().border(), shape, self.along))
            }
        }
    }
}
