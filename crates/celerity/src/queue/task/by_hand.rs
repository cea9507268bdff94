//! What a task would submit, for benchmarks that run it without a runtime around it.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_executor::DeviceKernel;
use celerity_kernel::{Item, Row};

use super::TaskBuilder;
use crate::access::KernelAccesses;
use crate::error::Result;
use crate::range::IntoRange;

/// What [`TaskBuilder::parallel_for`] would submit.
///
/// # Errors
/// As [`TaskBuilder::parallel_for`].
///
/// # Safety
/// It is run with memory of these accesses, and submitted with no others.
pub unsafe fn item_kernel<A, F, const K: usize>(
    task: TaskBuilder<'_>,
    range: impl IntoRange<K>,
    accesses: A,
    kernel: F,
) -> Result<Arc<dyn DeviceKernel>>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
{
    Ok(task.lower_items(range.into_range(), accesses, kernel)?.1)
}

/// What [`TaskBuilder::parallel_for_rows`] would submit.
///
/// # Errors
/// As [`TaskBuilder::parallel_for_rows`].
///
/// # Safety
/// It is run with memory of these accesses, and submitted with no others.
pub unsafe fn row_kernel<A, F, const K: usize>(
    task: TaskBuilder<'_>,
    range: impl IntoRange<K>,
    accesses: A,
    kernel: F,
) -> Result<Arc<dyn DeviceKernel>>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
{
    Ok(task.lower_rows(range.into_range(), accesses, kernel)?.1)
}
