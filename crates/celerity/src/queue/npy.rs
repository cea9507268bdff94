//! Buffers from files of NumPy (`.npy`), and files from buffers: host tasks, of which each node reads or
//! writes its own rows. Knows headers and where rows lie; what a header says is for `npyz` to find out.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use celerity_executor::contain::caught;
use celerity_tdag::TaskId;
use npyz::WriterBuilder as _;

use super::{HostTaskBuilder, Queue};
use crate::buffer::{Buffer, Element};
use crate::error::{NpyAction, NpyError, Result};
use crate::mapper::one_to_one;
use crate::partition::Partition;
use crate::range::volume;

/// Elements that files of NumPy can have; sealed. Feature `npy`.
///
/// | element | type of NumPy |
/// | --- | --- |
/// | `u8`, `u16`, `u32`, `u64` | `u1` to `u8` |
/// | `i8`, `i16`, `i32`, `i64` | `i1` to `i8` |
/// | `f32`, `f64` | `f4`, `f8` |
/// | `f16` (feature `half`) | `f2` |
/// | `Complex<f32>`, `Complex<f64>` (feature `num-complex`) | `c8`, `c16` |
#[diagnostic::on_unimplemented(
    message = "files of NumPy have no elements of type `{Self}`",
    label = "NumPy has no such number",
    note = "integers of fixed size, `f16`, `f32`, `f64` and complex numbers can be read and written"
)]
pub trait NpyElement: Element + sealed::Sealed {}

impl<T: Element + sealed::Sealed> NpyElement for T {}

mod sealed {
    /// What a number is in a header, without its order of bytes.
    pub trait Sealed {
        const CODE: &'static str;
        /// Bytes of each number of which it consists.
        const WORD: usize;
    }

    macro_rules! numbers {
        ($($number:ty: $code:literal, $word:literal;)*) => {$(
            impl Sealed for $number {
                const CODE: &'static str = $code;
                const WORD: usize = $word;
            }
        )*};
    }

    numbers! {
        u8: "u1", 1; u16: "u2", 2; u32: "u4", 4; u64: "u8", 8;
        i8: "i1", 1; i16: "i2", 2; i32: "i4", 4; i64: "i8", 8;
        f32: "f4", 4; f64: "f8", 8;
    }

    #[cfg(feature = "half")]
    numbers! { celerity_kernel::half::f16: "f2", 2; }

    #[cfg(feature = "num-complex")]
    numbers! {
        celerity_kernel::num_complex::Complex<f32>: "c8", 4;
        celerity_kernel::num_complex::Complex<f64>: "c16", 8;
    }
}

impl Queue {
    /// A new buffer with the array in a `.npy` file, and a task that reads it: each node the rows
    /// that come first to it, when it has time to. Feature `npy`.
    ///
    /// The header is read at once, by every node, so the file must be there for all of them and
    /// complete: after a task that [writes](Buffer::write_npy) it, call [`barrier`](Self::barrier)
    /// first. It must not change until the task has ended. Numbers may have either order of bytes,
    /// and arrays either order of elements. Of one in Fortran order, a node's rows lie in as many
    /// places as the array has columns, and a node passes over what lies between: read by several
    /// nodes, that is slower than a row-major array (`C` order).
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// # let path = std::env::temp_dir().join(format!("celerity-npy-{}.npy", std::process::id()));
    /// let doubled = Config::default().nodes(2).run(|queue| {
    ///     let u = queue.buffer_from([2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    ///     u.write_npy(&path)?;
    ///     queue.barrier()?; // the file is complete
    ///     let v = queue.buffer_from_npy::<f32, 2>(&path)?;
    ///     queue.task("double").parallel_for(v.range(), v.read_write(one_to_one()), |_, v| *v *= 2.0)?;
    ///     Ok(queue.fence(&v)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(doubled, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Npy`](crate::Error::Npy): if the file cannot be opened or is none of NumPy's, if
    /// its array has another type or number of dimensions, or is not all there. What goes
    /// wrong later ends the run with [`RunError::TaskFailed`](crate::RunError::TaskFailed), which
    /// has an [`NpyError`] as its source.
    #[track_caller]
    pub fn buffer_from_npy<T: NpyElement, const D: usize>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Buffer<T, D>> {
        let location = Location::caller();
        let path: Arc<Path> = path.as_ref().into();
        let Header { range, start, swapped, columns_first } = Header::read::<T>(&path)?;
        let buffer = self.buffer::<T, D>(range).named(path.display().to_string());
        let origin = self.origin(format!("read {}", path.display()).into(), location);
        let access = buffer.write(one_to_one());
        let task = HostTaskBuilder::new(origin).distributed(range);
        task.submit(access, move |partition, mut part| {
            let elements = part.try_as_relative_mut_slice().expect(SIDE_BY_SIDE);
            let read = match columns_first {
                true => read_columns(&path, start, &partition, elements),
                false => {
                    let at = start + position(&partition) * size_of::<T>() as u64;
                    read_at(&path, at, bytemuck::cast_slice_mut(elements))
                }
            };
            read.map_err(|source| NpyAction::Read.failed(&path, source))?;
            if swapped {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
                bytes.chunks_exact_mut(T::WORD).for_each(<[u8]>::reverse);
            }
            Ok(())
        })?;
        Ok(buffer)
    }
}

impl<T: NpyElement, const D: usize> Buffer<T, D> {
    /// Submits a task that writes the buffer to a `.npy` file, row-major: each node the rows that
    /// it has computed, all to one file, which all of them must reach under this path. Feature
    /// `npy`.
    ///
    /// A file of this name is overwritten. It is complete when the task has ended on all nodes, as
    /// after [`Queue::barrier`]. Tasks that write the same file may run at the same time: call it
    /// in between.
    ///
    /// # Errors
    /// As [`fill`](Self::fill). What goes wrong with the file ends the run with
    /// [`RunError::TaskFailed`](crate::RunError::TaskFailed), which has an [`NpyError`] as its
    /// source.
    #[track_caller]
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<TaskId> {
        let location = Location::caller();
        let (frontend, path) = (self.frontend()?, path.as_ref().to_owned());
        let name = format!("write {} to {}", self.name(), path.display());
        let task = HostTaskBuilder::new(self.origin(&frontend, name, location));
        let range = self.range();
        let header = header::<T, D>(range);
        if range.contains(&0) {
            let end = header.len() as u64;
            return task.once((), move |()| Ok(write_part(&path, end, &header, (end, &[]))?));
        }
        let size = size_of::<T>() as u64;
        let elements = range.iter().product::<usize>() as u64;
        let task = task.distributed(range);
        task.submit(self.read(one_to_one()), move |partition, part| {
            let elements_here = part.try_as_relative_slice().expect(SIDE_BY_SIDE);
            let bytes = bytemuck::cast_slice(elements_here);
            let end = header.len() as u64 + elements * size;
            let at = header.len() as u64 + position(&partition) * size;
            let header = if at == header.len() as u64 { header.as_slice() } else { &[] };
            Ok(write_part(&path, end, header, (at, bytes))?)
        })
    }
}

const SIDE_BY_SIDE: &str = "parts are bands of whole rows, whose elements lie side by side";

/// The position of the part's first element among all, row-major.
fn position<const D: usize>(partition: &Partition<D>) -> u64 {
    let (first, range) = (partition.subrange().offset, partition.global().range);
    let position = first.iter().zip(range).fold(0, |all, (index, size)| all * size + index);
    position as u64
}

fn read_at(path: &Path, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

/// So much is read of a file at a time, if what is wanted of it lies in many places.
const READ_AHEAD: usize = 1 << 18;

/// Reads the rows of `partition`, row-major, of an array in Fortran order that begins at `start`:
/// the first index runs fastest there, so these rows lie in as many runs as a row has elements.
fn read_columns<T: NpyElement, const D: usize>(
    path: &Path,
    start: u64,
    partition: &Partition<D>,
    rows: &mut [T],
) -> io::Result<()> {
    let (part, all) = (partition.subrange(), partition.global().range);
    // There is no order along fewer dimensions.
    let (first, height, total) = (part.offset[0], part.range[0], all[0]);
    let columns = &all[1..];
    let width: usize = columns.iter().product();
    let size = size_of::<T>();
    let mut file = BufReader::with_capacity(READ_AHEAD, File::open(path)?);
    file.seek(SeekFrom::Start(start + (first * size) as u64))?;
    let mut run = vec![<T as bytemuck::Zeroable>::zeroed(); height];
    // Which element of a row comes next.
    let mut at = [0; D];
    for nth in 0..width {
        if nth > 0 {
            file.seek_relative(((total - height) * size) as i64)?;
        }
        file.read_exact(bytemuck::cast_slice_mut(&mut run))?;
        let column = at[1..].iter().zip(columns).fold(0, |all, (index, size)| all * size + index);
        let places = rows[column..].iter_mut().step_by(width);
        places.zip(&run).for_each(|(place, element)| *place = *element);
        for (index, &size) in at[1..].iter_mut().zip(columns) {
            *index = (*index + 1) % size;
            if *index > 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Writes a part of a file that has `end` bytes in all. Who comes first makes the file; all give it
/// the same length, and nobody takes away what others have written.
fn write_part(
    path: &Path,
    end: u64,
    header: &[u8],
    (at, bytes): (u64, &[u8]),
) -> Result<(), NpyError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        file.set_len(end)?;
        file.write_all(header)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    };
    write().map_err(|source| NpyAction::Write.failed(path, source))
}

/// What a file begins with.
fn header<T: NpyElement, const D: usize>(range: [usize; D]) -> Vec<u8> {
    // A byte has no order.
    let order = if size_of::<T>() == 1 { '|' } else { '<' };
    let number = format!("{order}{}", T::CODE).parse().expect("a type of NumPy");
    let options = npyz::WriteOptions::new_header_only();
    let options =
        options.dtype(npyz::DType::new_scalar(number)).shape(&range.map(|size| size as u64));
    options.writer(Vec::new()).write_header_only().expect("memory takes what is written")
}

/// What a file's header says.
struct Header<const D: usize> {
    range: [usize; D],
    /// Where the first element lies.
    start: u64,
    /// Whether numbers begin with their highest byte.
    swapped: bool,
    /// Whether columns come one after the other, of an array of several rows and columns.
    columns_first: bool,
}

impl<const D: usize> Header<D> {
    fn read<T: NpyElement>(path: &Path) -> Result<Self, NpyError> {
        let open = |source| NpyError::Open { path: path.into(), source };
        let file = File::open(path).map_err(open)?;
        let bytes = file.metadata().map_err(open)?.len();
        let mut file = BufReader::new(file);
        let invalid = |source| NpyError::Header { path: path.into(), source };
        // It counts elements without a look at how many there can be.
        let header = caught(|| npyz::NpyHeader::from_reader(&mut file)).unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it has more elements than can be counted",
            ))
        });
        let header = header.map_err(invalid)?;
        let start = file.stream_position().map_err(invalid)?;
        let swapped = is_swapped::<T>(path, &header)?;
        let range = range(path, &header)?;
        let elements = volume(range).and_then(|elements| elements.checked_mul(size_of::<T>()));
        let end = elements.and_then(|elements| start.checked_add(elements as u64));
        match end {
            Some(end) if end <= bytes => {
                let columns_first = is_columns_first(&header);
                Ok(Self { range, start, swapped, columns_first })
            }
            _ => Err(NpyError::Length { path: path.into(), shape: header.shape().into(), bytes }),
        }
    }
}

fn is_swapped<T: NpyElement>(path: &Path, header: &npyz::NpyHeader) -> Result<bool, NpyError> {
    let found = header.dtype().descr();
    let text = found.trim_matches('\'');
    match text.strip_suffix(T::CODE) {
        Some("<" | "|" | "=") => Ok(false),
        Some(">") => Ok(true),
        _ => Err(NpyError::Type {
            path: path.into(),
            shape: header.shape().into(),
            found: text.into(),
            expected: T::CODE,
            element: std::any::type_name::<T>(),
        }),
    }
}

fn range<const D: usize>(path: &Path, header: &npyz::NpyHeader) -> Result<[usize; D], NpyError> {
    let (path, shape): (PathBuf, _) = (path.into(), header.shape());
    let Ok(range) = <[u64; D]>::try_from(shape) else {
        return Err(NpyError::Dimensions { path, shape: shape.into(), dims: D });
    };
    Ok(range.map(|size| size as usize))
}

/// Whether an array is in Fortran order, and not in the other one, too, as along one dimension.
fn is_columns_first(header: &npyz::NpyHeader) -> bool {
    let lines = header.shape().iter().filter(|&&size| size != 1).count();
    header.order() == npyz::Order::Fortran && lines > 1 && !header.shape().contains(&0)
}
