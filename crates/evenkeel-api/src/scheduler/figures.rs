//! Rounds numbers for API responses.

/// Rounds an expected number of runs, which can be fractional, to a whole number.
pub(super) fn whole(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

/// Rounds a number to four decimals; NaN and infinity become 0.
pub(super) fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e4).round() / 1e4;
    if rounded.is_finite() { rounded } else { 0.0 }
}
