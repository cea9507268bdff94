//! Whether the shipped solar system is one: orbits of the right size and
//! period, at rest as a whole. The expected figures come from textbooks (NASA's
//! planetary fact sheets and JPL's small-body database), not from the file's
//! own source.

use std::collections::HashMap;

const CATALOGUE: &str = include_str!("../../examples/data/solar_system.csv");

/// m³ kg⁻¹ s⁻²
const G: f64 = 6.674_30e-11;
/// Metre.
const AU: f64 = 149_597_870_700.0;
/// Seconds.
const DAY: f64 = 86_400.0;

#[derive(Clone, Copy)]
struct Body {
    mass: f64,
    position: [f64; 3],
    velocity: [f64; 3],
}

#[test]
fn orbits_have_the_semi_major_axes_and_periods_of_the_textbooks() {
    // Name, semi-major axis in au, period in days, tolerance. An orbit at one
    // instant differs from the mean orbit: little for the inner planets, by up
    // to a percent for the outer ones, because the Sun moves under them.
    let expected = [
        ("Mercury", 0.387_098, 87.969, 1e-3),
        ("Venus", 0.723_332, 224.701, 1e-3),
        ("Mars", 1.523_679, 686.980, 1e-3),
        ("Jupiter", 5.2044, 4332.589, 1e-3),
        ("Saturn", 9.5549, 10_759.22, 1e-2),
        ("Uranus", 19.2184, 30_685.4, 1e-2),
        ("Neptune", 30.110, 60_189.0, 1e-2),
        ("Pluto", 39.482, 90_560.0, 1e-2),
        ("Ceres", 2.767, 1681.6, 3e-3),
        ("Vesta", 2.362, 1325.8, 3e-3),
        ("Pallas", 2.772, 1686.0, 3e-3),
        ("Juno", 2.670, 1593.0, 3e-3),
    ];
    let bodies = bodies();
    for (name, axis, period, tolerance) in expected {
        let (actual_axis, actual_period) = orbit(bodies[name], bodies["Sun"]);
        assert_close(name, actual_axis / AU, axis, tolerance);
        assert_close(name, actual_period / DAY, period, tolerance);
    }
}

#[test]
fn earth_and_moon_go_around_the_sun_in_a_year_and_around_each_other_in_a_month() {
    let bodies = bodies();
    let (earth, moon) = (bodies["Earth"], bodies["Moon"]);
    let (axis, period) = orbit(barycentre([earth, moon]), bodies["Sun"]);
    assert_close("Earth and Moon", axis / AU, 1.0, 1e-4);
    assert_close("Earth and Moon", period / DAY, 365.256, 1e-4);
    // The Sun's pull makes the Moon's momentary period waver by two percent.
    let (axis, period) = orbit(moon, earth);
    assert_close("Moon", axis / 1e3, 384_400.0, 1e-2);
    assert_close("Moon", period / DAY, 27.32, 2e-2);
}

#[test]
fn the_origin_is_the_barycentre() {
    let whole = barycentre(bodies().into_values());
    assert!(norm(whole.position) < 100.0, "{:?} m", whole.position);
    assert!(norm(whole.velocity) < 1e-5, "{:?} m/s", whole.velocity);
}

fn bodies() -> HashMap<&'static str, Body> {
    let records = CATALOGUE.lines().filter(|line| !line.starts_with('#')).skip(1);
    let parse = |record: &'static str| {
        let mut fields = record.split(',');
        let name = fields.next().unwrap();
        let numbers: Vec<f64> = fields.map(|field| field.parse().unwrap()).collect();
        let [mass, x, y, z, vx, vy, vz] = numbers[..] else { panic!("{record}") };
        (name, Body { mass, position: [x, y, z], velocity: [vx, vy, vz] })
    };
    records.map(parse).collect()
}

/// Semi-major axis and period, by the vis-viva equation and Kepler's third law.
fn orbit(body: Body, around: Body) -> (f64, f64) {
    let gm = G * (body.mass + around.mass);
    let distance = norm(difference(body.position, around.position));
    let speed = norm(difference(body.velocity, around.velocity));
    let axis = 1.0 / (2.0 / distance - speed * speed / gm);
    (axis, std::f64::consts::TAU * (axis.powi(3) / gm).sqrt())
}

fn barycentre(bodies: impl IntoIterator<Item = Body>) -> Body {
    let zero = Body { mass: 0.0, position: [0.0; 3], velocity: [0.0; 3] };
    bodies.into_iter().fold(zero, |whole, body| {
        let mass = whole.mass + body.mass;
        let mean = |a: [f64; 3], b: [f64; 3]| {
            std::array::from_fn(|axis| (whole.mass * a[axis] + body.mass * b[axis]) / mass)
        };
        Body {
            mass,
            position: mean(whole.position, body.position),
            velocity: mean(whole.velocity, body.velocity),
        }
    })
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn norm(vector: [f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn assert_close(what: &str, actual: f64, expected: f64, tolerance: f64) {
    let deviation = (actual / expected - 1.0).abs();
    assert!(deviation <= tolerance, "{what}: {actual} is {deviation:e} off {expected}");
}
