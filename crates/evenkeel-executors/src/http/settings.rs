//! The server's settings for HTTP jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use evenkeel_core::{AttemptTokens, TenantNo, Timestamp};
use evenkeel_outbound::{Identity, Outbound};

use super::sign::SigningKeys;

#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The HTTP client that makes the calls and refuses forbidden addresses.
    pub outbound: Outbound,
    /// The keys that sign calls. By default calls are not signed.
    pub signing: Option<SigningKeys>,
    /// Makes the tokens with which receivers report progress and the result of an attempt. By
    /// default receivers get no tokens, and a response 202 is the final result.
    pub attempt_tokens: Option<AttemptTokens>,
    /// The base URL under which receivers reach this server's API. This base URL is not set until
    /// the server knows its public address.
    pub public_url: Arc<OnceLock<String>>,
    /// Client certificates that jobs may name in their TLS options, by default none.
    pub identities: Identities,
    /// True if jobs may disable the verification of server certificates. The default is false.
    pub allow_unverified_tls: bool,
    /// The clock for signatures and `Retry-After`; by default the clock of the machine.
    pub clock: WallClock,
}

/// Client certificates by tenant and name.
pub type Identities = BTreeMap<(TenantNo, String), Identity>;

impl HttpSettings {
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

#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl WallClock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the default if no clock is injected")]
        Self::new(|| timestamp(SystemTime::now()))
    }
}

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WallClock")
    }
}

/// Converts a system time; times before 1970 become the beginning of 1970.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}
