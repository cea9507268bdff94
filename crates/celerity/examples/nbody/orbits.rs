//! A picture of where the bodies went. Knows nothing of how they got there.

use std::path::Path;
use std::sync::Mutex;

use celerity_example_kernels::gravity::Position;
use image::{ImageFormat, Rgb, RgbImage};

use crate::support::OutputError;
use crate::units::Number;

/// Pixels along each side.
const SIDE: u32 = 1024;

/// Instants that are drawn, at most.
const INSTANTS: u64 = 2048;

/// Points that are remembered, at most.
const POINTS: u64 = 4_000_000;

/// The bodies' places at some instants of one run, as seen from the pole of the
/// ecliptic.
#[derive(Debug)]
pub(crate) struct Orbits {
    stride: u64,
    instants: Mutex<Vec<Vec<[f64; 2]>>>,
}

impl Orbits {
    /// Nothing seen yet, of a run of `steps` steps of so many bodies.
    pub(crate) fn new(bodies: usize, steps: u64) -> Self {
        let instants = (POINTS / bodies.max(1) as u64).clamp(2, INSTANTS);
        Self { stride: steps.div_ceil(instants).max(1), instants: Mutex::default() }
    }

    /// Whether the state after this many steps is to be [`record`](Self::record)ed.
    pub(crate) fn wants(&self, steps_done: u64) -> bool {
        steps_done.is_multiple_of(self.stride)
    }

    /// Remembers an instant.
    pub(crate) fn record<T: Number>(&self, places: &[Position<T>]) {
        let seen = places.iter().map(from_the_pole).collect();
        self.instants.lock().expect("no recorder panics").push(seen);
    }

    /// Draws all orbits, distances from the middle as their square roots, so
    /// that Mercury and Pluto fit into one picture.
    ///
    /// # Errors
    /// The picture cannot be written.
    pub(crate) fn save(&self, path: &Path) -> Result<(), OutputError> {
        let instants = self.instants.lock().expect("no recorder panics");
        let mut picture = RgbImage::from_pixel(SIDE, SIDE, Rgb([8, 8, 20]));
        let farthest = instants.iter().flatten().map(|[x, y]| x.hypot(*y)).fold(0.0, f64::max);
        for places in instants.iter() {
            for (body, place) in places.iter().enumerate() {
                dot(&mut picture, pixel(*place, farthest), 0, hue(body));
            }
        }
        for (body, place) in instants.last().into_iter().flatten().enumerate() {
            dot(&mut picture, pixel(*place, farthest), 2, hue(body));
        }
        picture
            .save_with_format(path, ImageFormat::Png)
            .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
    }
}

/// Turns the axes of the Earth's equator into those of the ecliptic and drops
/// the height above it.
fn from_the_pole<T: Number>(place: &Position<T>) -> [f64; 2] {
    // 84381.448″, the obliquity of the ecliptic at J2000.0 (IAU 1976).
    const OBLIQUITY: f64 = 84_381.448 / 3600.0;
    let [x, y, z, _] = place.map(T::into);
    let (sin, cos) = OBLIQUITY.to_radians().sin_cos();
    [x, y * cos + z * sin]
}

fn pixel([x, y]: [f64; 2], farthest: f64) -> [i64; 2] {
    let distance = x.hypot(y);
    let scale = if distance > 0.0 { (distance / farthest).sqrt() / distance } else { 0.0 };
    let half = f64::from(SIDE) / 2.0;
    [(half + 0.96 * half * x * scale) as i64, (half - 0.96 * half * y * scale) as i64]
}

fn dot(picture: &mut RgbImage, [x, y]: [i64; 2], radius: i64, colour: Rgb<u8>) {
    for (dx, dy) in (-radius..=radius).flat_map(|dx| (-radius..=radius).map(move |dy| (dx, dy))) {
        if let (Ok(x), Ok(y)) = (u32::try_from(x + dx), u32::try_from(y + dy))
            && x < SIDE
            && y < SIDE
        {
            picture.put_pixel(x, y, colour);
        }
    }
}

/// Neighbours in a catalogue get colours far apart: steps of the golden angle.
fn hue(body: usize) -> Rgb<u8> {
    let turn = body as f64 * 0.381_966;
    Rgb(std::array::from_fn(|channel| {
        let wave = (std::f64::consts::TAU * (turn + channel as f64 / 3.0)).cos();
        (165.0 + 90.0 * wave) as u8
    }))
}
