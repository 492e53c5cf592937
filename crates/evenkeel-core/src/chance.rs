//! The source of random numbers. The crate `evenkeel-core` draws no random numbers itself, so that
//! a simulation can replay the whole system from a seed.

pub trait Chance: Send + Sync {
    fn bits(&self) -> u64;

    /// Returns a random number from 0 (inclusive) to 1 (exclusive).
    fn unit(&self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the 80 random bits of a new [`JobId`](crate::JobId).
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.bits().to_le_bytes()[..2]);
        bytes
    }
}
