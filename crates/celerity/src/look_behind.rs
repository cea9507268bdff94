//! Looking at a value of each step without waiting for that step: a short queue of fences.

use std::collections::VecDeque;
use std::fmt;

use crate::error::Result;
use crate::fence::Awaited;

/// Looks at a value of each step some steps later, while those after it are under way.
///
/// A loop that ends when a residual is small needs to see it. If the program waits for the residual
/// of a step before it submits the next one, no device has work meanwhile: the pipeline drains,
/// once in each step. This queue of [fences](crate::Fence) lets the program look at the residual of
/// step *k* when step *k* + `ahead` has been submitted. The loop then does up to `ahead` steps more
/// than it needs.
///
/// Every node looks at the same values, in the same order, and so ends its loop at the same step.
///
/// ```
/// use celerity::prelude::*;
/// use celerity::Max;
///
/// let (looked_at, steps) = celerity::run(|queue| {
///     let u = queue.buffer_from(100, vec![1.0_f64; 100])?;
///     let residual = queue.buffer::<f64, 0>([]);
///     let mut residuals = LookBehind::new(4);
///     let (mut looked_at, mut steps) = (Vec::new(), 0);
///     while steps < 1000 {
///         let accesses = (u.read_write(one_to_one()), residual.reduce(Max));
///         queue.task("halve").parallel_for(100, accesses, |_, (u, residual)| {
///             *u /= 2.0;
///             residual.combine(*u);
///         })?;
///         steps += 1;
///         if let Some(residual) = residuals.look(queue.fence(&residual)?)? {
///             looked_at.push(residual[[]]);
///             if residual[[]] < 0.1 {
///                 break;
///             }
///         }
///     }
///     Ok((looked_at, steps))
/// })?;
/// assert_eq!(looked_at, [0.5, 0.25, 0.125, 0.0625]);
/// assert_eq!(steps, 8, "four more");
/// # Ok::<(), celerity::Error>(())
/// ```
#[must_use = "it looks only when it is given something to look at"]
pub struct LookBehind<A> {
    ahead: usize,
    /// Not looked at yet, the oldest first.
    asked: VecDeque<A>,
}

impl<A: Awaited> LookBehind<A> {
    /// Looks at a value when `ahead` later ones have been asked for. 0 waits for each at once.
    ///
    /// What is enough hides the time from the end of a kernel until the program has submitted what
    /// follows: a few steps. Each takes the memory of one value until it is looked at.
    pub fn new(ahead: usize) -> Self {
        Self { ahead, asked: VecDeque::new() }
    }

    /// Takes the fence of the newest step, and waits for that of the oldest one as soon as more
    /// than `ahead` have not been looked at: `None` until then.
    ///
    /// # Errors
    /// As waiting for the fence, which then counts as looked at.
    pub fn look(&mut self, newest: A) -> Result<Option<A::Value>> {
        self.asked.push_back(newest);
        let due = self.asked.len() > self.ahead;
        let oldest = if due { self.asked.pop_front() } else { None };
        oldest.map(A::wait_for).transpose()
    }

    /// Waits for what has not been looked at, one after the other, the oldest first.
    pub fn rest(self) -> impl ExactSizeIterator<Item = Result<A::Value>> {
        self.asked.into_iter().map(A::wait_for)
    }
}

impl<A> LookBehind<A> {
    /// How many have not been looked at.
    #[must_use]
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    /// Whether all have been looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }
}

impl<A> fmt::Debug for LookBehind<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ahead, asked) = (self.ahead, self.len());
        f.debug_struct("LookBehind").field("ahead", &ahead).field("asked", &asked).finish()
    }
}
