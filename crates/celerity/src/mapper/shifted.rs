//! One element for each item, not that of its own index but one so far from there.

use celerity_tdag::{self as tdag, Mapper, Windows};

use super::{ChunkMapper, MapperFor, OneToOne, Unfit};

/// The range mapper that [`OneToOne::offset`] makes: an item touches the element that is so far from that of its own
/// index, in elements per dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shifted<const D: usize> {
    by: [isize; D],
}

impl OneToOne {
    /// The element of the item with this index.
    #[inline]
    pub(crate) const fn element_of<const D: usize>(self, index: [usize; D]) -> [usize; D] {
        index
    }

    /// Each item touches the element `by` so many further on along each dimension, or back: still one for each item, as `&T` or
    /// `&mut T`, and of rows as a slice. Every item of the task must have such an element: where the first or the last has
    /// none, give the index space an [offset](crate::TaskBuilder::offset), or fewer items. An access that leaves the buffer
    /// is an error when the task is submitted.
    ///
    /// To read elements to one side of items, read the buffer once for each: `(u.read(one_to_one().offset([-1])), u.read(one_to_one()))`. Only
    /// what chunks lack of them is sent.
    ///
    /// On GPUs, threads take several items at once where all rows that they touch begin at multiples of 16 bytes: with
    /// an offset along the fastest dimension that is no multiple of that, they mostly take one by one.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// // Differences of neighbours: item `i` takes elements `i` and `i + 1`.
    /// let differences = celerity::run(|queue| {
    ///     let squares = queue.buffer_from(5, vec![0, 1, 4, 9, 16])?;
    ///     let differences = queue.buffer::<i32, 1>(4);
    ///     let ahead = squares.read(one_to_one().offset([1]));
    ///     let accesses = (differences.write(one_to_one()), squares.read(one_to_one()), ahead);
    ///     queue.task("subtract").parallel_for(4, accesses, |_, (difference, here, ahead)| {
    ///         *difference = ahead - here;
    ///     })?;
    ///     Ok(queue.fence(&differences)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(differences, [1, 3, 5, 7]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub const fn offset<const D: usize>(self, by: [isize; D]) -> Shifted<D> {
        const { crate::range::check_dimensions(D) };
        Shifted { by }
    }
}

impl<const D: usize> Shifted<D> {
    /// The element of the item with this index. Where that leaves the buffer, at the front as at the end, the task graph refuses
    /// the task ([`MapperFlaw::BeforeBuffer`](crate::MapperFlaw), [`DeclareError::OutOfBounds`](crate::DeclareError)).
    #[inline]
    pub(crate) fn element_of(self, index: [usize; D]) -> [usize; D] {
        std::array::from_fn(|dim| index[dim].wrapping_add_signed(self.by[dim]))
    }
}

impl<const N: usize> MapperFor<N, N> for Shifted<N> {
    fn lower(&self) -> Result<Mapper, Unfit> {
        if self.by == [0; N] {
            return Ok(Mapper::OneToOne);
        }
        let sides: [tdag::Side; N] = std::array::from_fn(|dim| {
            let (from, first) = (dim as u8, self.by[dim] as i64);
            tdag::Side::Windows(Windows { from, stride: 1, first, width: 1, clamped: false })
        });
        Ok(Mapper::PerDimension(tdag::PerDimension::new(&sides).into()))
    }
}

impl<const N: usize> ChunkMapper<N, N> for Shifted<N> {}
