//! The load that is known.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::Timestamp;
use evenkeel_core::balance::{Loads, Rhythm, RhythmKey};
use evenkeel_store::Scope;

use super::Balance;
use crate::CommandError;

/// What is known of load, a second ago or later.
#[derive(Clone)]
pub struct Known {
    /// That of the tenant.
    pub own: Arc<Loads>,
    /// That of everybody.
    pub all: Arc<Loads>,
    /// The rhythms of the tenant's jobs.
    pub rhythms: Arc<HashMap<RhythmKey, Rhythm>>,
}

impl Balance {
    /// The load of the scope's tenant and of everybody at `now`, read anew if what is known is
    /// older than a second, or than twenty times what reading it took.
    pub async fn loads(&self, _scope: &Scope, _now: Timestamp) -> Result<Known, CommandError> {
        unimplemented!()
    }
}
