//! Where chance comes in: through this door, so that a simulation can hold it shut.

/// A source of random numbers.
pub trait Chance: Send + Sync {
    /// 64 random bits.
    fn bits(&self) -> u64;

    /// A random number from 0 up to 1.
    fn unit(&self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// 80 random bits, as a [`JobId`](crate::JobId) needs them.
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.bits().to_le_bytes()[..2]);
        bytes
    }
}
