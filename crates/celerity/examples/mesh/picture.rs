//! A surface, seen along the axis along which it reaches least. Knows nothing of how its temperatures
//! were computed.

use image::{Rgb, RgbImage};

use crate::obj::Mesh;

/// The longer side of a picture, in pixels.
const SIDE: f32 = 480.0;

/// Draws all triangles, those in front over those behind.
pub(crate) fn draw(mesh: &Mesh, temperatures: &[f32]) -> RgbImage {
    let ends = [0, 1, 2].map(|axis| {
        let used =
            mesh.triangles.iter().flatten().map(|&corner| mesh.corners[corner as usize][axis]);
        used.fold([f32::MAX, f32::MIN], |[least, most], at| [at.min(least), at.max(most)])
    });
    let extent = |axis: usize| ends[axis][1] - ends[axis][0];
    let mut axes = [0, 1, 2];
    axes.sort_by(|&a, &b| extent(b).total_cmp(&extent(a)));
    let [right, up, depth] = axes;
    let scale = SIDE / extent(right).max(f32::MIN_POSITIVE);
    let height = (extent(up) * scale).clamp(1.0, SIDE);
    let mut picture = RgbImage::from_pixel(SIDE as u32, height as u32, Rgb([247; 3]));
    let mut order: Vec<usize> = (0..mesh.triangles.len()).collect();
    let depths: Vec<f32> = order.iter().map(|&at| mesh.centre(at)[depth]).collect();
    order.sort_by(|&a, &b| depths[a].total_cmp(&depths[b]));
    for at in order {
        let on_picture = |corner: [f32; 3]| {
            let [x, y] = [right, up].map(|axis| (corner[axis] - ends[axis][0]) * scale);
            [x, height - y]
        };
        let corners = mesh.corners_of(at).map(on_picture);
        fill(&mut picture, corners, colour(temperatures[at]));
    }
    picture
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

/// Cold blue, hot red.
fn colour(temperature: f32) -> Rgb<u8> {
    let heat = temperature.clamp(0.0, 1.0).sqrt();
    let channel = |cold: f32, hot: f32| (cold + (hot - cold) * heat) as u8;
    Rgb([channel(20.0, 230.0), channel(40.0, 80.0), channel(110.0, 30.0)])
}
