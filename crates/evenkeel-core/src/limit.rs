//! How many runs may go on at once: of a key, of a tenant, in a lane.
//!
//! Whoever starts under a limit takes a place of it, and has it for exactly as long as it runs. Who
//! finds none free is parked: it leaves the queue for the waiting room of that limit, where it is in
//! nobody's way, until there is a place again.

mod release;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::ids::TenantNo;
use crate::job::Definition;
use crate::order::Lane;

pub use release::{Leaving, OwnPermits, ReleasePass};

/// Characters in a key.
pub const KEY_CHARS_MAX: usize = 255;
/// The highest limit of a key.
pub const KEY_LIMIT_MAX: u32 = 10_000;
/// The highest limit of a tenant or a lane: whoever claims counts what runs.
pub const SHARED_LIMIT_MAX: u32 = 100_000;

/// What a limit is for.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// Runs of a tenant with the same `concurrency_key`.
    Key,
    /// All runs of a tenant.
    Tenant,
    /// All runs in a lane.
    Lane,
}

impl LimitScope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Key, Self::Tenant, Self::Lane];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Tenant => "tenant",
            Self::Lane => "lane",
        }
    }

    /// The scope of a waiting room, by the two characters of its name after the first.
    pub fn of_queue_pool_code(sign: &str) -> Option<Self> {
        let code = sign.parse::<usize>().ok()?;
        Self::ALL.get(code.checked_sub(1)?).copied()
    }
}

/// What is stored of the text of a `concurrency_key`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyDigest([u8; Self::BYTES]);

impl KeyDigest {
    /// How long it is.
    pub const BYTES: usize = 11;

    /// Of this text.
    pub fn of(text: &str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let mut digest = [0; Self::BYTES];
        digest.copy_from_slice(&hash[..Self::BYTES]);
        Self(digest)
    }

    /// As it is stored.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A stored one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// What a job says about how many of its key may run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyLimit {
    /// Its key.
    pub digest: KeyDigest,
    /// So many.
    pub most: u32,
}

impl Definition {
    /// The limit that the job asks for by itself.
    pub fn key_limit(&self) -> Option<KeyLimit> {
        let text = self.concurrency_key.as_deref()?;
        Some(KeyLimit { digest: KeyDigest::of(text), most: self.concurrency_limit.unwrap_or(1) })
    }
}

/// Names a limit. The first byte is its scope, so that a name tells what it is of.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey([u8; Self::BYTES]);

impl LimitKey {
    /// How long it is.
    pub const BYTES: usize = 16;
    const KEY: u8 = 1;
    const TENANT: u8 = 2;
    const LANE: u8 = 3;
    /// What names of waiting rooms begin with. Names of pools cannot.
    const ROOM: char = '~';
    /// Comes after all waiting rooms by its name, and before whatever comes after them.
    pub const AFTER_QUEUE_POOLS: &str = "~g";

    /// Of a tenant's key.
    pub fn of_key(tenant: TenantNo, digest: KeyDigest) -> Self {
        let mut bytes = Self::of(Self::KEY, tenant.0);
        bytes[5..].copy_from_slice(digest.as_bytes());
        Self(bytes)
    }

    /// Of a tenant.
    pub const fn of_tenant(tenant: TenantNo) -> Self {
        Self(Self::of(Self::TENANT, tenant.0))
    }

    /// Of a lane.
    pub const fn of_lane(lane: Lane) -> Self {
        Self(Self::of(Self::LANE, lane as i32))
    }

    const fn of(scope: u8, number: i32) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let [a, b, c, d] = number.to_be_bytes();
        (bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]) = (scope, a, b, c, d);
        bytes
    }

    /// The number of the tenant, or of the lane.
    const fn number(self) -> i32 {
        i32::from_be_bytes([self.0[1], self.0[2], self.0[3], self.0[4]])
    }

    /// What it is for.
    pub const fn scope(self) -> LimitScope {
        match self.0[0] {
            Self::TENANT => LimitScope::Tenant,
            Self::LANE => LimitScope::Lane,
            _ => LimitScope::Key,
        }
    }

    /// As it is stored.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A stored one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; Self::BYTES] = bytes.try_into().ok()?;
        (Self::KEY..=Self::LANE).contains(&bytes[0]).then_some(Self(bytes))
    }

    /// The waiting room: as a pool that nobody serves.
    pub fn queue_pool(self) -> String {
        format!("{}{self}", Self::ROOM)
    }

    /// The limit whose waiting room this pool is, if it is one.
    pub fn of_queue_pool(pool: &str) -> Option<Self> {
        let hex = pool.strip_prefix(Self::ROOM)?;
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
        f.write_str("LimitKey(")?;
        fmt::Display::fmt(self, f)?;
        f.write_char(')')
    }
}

/// A limit that a run is under.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Which.
    pub key: LimitKey,
    /// So many may run.
    pub most: u32,
}

/// Limits that jobs do not ask for themselves: of tenants, and of lanes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Of every tenant without one of its own.
    pub tenant: Option<u32>,
    /// Of these tenants.
    pub tenants: BTreeMap<TenantNo, u32>,
    /// Of each lane, all tenants together.
    pub lanes: [Option<u32>; Lane::ALL.len()],
}

impl Limits {
    /// The limit of all runs of a tenant, if there is one.
    pub fn of_tenant(&self, tenant: TenantNo) -> Option<u32> {
        self.tenants.get(&tenant).copied().or(self.tenant)
    }

    /// The limits that a run is under, the narrowest first.
    pub fn on(&self, tenant: TenantNo, lane: Lane, key: Option<KeyLimit>) -> Vec<Limit> {
        let of_key =
            key.map(|key| Limit { key: LimitKey::of_key(tenant, key.digest), most: key.most });
        let of_tenant =
            self.of_tenant(tenant).map(|most| Limit { key: LimitKey::of_tenant(tenant), most });
        let of_lane =
            self.lanes[lane as usize].map(|most| Limit { key: LimitKey::of_lane(lane), most });
        [of_key, of_tenant, of_lane].into_iter().flatten().collect()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.tenant.is_none()
            && self.tenants.is_empty()
            && self.lanes.iter().all(|lane| lane.is_none())
    }

    /// The highest limit that holds for those in the waiting room of `key`, who were turned away by at
    /// most `parked`; `None`: nothing holds them up any more. What jobs say of their keys reaches them
    /// wherever they wait, what operators say of tenants and lanes is here.
    pub fn max_in_queue(&self, key: LimitKey, parked: u32) -> Option<u32> {
        match key.scope() {
            LimitScope::Key => Some(parked),
            LimitScope::Tenant => self.of_tenant(TenantNo(key.number())),
            LimitScope::Lane => {
                *usize::try_from(key.number()).ok().and_then(|lane| self.lanes.get(lane))?
            }
        }
    }

    /// Is a run of this tenant in this lane under one of these limits?
    pub fn bind(&self, tenant: TenantNo, lane: Lane) -> bool {
        self.of_tenant(tenant).is_some() || self.lanes[lane as usize].is_some()
    }
}

/// What becomes of a run that could be started.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It starts, and has a place of each of its limits.
    Start,
    /// It goes to the waiting room of this limit.
    Park(Limit),
    /// It stays where it is: somebody else is just giving out places of one of its limits.
    Defer,
}

/// The places of a claim that is under way.
#[derive(Clone, Debug, Default)]
pub struct PermitCounts {
    /// How many run; `None` if somebody else is just changing that.
    running: BTreeMap<LimitKey, Option<u32>>,
}

impl PermitCounts {
    /// Is it known how many run?
    pub fn knows(&self, key: LimitKey) -> bool {
        self.running.contains_key(&key)
    }

    /// So many run, or nobody can say for now.
    pub fn note(&mut self, key: LimitKey, running: Option<u32>) {
        self.running.insert(key, running);
    }

    /// How many run, as far as is known.
    pub fn running(&self, key: LimitKey) -> Option<u32> {
        self.running.get(&key).copied().flatten()
    }

    /// What becomes of the next run, which is under these limits. If it starts, it counts.
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
    fn a_name_tells_what_it_is_of() {
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
    fn keys_of_tenants_are_their_own() {
        assert_ne!(key("a"), LimitKey::of_key(TenantNo(2), KeyDigest::of("a")));
        assert_ne!(key("a"), key("b"));
        assert_eq!(key("a"), key("a"));
    }

    #[test]
    fn other_pools_are_no_waiting_rooms() {
        for pool in ["default", "~", "~01", "~zz000000010000000000000000000000", "~éé"] {
            assert_eq!(LimitKey::of_queue_pool(pool), None, "{pool}");
        }
        assert_eq!(LimitKey::of_queue_pool(&format!("~{}", "00".repeat(16))), None);
    }

    #[test]
    fn a_key_without_a_limit_is_of_one_at_a_time() {
        let mut definition = Definition::noop(crate::Schedule::Once(crate::schedule::Once::NOW));
        assert_eq!(definition.key_limit(), None);
        definition.concurrency_key = Some("example.com".into());
        assert_eq!(definition.key_limit().map(|limit| limit.most), Some(1));
        definition.concurrency_limit = Some(7);
        assert_eq!(definition.key_limit().map(|limit| limit.most), Some(7));
    }

    #[test]
    fn the_narrowest_limit_comes_first_and_a_tenants_own_counts() {
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
        assert!(limits.bind(ONE, Lane::Critical));
        assert!(!Limits::default().bind(ONE, Lane::Batch));
        assert_eq!(Limits::default().on(ONE, Lane::Batch, None), []);
        assert!(Limits::default().is_empty() && !limits.is_empty());
    }

    #[test]
    fn what_holds_in_a_waiting_room_is_todays_limit() {
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
    fn who_finds_no_place_of_one_limit_takes_none_of_the_others() {
        let (a, tenant) =
            (Limit { key: key("a"), most: 2 }, Limit { key: LimitKey::of_tenant(ONE), most: 1 });
        let mut ledger = PermitCounts::default();
        ledger.note(a.key, Some(0));
        ledger.note(tenant.key, Some(1));
        assert_eq!(ledger.admit(&[a, tenant]), Admission::Park(tenant));
        assert_eq!(ledger.running(a.key), Some(0));
        ledger.note(tenant.key, None);
        assert_eq!(ledger.admit(&[a, tenant]), Admission::Defer);
        assert_eq!(ledger.admit(&[]), Admission::Start);
    }

    proptest! {
        /// Whatever comes in whatever order, no limit is exceeded, and nobody is turned away while
        /// there are places of all its limits.
        #[test]
        fn no_limit_is_exceeded_and_no_place_is_wasted(
            most in prop::collection::vec(1_u32..5, 4),
            running in prop::collection::vec(0_u32..7, 4),
            wishes in prop::collection::vec(prop::collection::btree_set(0_usize..4, 0..4), 0..40),
        ) {
            let names: Vec<LimitKey> = (0..4).map(|n| key(&n.to_string())).collect();
            let mut ledger = PermitCounts::default();
            for (name, running) in names.iter().zip(&running) {
                ledger.note(*name, Some(*running));
            }
            let mut now = running.clone();
            for wish in wishes {
                let limits: Vec<Limit> =
                    wish.iter().map(|n| Limit { key: names[*n], most: most[*n] }).collect();
                let fits = wish.iter().all(|n| now[*n] < most[*n]);
                match ledger.admit(&limits) {
                    Admission::Start => {
                        prop_assert!(fits);
                        wish.iter().for_each(|n| now[*n] += 1);
                    }
                    Admission::Park(full) => {
                        prop_assert!(!fits);
                        prop_assert!(ledger.running(full.key) >= Some(full.most));
                    }
                    Admission::Defer => prop_assert!(false, "all is known"),
                }
            }
            for n in 0..4 {
                prop_assert_eq!(ledger.running(names[n]), Some(now[n]));
                prop_assert!(now[n] <= most[n].max(running[n]));
            }
        }
    }
}
