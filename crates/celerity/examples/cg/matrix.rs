//! Sparse matrices in compressed rows: Poisson's equation on a grid, and which parts of buffers a run
//! of rows needs. Knows nothing of how a system is solved.

use std::ops::Range;
use std::sync::Arc;

use celerity::CustomMapper;
use celerity::prelude::*;

/// A sparse matrix in compressed rows.
#[derive(Debug)]
pub(crate) struct Matrix {
    /// Where each row begins in the other two, and where the last one ends.
    ends: Vec<usize>,
    /// Ascending in each row.
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Matrix {
    /// Minus the Laplacian on a grid of `edge` points along each of `dims` dimensions, times the
    /// square of their distance; zero around the grid. Symmetric and positive definite, with
    /// 2 · `dims` + 1 entries in most rows.
    pub(crate) fn poisson(edge: usize, dims: u32) -> Self {
        let rows = edge.pow(dims);
        let mut matrix = Self { ends: vec![0], columns: Vec::new(), values: Vec::new() };
        for row in 0..rows {
            let strides = || (0..dims).rev().map(|dim| edge.pow(dim));
            for stride in strides().filter(|stride| row / stride % edge > 0) {
                matrix.push(row - stride, -1.0);
            }
            matrix.push(row, 2.0 * f64::from(dims));
            for stride in strides().rev().filter(|stride| row / stride % edge + 1 < edge) {
                matrix.push(row + stride, -1.0);
            }
            matrix.ends.push(matrix.columns.len());
        }
        matrix
    }

    fn push(&mut self, column: usize, value: f64) {
        self.columns.push(u32::try_from(column).expect("options allow no more unknowns"));
        self.values.push(value);
    }

    pub(crate) fn rows(&self) -> usize {
        self.ends.len() - 1
    }

    /// How many of its elements are stored.
    pub(crate) fn entries(&self) -> usize {
        self.values.len()
    }

    /// A row times a vector.
    pub(crate) fn row_times(&self, row: usize, x: &[f64]) -> f64 {
        let entries = self.ends[row]..self.ends[row + 1];
        let products = entries.map(|at| self.values[at] * x[self.columns[at] as usize]);
        products.fold(0.0, |sum, product| sum + product)
    }
}

/// A matrix in buffers.
#[derive(Debug)]
pub(crate) struct Sparse {
    pub(crate) ends: Buffer<usize, 1>,
    pub(crate) columns: Buffer<u32, 1>,
    pub(crate) values: Buffer<f64, 1>,
    /// Where rows begin and end among the entries.
    places: Arc<[usize]>,
    /// For each row, a column that neither it nor a later row has anything before …
    first_columns: Arc<[usize]>,
    /// … and one that neither it nor an earlier row has anything behind.
    last_columns: Arc<[usize]>,
}

impl Sparse {
    pub(crate) fn new(queue: &Queue, matrix: &Matrix) -> celerity::Result<Self> {
        let Matrix { ends, columns, values } = matrix;
        let column = |at: usize| columns[at] as usize;
        let mut first_columns: Vec<_> =
            ends[..matrix.rows()].iter().map(|&at| column(at)).collect();
        let mut last_columns: Vec<_> = ends[1..].iter().map(|&at| column(at - 1)).collect();
        for row in 1..matrix.rows() {
            last_columns[row] = last_columns[row].max(last_columns[row - 1]);
        }
        for row in (1..matrix.rows()).rev() {
            first_columns[row - 1] = first_columns[row - 1].min(first_columns[row]);
        }
        Ok(Self {
            ends: queue.buffer_from(ends.len(), ends.clone())?.named("ends"),
            columns: queue.buffer_from(columns.len(), columns.clone())?.named("columns"),
            values: queue.buffer_from(values.len(), values.clone())?.named("values"),
            places: ends.as_slice().into(),
            first_columns: first_columns.into(),
            last_columns: last_columns.into(),
        })
    }

    /// Where rows begin, and where the last of them ends.
    pub(crate) fn ends_of_rows() -> CustomMapper<1, 1> {
        mapper("ends of rows", |rows: Chunk<1>, _| part(rows.offset[0]..end(&rows) + 1))
    }

    /// The entries of rows.
    pub(crate) fn entries_of_rows(&self) -> CustomMapper<1, 1> {
        let places = self.places.clone();
        mapper("entries of rows", move |rows: Chunk<1>, _| {
            part(places[rows.offset[0]]..places[end(&rows)])
        })
    }

    /// The elements of a vector that rows are multiplied with: from the first column to the last.
    /// Neighbouring rows have intervals that meet, since all have an entry on the diagonal: so two
    /// chunks need together what their union needs.
    pub(crate) fn columns_of_rows(&self) -> CustomMapper<1, 1> {
        let (first, last) = (self.first_columns.clone(), self.last_columns.clone());
        mapper("columns of rows", move |rows: Chunk<1>, _| {
            part(first[rows.offset[0]]..last[end(&rows) - 1] + 1)
        })
    }
}

/// Behind the last of a chunk's rows.
fn end(rows: &Chunk<1>) -> usize {
    rows.offset[0] + rows.range[0]
}

fn part(Range { start, end }: Range<usize>) -> Subrange<1> {
    Subrange { offset: [start], range: [end - start] }
}
