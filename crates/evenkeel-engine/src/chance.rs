//! The one place that draws random numbers.

use std::sync::Mutex;

use evenkeel_core::chance::Chance;
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};

/// A generator, seeded by the machine or by a test.
#[derive(Debug)]
pub struct RandomChance(Mutex<StdRng>);

impl RandomChance {
    /// Seeded by the operating system.
    pub fn from_system() -> Self {
        let rng = StdRng::try_from_rng(&mut SysRng);
        // Without entropy there is no safe secret and no unique id: better not to start.
        Self(Mutex::new(rng.expect("the operating system gives random numbers")))
    }

    /// The same numbers for the same seed.
    pub fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Chance for RandomChance {
    fn bits(&self) -> u64 {
        let mut rng = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        rng.next_u64()
    }
}
