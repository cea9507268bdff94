//! Meshes of triangles: from files in the format of Wavefront (`.obj`), and spheres. Knows nothing of
//! what is computed on them.

use std::io;
use std::path::{Path, PathBuf};

/// Triangles by the corners that they share.
#[derive(Debug)]
pub(crate) struct Mesh {
    pub(crate) corners: Vec<[f32; 3]>,
    pub(crate) triangles: Vec<[u32; 3]>,
}

/// Triangles of a mesh at the most: as many as a sphere has of 12 levels. Sides of all triangles are counted with
/// 32 bits.
const MOST: u64 = 20 << (2 * 12);

/// A side of a triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    /// The smaller one first, so that they are the same for the triangle on the other side.
    corners: [u32; 2],
    /// The position among the sides of all triangles.
    at: u32,
}

/// A file is no mesh that this program can use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeshError {
    #[error("cannot read \"{}\": {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}:{line}: {what}", .path.display())]
    Line { path: PathBuf, line: usize, what: String },
    #[error("{}: no triangles; a line such as \"f 1 2 3\" is one", .path.display())]
    Empty { path: PathBuf },
    #[error(
        "{triangles} triangles are too many, as there may be {MOST}: take a coarser mesh, or cut its \
         triangles into four less often"
    )]
    TooMany { triangles: u64 },
}

impl Mesh {
    /// The mesh in a file, as [`parse`](Self::parse) has it.
    ///
    /// # Errors
    /// As that, and what the operating system says against reading the file.
    pub(crate) fn read(path: &Path, levels: u32) -> Result<Self, MeshError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| MeshError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text, levels)
    }

    /// The mesh in the text of a file: lines that begin with `v` are corners, those with `f` triangles. Each triangle
    /// is cut into four `levels` times, and the surface stays the same.
    ///
    /// # Errors
    /// The first line that is wrong, or whose triangle is too small to be cut so often; too many triangles.
    pub(crate) fn parse(path: &Path, text: &str, levels: u32) -> Result<Self, MeshError> {
        let at = |line| move |what| MeshError::Line { path: path.to_owned(), line, what };
        let mut mesh = Self { corners: Vec::new(), triangles: Vec::new() };
        // Of each triangle, from 1.
        let mut lines = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            match words.next() {
                Some("v") => mesh.corners.push(corner(words).map_err(at(line))?),
                Some("f") => {
                    let triangle = triangle(words, mesh.corners.len()).map_err(at(line))?;
                    mesh.triangles.push(triangle);
                    lines.push(line);
                }
                // Normals, textures, names and materials are of no concern here.
                _ => {}
            }
        }
        if mesh.triangles.is_empty() {
            return Err(MeshError::Empty { path: path.to_owned() });
        }
        check_count(mesh.triangles.len(), levels)?;
        mesh.check().map_err(|(triangle, what)| at(lines[triangle])(what))?;
        for level in 1..=levels {
            mesh.refine(|[x, y, z]| [0.5 * x, 0.5 * y, 0.5 * z]);
            if let Some(part) = mesh.flat() {
                let what = format!("cut into four {levels} times, parts of it have no area");
                return Err(at(lines[part >> (2 * level)])(what));
            }
        }
        Ok(mesh)
    }

    /// A sphere of radius 1: an icosahedron whose triangles are cut into four `levels` times, each time by
    /// corners on the sphere.
    ///
    /// # Errors
    /// More than 12 levels: too many triangles.
    pub(crate) fn sphere(levels: u32) -> Result<Self, MeshError> {
        const GOLDEN: f32 = 1.618_034;
        let mut corners = Vec::new();
        for [a, b] in [[-1.0, GOLDEN], [1.0, GOLDEN], [-1.0, -GOLDEN], [1.0, -GOLDEN]] {
            corners.extend([[a, b, 0.0], [0.0, a, b], [b, 0.0, a]].map(unit));
        }
        let mut triangles = Vec::new();
        let near = |a: usize, b: usize| distance(corners[a], corners[b]) < 1.1;
        for a in 0..12 {
            for b in (a + 1..12).filter(|&b| near(a, b)) {
                for c in (b + 1..12).filter(|&c| near(a, c) && near(b, c)) {
                    triangles.push([a, b, c].map(|corner| corner as u32));
                }
            }
        }
        check_count(triangles.len(), levels)?;
        let mut mesh = Self { corners, triangles };
        (0..levels).for_each(|_| mesh.refine(unit));
        Ok(mesh)
    }

    /// Cuts each triangle into four, which take its place one behind the other. `place` says where the corner of a
    /// side is that has this sum of its ends.
    fn refine(&mut self, place: impl Fn([f32; 3]) -> [f32; 3]) {
        // Of each side of each triangle.
        let mut middles = vec![[0; 3]; self.triangles.len()];
        for common in self.sides().chunk_by(|a, b| a.corners == b.corners) {
            let [a, b] = common[0].corners.map(|corner| self.corners[corner as usize]);
            for side in common {
                middles[side.triangle()][side.number()] = self.corners.len() as u32;
            }
            self.corners.push(place([a[0] + b[0], a[1] + b[1], a[2] + b[2]]));
        }
        let cut = |([a, b, c], [ab, bc, ca]): ([u32; 3], [u32; 3])| {
            [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
        };
        let triangles = std::mem::take(&mut self.triangles);
        self.triangles = triangles.into_iter().zip(middles).flat_map(cut).collect();
    }

    /// For each triangle and each of its sides, from the first corner to the second and so on, the
    /// triangle beside it.
    pub(crate) fn neighbours(&self) -> Vec<[Option<u32>; 3]> {
        let mut beside = vec![[None; 3]; self.triangles.len()];
        for pair in self.sides().windows(2) {
            if let [a, b] = pair
                && a.corners == b.corners
            {
                beside[a.triangle()][a.number()] = Some(b.triangle() as u32);
                beside[b.triangle()][b.number()] = Some(a.triangle() as u32);
            }
        }
        beside
    }

    /// The sides of all triangles, common ones one behind the other in the order of triangles. Sorted: with hash
    /// maps, a sphere of 5 million triangles took 13 s instead of 4.
    fn sides(&self) -> Vec<Side> {
        let edges = self.triangles.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
        let mut sides: Vec<_> = (0..)
            .zip(edges)
            .map(|(at, [a, b])| Side { corners: [a.min(b), a.max(b)], at })
            .collect();
        sides.sort_unstable();
        sides
    }

    /// Whether each triangle has an area, and each side two triangles at most; or which triangle is
    /// wrong.
    fn check(&self) -> Result<(), (usize, String)> {
        if let Some(at) = self.flat() {
            return Err((at, "a triangle without an area".to_owned()));
        }
        let sides = self.sides();
        let crowded = sides.windows(3).filter(|three| three[0].corners == three[2].corners);
        match crowded.map(|three| three[2].triangle()).min() {
            Some(at) => {
                Err((at, "a third triangle at a side; surfaces have two at most".to_owned()))
            }
            None => Ok(()),
        }
    }

    /// The first triangle without an area.
    fn flat(&self) -> Option<usize> {
        (0..self.triangles.len()).find(|&at| self.area(at).is_nan() || self.area(at) <= 0.0)
    }

    /// The corners of a triangle.
    pub(crate) fn corners_of(&self, triangle: usize) -> [[f32; 3]; 3] {
        self.triangles[triangle].map(|corner| self.corners[corner as usize])
    }

    pub(crate) fn centre(&self, triangle: usize) -> [f32; 3] {
        let [a, b, c] = self.corners_of(triangle);
        [0, 1, 2].map(|axis| (a[axis] + b[axis] + c[axis]) / 3.0)
    }

    pub(crate) fn area(&self, triangle: usize) -> f32 {
        let [a, b, c] = self.corners_of(triangle);
        let [x, y, z] = cross(minus(b, a), minus(c, a));
        0.5 * (x * x + y * y + z * z).sqrt()
    }

    /// How long the sides of a triangle are.
    pub(crate) fn lengths(&self, triangle: usize) -> [f32; 3] {
        let [a, b, c] = self.corners_of(triangle);
        [distance(a, b), distance(b, c), distance(c, a)]
    }
}

impl Side {
    fn triangle(self) -> usize {
        self.at as usize / 3
    }

    /// Which side of the triangle it is, from 0.
    fn number(self) -> usize {
        self.at as usize % 3
    }
}

/// Whether so many triangles are few enough, each of which is cut into four so many times.
fn check_count(triangles: usize, levels: u32) -> Result<(), MeshError> {
    let triangles = 4_u64.saturating_pow(levels).saturating_mul(triangles as u64);
    if triangles <= MOST { Ok(()) } else { Err(MeshError::TooMany { triangles }) }
}

fn corner<'a>(words: impl Iterator<Item = &'a str>) -> Result<[f32; 3], String> {
    let numbers: Vec<f32> = words
        .take(3)
        .map(|word| match word.parse() {
            Ok(number) if f32::is_finite(number) => Ok(number),
            _ => Err(format!("expected a finite number, found \"{word}\"")),
        })
        .collect::<Result<_, _>>()?;
    let found = numbers.len();
    numbers.try_into().map_err(|_| format!("expected 3 coordinates of a corner, found {found}"))
}

/// A triangle of `known` corners. Of what belongs to a corner, as in `7/1/2`, the first is its number:
/// from 1, or from the newest back if negative.
fn triangle<'a>(words: impl Iterator<Item = &'a str>, known: usize) -> Result<[u32; 3], String> {
    let corner = |word: &str| {
        let number = word.split('/').next().and_then(|number| number.parse::<i64>().ok());
        let number =
            number.ok_or_else(|| format!("expected a corner's number, found \"{word}\""))?;
        let index = if number < 0 { known as i64 + number } else { number - 1 };
        match usize::try_from(index) {
            Ok(index) if index < known => Ok(index as u32),
            _ => Err(format!("there is no corner {number}: {known} have been named so far")),
        }
    };
    let corners: Vec<u32> = words.map(corner).collect::<Result<_, _>>()?;
    let found = corners.len();
    corners.try_into().map_err(|_| {
        format!("expected the 3 corners of a triangle, found {found}; cut polygons into triangles")
    })
}

pub(crate) fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [0, 1, 2].map(|axis| a[axis] - b[axis])
}

pub(crate) fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    let [x, y, z] = minus(a, b);
    (x * x + y * y + z * z).sqrt()
}

fn unit(a: [f32; 3]) -> [f32; 3] {
    let length = distance(a, [0.0; 3]);
    a.map(|coordinate| coordinate / length)
}
