//! Concurrency limits: the maximum number of active runs per concurrency key, per tenant and per
//! lane.
//!
//! A run that starts takes a permit of each limit that applies to it, and holds these permits as
//! long as it is active. A run for which a limit has no free permit is parked: the run moves from
//! the main queue to the queue of that limit and waits there until a permit is free. A parked run
//! does not delay the runs in the main queue.

mod release;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::ids::TenantNo;
use crate::job::Definition;
use crate::named_enum;
use crate::order::Lane;

pub use release::{OwnPermits, ReleasePass, ReleasedRuns};

pub const KEY_CHARS_MAX: usize = 255;
pub const KEY_LIMIT_MAX: u32 = 10_000;
/// Maximum value of a tenant or lane limit. The value is bounded, because each claim counts the
/// active runs of the tenant or lane.
pub const SHARED_LIMIT_MAX: u32 = 100_000;

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LimitScope {
        /// Runs of a tenant with the same `concurrency_key`.
        Key => "key",
        Tenant => "tenant",
        Lane => "lane",
    }
}

impl LimitScope {
    /// Reads the scope of a limit from `code`, characters 2 and 3 of the pool name of its queue.
    pub fn of_queue_pool_code(code: &str) -> Option<Self> {
        let code = code.parse::<usize>().ok()?;
        Self::ALL.get(code.checked_sub(1)?).copied()
    }
}

/// The stored hash of a `concurrency_key`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyDigest([u8; Self::BYTES]);

impl KeyDigest {
    pub const BYTES: usize = 11;

    pub fn of(text: &str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        Self(std::array::from_fn(|at| hash[at]))
    }

    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// The limit that a job sets for its concurrency key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyLimit {
    pub digest: KeyDigest,
    pub most: u32,
}

impl Definition {
    /// Returns the limit that the job sets for its `concurrency_key`, if the job has one.
    pub fn key_limit(&self) -> Option<KeyLimit> {
        let text = self.concurrency_key.as_deref()?;
        Some(KeyLimit { digest: KeyDigest::of(text), most: self.concurrency_limit.unwrap_or(1) })
    }
}

/// Identifies a limit. The first byte of a limit key is the position of the limit's scope in
/// [`LimitScope::ALL`], counted from 1.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey([u8; Self::BYTES]);

impl LimitKey {
    pub const BYTES: usize = 16;
    /// The first character in the pool names of all limit queues. The names of ordinary pools
    /// cannot start with this character.
    const QUEUE_POOL: char = '~';
    /// A text that sorts directly after the pool names of all limit queues.
    pub const AFTER_QUEUE_POOLS: &str = "~g";

    pub fn of_key(tenant: TenantNo, digest: KeyDigest) -> Self {
        let mut bytes = Self::of(LimitScope::Key, tenant.0);
        bytes[5..].copy_from_slice(digest.as_bytes());
        Self(bytes)
    }

    pub const fn of_tenant(tenant: TenantNo) -> Self {
        Self(Self::of(LimitScope::Tenant, tenant.0))
    }

    pub const fn of_lane(lane: Lane) -> Self {
        Self(Self::of(LimitScope::Lane, lane as i32))
    }

    const fn of(scope: LimitScope, number: i32) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let [a, b, c, d] = number.to_be_bytes();
        (bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]) = (scope as u8 + 1, a, b, c, d);
        bytes
    }

    /// The number of the tenant or lane.
    const fn number(self) -> i32 {
        i32::from_be_bytes([self.0[1], self.0[2], self.0[3], self.0[4]])
    }

    pub const fn scope(self) -> LimitScope {
        LimitScope::ALL[self.0[0] as usize - 1]
    }

    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; Self::BYTES] = bytes.try_into().ok()?;
        (1..=LimitScope::ALL.len()).contains(&bytes[0].into()).then_some(Self(bytes))
    }

    /// Returns the pool name of the limit's queue. No worker serves this pool.
    pub fn queue_pool(self) -> String {
        format!("{}{self}", Self::QUEUE_POOL)
    }

    /// Returns the limit whose queue has this pool name; `None` for ordinary pools.
    pub fn of_queue_pool(pool: &str) -> Option<Self> {
        let hex = pool.strip_prefix(Self::QUEUE_POOL)?;
        if hex.len() != 2 * Self::BYTES || !hex.is_ascii() {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
        }
        Self::from_bytes(&bytes)
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitKey({self})")
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    pub key: LimitKey,
    /// The number of permits.
    pub most: u32,
}

/// The limits that operators configure for tenants and lanes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The limit of tenants that are not listed in `tenants`.
    pub tenant: Option<u32>,
    pub tenants: BTreeMap<TenantNo, u32>,
    /// The limit of each lane, counted over all tenants.
    pub lanes: [Option<u32>; Lane::ALL.len()],
}

impl Limits {
    pub fn of_tenant(&self, tenant: TenantNo) -> Option<u32> {
        self.tenants.get(&tenant).copied().or(self.tenant)
    }

    /// Returns all limits that apply to a run, from the narrowest (key) to the widest (lane).
    pub fn on(&self, tenant: TenantNo, lane: Lane, key: Option<KeyLimit>) -> Vec<Limit> {
        let limits = [
            key.map(|key| (LimitKey::of_key(tenant, key.digest), key.most)),
            self.of_tenant(tenant).map(|most| (LimitKey::of_tenant(tenant), most)),
            self.lanes[lane as usize].map(|most| (LimitKey::of_lane(lane), most)),
        ];
        limits.into_iter().flatten().map(|(key, most)| Limit { key, most }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.tenant.is_none()
            && self.tenants.is_empty()
            && self.lanes.iter().all(|lane| lane.is_none())
    }

    /// Returns the highest limit of any run in the queue of the limit `key`, or `None` if the limit
    /// no longer exists. `parked` is the highest limit that is stored with the parked runs. The
    /// limit of a concurrency key is stored with each parked run, but limits of tenants and lanes
    /// come from [`Limits`], which operators can change.
    pub fn max_in_queue(&self, key: LimitKey, parked: u32) -> Option<u32> {
        match key.scope() {
            LimitScope::Key => Some(parked),
            LimitScope::Tenant => self.of_tenant(TenantNo(key.number())),
            LimitScope::Lane => {
                *usize::try_from(key.number()).ok().and_then(|lane| self.lanes.get(lane))?
            }
        }
    }

    /// True if a tenant or lane limit applies to runs of this tenant in this lane.
    pub fn apply_to(&self, tenant: TenantNo, lane: Lane) -> bool {
        self.of_tenant(tenant).is_some() || self.lanes[lane as usize].is_some()
    }
}

/// Whether a run may start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The run takes a permit of each of its limits.
    Start,
    /// The run moves to the queue of this limit.
    Park(Limit),
    /// The run stays in the main queue, because another transaction is changing the permits of one
    /// of the run's limits.
    Defer,
}

/// The number of active runs per limit, counted during one claim.
#[derive(Clone, Debug, Default)]
pub struct PermitCounts {
    /// `None` while another transaction is changing the number of active runs.
    running: BTreeMap<LimitKey, Option<u32>>,
}

impl PermitCounts {
    pub fn knows(&self, key: LimitKey) -> bool {
        self.running.contains_key(&key)
    }

    /// Sets the number of active runs under a limit; `None` if another transaction is changing that
    /// number.
    pub fn note(&mut self, key: LimitKey, running: Option<u32>) {
        self.running.insert(key, running);
    }

    pub fn running(&self, key: LimitKey) -> Option<u32> {
        self.running.get(&key).copied().flatten()
    }

    /// Decides whether a run may start under its `limits`. If the run may start, the run is counted
    /// as active.
    pub fn admit(&mut self, limits: &[Limit]) -> Admission {
        let mut full = None;
        for limit in limits {
            match self.running(limit.key) {
                Some(running) if running >= limit.most => full = full.or(Some(*limit)),
                Some(_) => {}
                None => return Admission::Defer,
            }
        }
        if let Some(full) = full {
            return Admission::Park(full);
        }
        for limit in limits {
            let running = self.running.entry(limit.key).or_default();
            *running = running.map(|running| running.saturating_add(1));
        }
        Admission::Start
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: TenantNo = TenantNo(1);

    fn key(text: &str) -> LimitKey {
        LimitKey::of_key(ONE, KeyDigest::of(text))
    }

    #[test]
    fn limit_key_shows_its_scope() {
        let names = [key("a"), LimitKey::of_tenant(ONE), LimitKey::of_lane(Lane::Batch)];
        assert_eq!(names.map(LimitKey::scope), LimitScope::ALL);
        for name in names {
            assert_eq!(LimitKey::of_queue_pool(&name.queue_pool()), Some(name));
            assert_eq!(LimitKey::from_bytes(name.as_bytes()), Some(name));
        }
        assert_eq!(names[1].queue_pool(), "~02000000010000000000000000000000");
        for name in names {
            assert_eq!(
                LimitScope::of_queue_pool_code(&name.queue_pool()[1..3]),
                Some(name.scope())
            );
            assert!(name.queue_pool().as_str() < LimitKey::AFTER_QUEUE_POOLS);
        }
        assert_eq!(LimitScope::of_queue_pool_code("00"), None);
    }

    #[test]
    fn equal_keys_of_two_tenants_differ() {
        assert_ne!(key("a"), LimitKey::of_key(TenantNo(2), KeyDigest::of("a")));
        assert_ne!(key("a"), key("b"));
        assert_eq!(key("a"), key("a"));
    }

    #[test]
    fn ordinary_pools_are_no_limit_queues() {
        for pool in ["default", "~", "~01", "~zz000000010000000000000000000000", "~éé"] {
            assert_eq!(LimitKey::of_queue_pool(pool), None, "{pool}");
        }
        assert_eq!(LimitKey::of_queue_pool(&format!("~{}", "00".repeat(16))), None);
    }

    #[test]
    fn key_without_a_limit_allows_one_run() {
        let mut definition = Definition::noop(crate::Schedule::Once(crate::schedule::Once::NOW));
        assert_eq!(definition.key_limit(), None);
        definition.concurrency_key = Some("example.com".into());
        assert_eq!(definition.key_limit().map(|limit| limit.most), Some(1));
        definition.concurrency_limit = Some(7);
        assert_eq!(definition.key_limit().map(|limit| limit.most), Some(7));
    }

    #[test]
    fn narrowest_limit_comes_first_and_a_tenants_own_limit_counts() {
        let limits = Limits {
            tenant: Some(9),
            tenants: [(TenantNo(2), 5)].into(),
            lanes: [None, None, Some(3)],
        };
        let digest = KeyDigest::of("a");
        let on = |tenant, lane, key| -> Vec<(LimitScope, u32)> {
            let on = limits.on(TenantNo(tenant), lane, key);
            on.iter().map(|limit| (limit.key.scope(), limit.most)).collect()
        };
        let all = [(LimitScope::Key, 1), (LimitScope::Tenant, 5), (LimitScope::Lane, 3)];
        assert_eq!(on(2, Lane::Batch, Some(KeyLimit { digest, most: 1 })), all);
        assert_eq!(on(1, Lane::Critical, None), [(LimitScope::Tenant, 9)]);
        assert!(limits.apply_to(ONE, Lane::Critical));
        assert!(!Limits::default().apply_to(ONE, Lane::Batch));
        assert_eq!(Limits::default().on(ONE, Lane::Batch, None), []);
        assert!(Limits::default().is_empty() && !limits.is_empty());
    }

    #[test]
    fn limit_queue_uses_the_current_limit() {
        let limits = Limits {
            tenant: Some(9),
            tenants: [(TenantNo(2), 5)].into(),
            lanes: [None, None, Some(3)],
        };
        assert_eq!(limits.max_in_queue(key("a"), 7), Some(7));
        assert_eq!(limits.max_in_queue(LimitKey::of_tenant(ONE), 7), Some(9));
        assert_eq!(limits.max_in_queue(LimitKey::of_tenant(TenantNo(2)), 7), Some(5));
        assert_eq!(limits.max_in_queue(LimitKey::of_lane(Lane::Batch), 7), Some(3));
        assert_eq!(limits.max_in_queue(LimitKey::of_lane(Lane::Critical), 7), None);
        assert_eq!(Limits::default().max_in_queue(LimitKey::of_tenant(ONE), 7), None);
    }

    #[test]
    fn parked_run_takes_no_permit() {
        let (a, tenant) =
            (Limit { key: key("a"), most: 2 }, Limit { key: LimitKey::of_tenant(ONE), most: 1 });
        let mut counts = PermitCounts::default();
        counts.note(a.key, Some(0));
        counts.note(tenant.key, Some(1));
        assert_eq!(counts.admit(&[a, tenant]), Admission::Park(tenant));
        assert_eq!(counts.running(a.key), Some(0));
        counts.note(tenant.key, None);
        assert_eq!(counts.admit(&[a, tenant]), Admission::Defer);
        assert_eq!(counts.admit(&[]), Admission::Start);
    }

    proptest! {
        /// No limit is exceeded, and a run is parked only if one of its limits has no free permit.
        #[test]
        fn no_limit_is_exceeded_and_no_permit_is_wasted(
            most in prop::collection::vec(1_u32..5, 4),
            running in prop::collection::vec(0_u32..7, 4),
            wishes in prop::collection::vec(prop::collection::btree_set(0_usize..4, 0..4), 0..40),
        ) {
            let names: Vec<LimitKey> = (0..4).map(|n| key(&n.to_string())).collect();
            let mut counts = PermitCounts::default();
            for (name, running) in names.iter().zip(&running) {
                counts.note(*name, Some(*running));
            }
            let mut now = running.clone();
            for wish in wishes {
                let limits: Vec<Limit> =
                    wish.iter().map(|n| Limit { key: names[*n], most: most[*n] }).collect();
                let fits = wish.iter().all(|n| now[*n] < most[*n]);
                match counts.admit(&limits) {
                    Admission::Start => {
                        prop_assert!(fits);
                        wish.iter().for_each(|n| now[*n] += 1);
                    }
                    Admission::Park(full) => {
                        prop_assert!(!fits);
                        prop_assert!(counts.running(full.key) >= Some(full.most));
                    }
                    Admission::Defer => prop_assert!(false, "all is known"),
                }
            }
            for n in 0..4 {
                prop_assert_eq!(counts.running(names[n]), Some(now[n]));
                prop_assert!(now[n] <= most[n].max(running[n]));
            }
        }
    }
}
