//! Bodies: read from and written to CSV, or drawn at random. Knows nothing of
//! how they move.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Newton's constant in m³ kg⁻¹ s⁻² (CODATA 2018).
pub(crate) const G: f64 = 6.674_30e-11;

/// The solar system at J2000.0; the file names the source of its figures.
const SOLAR_SYSTEM: &str = include_str!("../data/solar_system.csv");

const FIELDS: [&str; 8] = ["name", "mass_kg", "x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s"];

/// A body at some instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub(crate) name: String,
    /// Kilogram; not negative.
    pub(crate) mass: f64,
    /// Metre; all bodies of a catalogue share origin and axes.
    pub(crate) position: [f64; 3],
    /// Metre per second.
    pub(crate) velocity: [f64; 3],
}

/// A catalogue of bodies could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogueError {
    #[error("cannot read \"{}\": {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}:{line}: expected the header \"{}\", found \"{found}\"", .path.display(), FIELDS.join(","))]
    Header { path: PathBuf, line: usize, found: String },
    #[error(
        "{}:{line}: expected {} fields ({}), found {found}",
        .path.display(), FIELDS.len(), FIELDS.join(",")
    )]
    FieldCount { path: PathBuf, line: usize, found: usize },
    #[error("{}:{line}:{column}: expected {expected} for {field}, found \"{found}\"", .path.display())]
    Field {
        path: PathBuf,
        line: usize,
        column: usize,
        field: &'static str,
        expected: &'static str,
        found: String,
    },
    #[error(
        "{}:{line}: \"{name}\" is at the same place as \"{other}\": gravity between them has no limit",
        .path.display()
    )]
    SamePlace { path: PathBuf, line: usize, name: String, other: String },
    #[error("{}: no bodies, only comments and at most a header", .path.display())]
    Empty { path: PathBuf },
}

/// The Sun, the planets, the Moon, Pluto and some asteroids at J2000.0.
pub(crate) fn solar_system() -> Vec<Body> {
    parse(Path::new("solar_system.csv"), SOLAR_SYSTEM).expect("the shipped catalogue is valid")
}

/// Reads a catalogue: lines that begin with `#` are comments, the first other
/// line names the fields, every further one is a body.
///
/// # Errors
/// An unreadable file, or the first line that is not as it should be.
pub(crate) fn read(path: &Path) -> Result<Vec<Body>, CatalogueError> {
    let text = fs::read_to_string(path)
        .map_err(|source| CatalogueError::Read { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// The catalogue as [`read`] reads it; numbers survive the round trip exactly.
pub(crate) fn to_csv(comment: &str, bodies: &[Body]) -> String {
    let mut text = format!("# {comment}\n{}\n", FIELDS.join(","));
    for Body { name, mass, position: [x, y, z], velocity: [vx, vy, vz] } in bodies {
        writeln!(text, "{name},{mass:e},{x:e},{y:e},{z:e},{vx:e},{vy:e},{vz:e}")
            .expect("writing to a string cannot fail");
    }
    text
}

/// A ball of `count` stars of one solar mass in virial equilibrium, 10¹⁶ m
/// (about a light year) in radius for 1000 stars and as dense for other counts;
/// always the same for the same `seed`.
pub(crate) fn random_cluster(count: usize, seed: u64) -> Vec<Body> {
    const SOLAR_MASS: f64 = 1.988_41e30;
    let mut random = SplitMix(seed);
    let radius = cluster_radius(count);
    // Half the potential energy of a homogeneous ball, ⅗ GM²/R, is kinetic.
    let speed = (0.6 * G * SOLAR_MASS * count as f64 / radius).sqrt();
    (0..count)
        .map(|index| Body {
            name: format!("star {index}"),
            mass: SOLAR_MASS,
            position: random.in_ball(radius),
            velocity: random.in_ball(speed * (5.0_f64 / 3.0).sqrt()),
        })
        .collect()
}

/// The radius of a [`random_cluster`], in metres.
pub(crate) fn cluster_radius(count: usize) -> f64 {
    1e16 * (count as f64 / 1000.0).cbrt()
}

fn parse(path: &Path, text: &str) -> Result<Vec<Body>, CatalogueError> {
    let is_content = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end()));
    let mut lines = lines.filter(is_content);
    match lines.next() {
        None => return Err(CatalogueError::Empty { path: path.to_owned() }),
        Some((_, header)) if header == FIELDS.join(",") => {}
        Some((line, header)) => {
            return Err(CatalogueError::Header {
                path: path.to_owned(),
                line,
                found: header.to_owned(),
            });
        }
    }
    let mut bodies: Vec<Body> = Vec::new();
    let mut places = HashMap::new();
    for (line, record) in lines {
        let body = parse_body(path, line, record)?;
        // Adding zero turns the negative zero into the positive one.
        let place = body.position.map(|coordinate| (coordinate + 0.0).to_bits());
        if let Some(other) = places.insert(place, bodies.len()) {
            let (name, other) = (body.name, bodies[other].name.clone());
            return Err(CatalogueError::SamePlace { path: path.to_owned(), line, name, other });
        }
        bodies.push(body);
    }
    match bodies.is_empty() {
        true => Err(CatalogueError::Empty { path: path.to_owned() }),
        false => Ok(bodies),
    }
}

fn parse_body(path: &Path, line: usize, record: &str) -> Result<Body, CatalogueError> {
    let count = record.split(',').count();
    if count != FIELDS.len() {
        return Err(CatalogueError::FieldCount { path: path.to_owned(), line, found: count });
    }
    let mut column = 1;
    let mut numbers = [0.0; FIELDS.len()];
    for ((field, text), number) in FIELDS.into_iter().zip(record.split(',')).zip(&mut numbers) {
        *number = parse_field(field, text).map_err(|expected| CatalogueError::Field {
            path: path.to_owned(),
            line,
            column,
            field,
            expected,
            found: text.to_owned(),
        })?;
        column += text.chars().count() + 1;
    }
    let [_, mass, x, y, z, vx, vy, vz] = numbers;
    let name = record.split(',').next().unwrap_or_default().trim().to_owned();
    Ok(Body { name, mass, position: [x, y, z], velocity: [vx, vy, vz] })
}

/// A field's number (none for the name, which only must not be empty), or what
/// was expected.
fn parse_field(field: &str, text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    if field == "name" {
        return if text.is_empty() { Err("a name") } else { Ok(0.0) };
    }
    match text.parse() {
        Ok(number) if f64::is_finite(number) && (field != "mass_kg" || number >= 0.0) => Ok(number),
        _ if field == "mass_kg" => Err("a finite number that is not negative"),
        _ => Err("a finite number"),
    }
}

/// Steele, Lea and Flood's SplitMix64: small, seedable, the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    /// Uniform in [-1, 1).
    fn signed_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Uniform in the ball of the given radius.
    fn in_ball(&mut self, radius: f64) -> [f64; 3] {
        loop {
            let point: [f64; 3] = std::array::from_fn(|_| self.signed_unit());
            if point.iter().map(|x| x * x).sum::<f64>() <= 1.0 {
                return point.map(|x| x * radius);
            }
        }
    }
}
