//! A surface in light, seen along the axis along which it reaches least, and somewhat turned. Knows nothing of how its
//! temperatures were computed.

use image::{Rgb, RgbImage};

use crate::obj::{Mesh, cross, distance, minus};

/// The longer side of a picture, in pixels.
const SIDE: f32 = 480.0;

/// How far surfaces are turned: about their upright axis, and then towards the viewer, in radians.
const TURN: [f32; 2] = [0.5, 0.25];

/// Where light comes from: above, and behind the viewer. Of length 1.
const LIGHT: [f32; 3] = [0.0, 0.6, 0.8];

/// Draws all triangles, those in front over those behind.
pub(crate) fn draw(mesh: &Mesh, temperatures: &[f32]) -> RgbImage {
    let corners = seen(mesh);
    let ends = [0, 1].map(|axis| ends(mesh, &corners, axis));
    let extents = ends.map(|[least, most]| most - least);
    let scale = SIDE / extents[0].max(extents[1]).max(f32::MIN_POSITIVE);
    let [width, height] = extents.map(|extent| (extent * scale).clamp(1.0, SIDE));
    let mut picture = RgbImage::from_pixel(width as u32, height as u32, Rgb([247; 3]));
    let triangle = |at: usize| mesh.triangles[at].map(|corner| corners[corner as usize]);
    let mut order: Vec<usize> = (0..mesh.triangles.len()).collect();
    let depths: Vec<f32> =
        order.iter().map(|&at| triangle(at).iter().map(|corner| corner[2]).sum()).collect();
    order.sort_by(|&a, &b| depths[a].total_cmp(&depths[b]));
    for at in order {
        let [a, b, c] = triangle(at);
        let on_picture =
            |[x, y, _]: [f32; 3]| [(x - ends[0][0]) * scale, height - (y - ends[1][0]) * scale];
        let shade = light(cross(minus(b, a), minus(c, a)));
        fill(&mut picture, [a, b, c].map(on_picture), colour(temperatures[at], shade));
    }
    picture
}

/// The corners of a mesh as a viewer sees them: to the right, up, and towards the viewer.
fn seen(mesh: &Mesh) -> Vec<[f32; 3]> {
    let extent = |axis: usize| {
        let [least, most] = ends(mesh, &mesh.corners, axis);
        most - least
    };
    let mut axes = [0, 1, 2];
    axes.sort_by(|&a, &b| extent(b).total_cmp(&extent(a)));
    let [right, up, depth] = axes;
    // Not as in a mirror.
    let side = if (right + 1) % 3 == up { 1.0 } else { -1.0 };
    let [(turn_sin, turn_cos), (tilt_sin, tilt_cos)] = TURN.map(f32::sin_cos);
    let look = |corner: &[f32; 3]| {
        let [x, y, z] = [corner[right], corner[up], side * corner[depth]];
        let [x, z] = [turn_cos * x + turn_sin * z, turn_cos * z - turn_sin * x];
        [x, tilt_cos * y - tilt_sin * z, tilt_cos * z + tilt_sin * y]
    };
    mesh.corners.iter().map(look).collect()
}

/// How far corners of triangles reach along an axis, of the mesh's or of others in their places.
fn ends(mesh: &Mesh, corners: &[[f32; 3]], axis: usize) -> [f32; 2] {
    let used = mesh.triangles.iter().flatten().map(|&corner| corners[corner as usize][axis]);
    used.fold([f32::MAX, f32::MIN], |[least, most], at| [at.min(least), at.max(most)])
}

/// How light a triangle is, which is at a right angle to `normal`, from 0 to 1; alike from both sides.
fn light(normal: [f32; 3]) -> f32 {
    let towards: f32 = (0..3).map(|axis| normal[axis] * LIGHT[axis]).sum();
    let length = distance(normal, [0.0; 3]).max(f32::MIN_POSITIVE);
    0.45 + 0.55 * (towards * normal[2].signum() / length).max(0.0)
}

/// Colours the pixels whose middles are in a triangle.
fn fill(picture: &mut RgbImage, [a, b, c]: [[f32; 2]; 3], colour: Rgb<u8>) {
    let span = |axis: usize, end: u32| {
        let (least, most) = (a[axis].min(b[axis]).min(c[axis]), a[axis].max(b[axis]).max(c[axis]));
        (least.floor().max(0.0) as u32)..(most.ceil().max(0.0) as u32).min(end)
    };
    let side = |[ax, ay]: [f32; 2], [bx, by]: [f32; 2], [x, y]: [f32; 2]| {
        (bx - ax) * (y - ay) - (by - ay) * (x - ax)
    };
    for y in span(1, picture.height()) {
        for x in span(0, picture.width()) {
            let middle = [x as f32 + 0.5, y as f32 + 0.5];
            let sides = [side(a, b, middle), side(b, c, middle), side(c, a, middle)];
            if sides.iter().all(|&side| side >= 0.0) || sides.iter().all(|&side| side <= 0.0) {
                picture.put_pixel(x, y, colour);
            }
        }
    }
}

/// Cold blue, hot red, in this light, from 0 to 1.
fn colour(temperature: f32, light: f32) -> Rgb<u8> {
    let heat = temperature.clamp(0.0, 1.0).sqrt();
    let channel = |cold: f32, hot: f32| ((cold + (hot - cold) * heat) * light) as u8;
    Rgb([channel(60.0, 255.0), channel(105.0, 100.0), channel(190.0, 40.0)])
}
