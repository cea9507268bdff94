//! Numbers of other libraries, for the operators that come with the runtime: half precision and
//! complex numbers.

#[cfg(feature = "half")]
mod halves {
    use half::{bf16, f16};

    use crate::abi::Teller;
    use crate::reduce::Number;
    use crate::tellable::Told;

    macro_rules! halves {
        ($($number:ty)*) => {$(
            /// Each sum and product is rounded to 16 bits. To round once, combine values as `f32`.
            impl Number for $number {
                const ZERO: Self = Self::ZERO;
                const ONE: Self = Self::ONE;
                const LEAST: Self = Self::NEG_INFINITY;
                const GREATEST: Self = Self::INFINITY;

                #[inline(always)]
                fn tell_to(&self, teller: &mut Teller<'_>) {
                    Told::tell_to(self, teller);
                }

                #[inline]
                fn plus(self, other: Self) -> Self {
                    self + other
                }

                #[inline]
                fn times(self, other: Self) -> Self {
                    self * other
                }
            }
        )*};
    }

    halves!(f16 bf16);
}

#[cfg(feature = "num-complex")]
mod complex {
    use num_complex::Complex;

    use crate::reduce::{Number, Operator, Product, Sum};

    /// Complex numbers have no order, so they are no [`Number`]s.
    macro_rules! complex {
        ($($number:ty)*) => {$(
            impl Operator<Complex<$number>> for Sum {
                const IS_COMMUTATIVE: bool = true;

                #[inline]
                fn identity(&self) -> Complex<$number> {
                    Complex::new(<$number>::ZERO, <$number>::ZERO)
                }

                #[inline]
                fn combine(
                    &self,
                    earlier: Complex<$number>,
                    later: Complex<$number>,
                ) -> Complex<$number> {
                    earlier + later
                }
            }

            impl Operator<Complex<$number>> for Product {
                const IS_COMMUTATIVE: bool = true;

                #[inline]
                fn identity(&self) -> Complex<$number> {
                    Complex::new(<$number>::ONE, <$number>::ZERO)
                }

                #[inline]
                fn combine(
                    &self,
                    earlier: Complex<$number>,
                    later: Complex<$number>,
                ) -> Complex<$number> {
                    earlier * later
                }
            }
        )*};
    }

    complex!(f32 f64);
}
