//! Numbers as they are told.

/// A count. What follows from its runs may be expected in parts of one.
pub(super) fn whole(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

/// Four decimals tell everything that somebody could mean.
pub(super) fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e4).round() / 1e4;
    if rounded.is_finite() { rounded } else { 0.0 }
}
