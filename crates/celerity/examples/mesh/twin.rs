//! The sequential twin: the mesh as a whole, triangle by triangle, in the order of the file. It shares
//! the kernel's function, which is why temperatures can be compared bit for bit.

use celerity_example_kernels::mesh::next;

use crate::Surface;

/// What differs from the sequential program, or from what the equation promises.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error(
        "verification failed: {count} of {triangles} triangles differ from the sequential program, \
         first number {first}: {actual:e} instead of {expected:e}"
    )]
    Triangles { count: usize, triangles: usize, first: usize, actual: f32, expected: f32 },
    #[error("verification failed: there is {actual:e} of heat instead of {expected:e}")]
    Heat { actual: f64, expected: f64 },
}

/// Compares with the same by plain loops, and how much heat there is. O(triangles · steps).
///
/// # Errors
/// The first triangle that differs.
pub(crate) fn compare(surface: &Surface, steps: u64, actual: &[f32]) -> Result<(), Mismatch> {
    let mut u = surface.initial.clone();
    for _ in 0..steps {
        let stepped = surface.cells.iter().zip(&u).map(|(cell, &here)| {
            let beside = cell.beside.map(|other| other.map_or(here, |other| u[other as usize]));
            next(here, beside, cell.conductances)
        });
        u = stepped.collect();
    }
    let mut different = (0..u.len()).filter(|&at| actual[at].to_bits() != u[at].to_bits());
    if let Some(first) = different.next() {
        return Err(Mismatch::Triangles {
            count: 1 + different.count(),
            triangles: u.len(),
            first,
            actual: actual[first],
            expected: u[first],
        });
    }
    let heat = |u: &[f32]| -> f64 {
        let of_triangles = u.iter().enumerate();
        of_triangles.map(|(at, &u)| f64::from(u) * f64::from(surface.mesh.area(at))).sum()
    };
    let (actual, expected) = (heat(actual), heat(&surface.initial));
    // Each step rounds each temperature to 24 bits.
    match (actual - expected).abs() <= 1e-7 * (steps + 10) as f64 * expected {
        true => Ok(()),
        false => Err(Mismatch::Heat { actual, expected }),
    }
}
