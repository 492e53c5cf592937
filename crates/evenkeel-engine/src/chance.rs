//! The engine's source of random numbers. The engine takes all random numbers from this module, so
//! tests can seed them.

use std::sync::Mutex;

use evenkeel_core::chance::Chance;
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};

use crate::sync::lock;

#[derive(Debug)]
pub struct RandomChance(Mutex<StdRng>);

impl RandomChance {
    /// Creates a random number generator with a seed from the operating system. Panics if the
    /// operating system has no entropy.
    pub fn from_system() -> Self {
        let rng = StdRng::try_from_rng(&mut SysRng);
        // Without entropy, secrets are guessable and ids are not unique, so the program must not
        // start.
        Self(Mutex::new(rng.expect("the operating system provides random numbers")))
    }

    pub fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Chance for RandomChance {
    fn bits(&self) -> u64 {
        let mut rng = lock(&self.0);
        rng.next_u64()
    }
}
