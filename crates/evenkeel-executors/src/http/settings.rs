//! What an operator decides about HTTP jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use evenkeel_core::{AttemptTokens, TenantNo, Timestamp};
use evenkeel_outbound::{Identity, Outbound};

use super::sign::SigningKeys;

/// What an operator decides about HTTP jobs.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Makes the calls, and guards them.
    pub outbound: Outbound,
    /// What calls are signed with. By default they are not signed.
    pub signing: Option<SigningKeys>,
    /// Makes the tokens by which receivers report how a run goes. By default there are none; then
    /// 202 is an answer like any other.
    pub attempt_tokens: Option<AttemptTokens>,
    /// Where receivers reach this server's API, once that is known, without a slash at its end.
    pub public_url: Arc<OnceLock<String>>,
    /// Client certificates that jobs of their tenant may name. By default none.
    pub identities: Identities,
    /// May jobs go without verifying servers? By default not.
    pub allow_unverified_tls: bool,
    /// The time of day, for signatures and for `Retry-After`. By default the machine's.
    pub clock: WallClock,
}

/// Client certificates by the tenant whose jobs may show them, and by name.
pub type Identities = BTreeMap<(TenantNo, String), Identity>;

impl HttpSettings {
    /// The defaults, with calls made by `outbound`.
    pub fn new(outbound: Outbound) -> Self {
        Self {
            outbound,
            signing: None,
            attempt_tokens: None,
            public_url: Arc::default(),
            identities: Identities::new(),
            allow_unverified_tls: false,
            clock: WallClock::default(),
        }
    }
}

/// Says what time of day it is.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl WallClock {
    /// One that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the default for those who inject no clock")]
        Self::new(|| timestamp(SystemTime::now()))
    }
}

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WallClock")
    }
}

/// The same moment; the epoch, if it is before that.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}
