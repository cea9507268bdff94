//! The numbers that bodies are computed with, and their units. SI units of planets and stars are
//! too large for single precision: squares of distances in metres nearly are.

use celerity_example_kernels::gravity::{Position, Velocity};
use celerity_kernel::math::Float;

use crate::catalogue::{Body, G};

/// `f32` or `f64`.
pub(crate) trait Number: Float + bytemuck::Pod + Into<f64> {
    /// The nearest one.
    fn nearest(x: f64) -> Self;
}

impl Number for f32 {
    fn nearest(x: f64) -> Self {
        x as f32
    }
}

impl Number for f64 {
    fn nearest(x: f64) -> Self {
        x
    }
}

/// Places and velocities of bodies.
pub(crate) type State<T> = (Vec<Position<T>>, Vec<Velocity<T>>);

/// What a length and a time of 1 are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// Metre.
    pub(crate) length: f64,
    /// Second.
    pub(crate) time: f64,
}

impl Units {
    /// Metre and second.
    pub(crate) const SI: Self = Self { length: 1.0, time: 1.0 };

    /// The bodies' state in these units.
    pub(crate) fn state<T: Number>(&self, bodies: &[Body]) -> State<T> {
        let Self { length, time } = *self;
        let place = |body: &Body| {
            let [x, y, z] = body.position.map(|x| T::nearest(x / length));
            let mass = G * body.mass / (length * length * length) * (time * time);
            [x, y, z, T::nearest(mass)]
        };
        let velocity = |body: &Body| body.velocity.map(|v| T::nearest(v / length * time));
        (bodies.iter().map(place).collect(), bodies.iter().map(velocity).collect())
    }

    /// A place in metres.
    pub(crate) fn metres<T: Number>(&self, &[x, y, z, _]: &Position<T>) -> [f64; 3] {
        [x, y, z].map(|x| x.into() * self.length)
    }

    /// A velocity in metres per second.
    pub(crate) fn metres_per_second<T: Number>(&self, velocity: &Velocity<T>) -> [f64; 3] {
        velocity.map(|v| v.into() / self.time * self.length)
    }

    /// An energy times G, in joule.
    pub(crate) fn joule(&self, energy: f64) -> f64 {
        let speed = self.length / self.time;
        energy * self.length * speed.powi(4) / G
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_in_all_units() {
        let body = Body {
            name: String::new(),
            mass: 2e30,
            position: [1e11, -2e11, 0.0],
            velocity: [3e4, 0.0, -1e3],
        };
        let units = Units { length: 1e11, time: 1e6 };
        let (places, velocities) = units.state::<f32>(std::slice::from_ref(&body));
        assert_eq!((places[0][..3].to_vec(), velocities[0][0]), (vec![1.0, -2.0, 0.0], 0.3));
        assert_eq!(units.metres(&places[0]), body.position);
        let speed = units.metres_per_second(&velocities[0])[0];
        assert!((speed - 3e4).abs() < 1e-2, "{speed}");
        // A kilogram at a metre per second has half a joule: G / 2 in the units of a place's mass.
        let energy = Units::SI.joule(0.5 * G);
        let scaled = 0.5 * G / 1e33 * 1e12 * (1e-11 * 1e6) * (1e-11 * 1e6);
        assert!((energy - 0.5).abs() < 1e-15 && (units.joule(scaled) - 0.5).abs() < 1e-15);
    }
}
