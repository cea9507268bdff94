//! European options by the formula of Black and Scholes (1973).

use celerity_kernel::{Item, kernel, math};

use crate::hash::unit;

/// A contract: the price of the share, the price at which it may be bought or sold,
/// and the years until then.
pub type Contract = [f32; 3];

/// What the right to buy is worth, and the right to sell.
pub type Prices = [f32; 2];

/// The prices of a contract, by a yearly rate of interest and a yearly volatility. Of
/// `f32`, they are off by less than 4 · 10⁻⁷ of the larger of share and contract price
/// for the contracts of [`contract`]: measured, against the same in `f64`.
#[inline]
#[must_use]
pub fn prices([share, strike, years]: Contract, rate: f32, volatility: f32) -> Prices {
    let deviation = volatility * math::sqrt(years);
    let drift = (rate + 0.5 * volatility * volatility) * years;
    let d1 = (math::ln(share / strike) + drift) / deviation;
    let d2 = d1 - deviation;
    let strike = strike * math::exp(-rate * years);
    let buy = share * normal(d1) - strike * normal(d2);
    let sell = strike * normal(-d2) - share * normal(-d1);
    [buy, sell]
}

/// The probability that a normally distributed number is at most `x`.
#[inline]
fn normal(x: f32) -> f32 {
    0.5 * math::erfc(-x * core::f32::consts::FRAC_1_SQRT_2)
}

/// One of many contracts that look random: shares at 5 to 30, contracts at 1 to 100
/// in a quarter of a year to 10 years.
#[inline]
#[must_use]
pub fn contract(number: usize) -> Contract {
    let random = |which: u64| unit(4 * number as u64 + which);
    [5.0 + 25.0 * random(0), 1.0 + 99.0 * random(1), 0.25 + 9.75 * random(2)]
}

/// The [`contract`]s.
#[kernel]
pub fn draw_contracts(item: Item<1>, out: &mut Contract) {
    *out = contract(item.linear_id());
}

/// The [`prices`] of a contract when `elapsed` years have passed, which must be less
/// than it has left.
#[kernel]
pub fn black_scholes(
    _item: Item<1>,
    (out, contract): (&mut Prices, &Contract),
    elapsed: f32,
    rate: f32,
    volatility: f32,
) {
    let [share, strike, years] = *contract;
    *out = prices([share, strike, years - elapsed], rate, volatility);
}

/// As [`black_scholes`], in the fast form: where the device fuses and approximates, off by less than
/// 3 · 10⁻⁶ of the larger of share and contract price.
#[kernel(fast)]
pub fn black_scholes_fast(
    _item: Item<1>,
    (out, contract): (&mut Prices, &Contract),
    elapsed: f32,
    rate: f32,
    volatility: f32,
) {
    let [share, strike, years] = *contract;
    *out = prices([share, strike, years - elapsed], rate, volatility);
}
