//! Hash functions that never change, because their results are stored or must agree between nodes.
//! The hash functions are not cryptographic, because collisions do not help an attacker.

/// FNV-1a, for short texts.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The final mixing step of SplitMix64, in which every bit of the input affects every bit of the
/// result.
pub(crate) const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
