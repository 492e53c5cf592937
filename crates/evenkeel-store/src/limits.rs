//! Store operations on concurrency limits.
//!
//! An attempt takes its permits when it is [claimed](crate::AttemptStore::claim). Permits never
//! have to be returned, because a permit counts only while its attempt is running. An attempt that
//! gets no permit waits in the queue of the concurrency limit, until a release operation moves it
//! back to the queue of its pool.

use evenkeel_core::AttemptKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{LimitKey, LimitScope, Limits};

use crate::Now;
use crate::verbs::verbs;

/// A permit of a finished attempt.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Permit {
    pub limit: LimitKey,
    pub run: AttemptKey,
}

/// Maximum number of attempts that one release step reads from one lane of a limit's queue, and
/// releases from the whole queue.
pub const RELEASED_MAX: u32 = 1_000;
/// Maximum number of attempts that one release step reads from the queues of all concurrency limits
/// together, unless a single queue needs more.
pub const RELEASE_SCAN_MAX: u32 = 2_000;

/// Settings for releasing attempts from the queues of concurrency limits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitTerms {
    pub aging: Aging,
    /// The current concurrency limits of tenants and lanes. The current limits can differ from the
    /// limit that was in effect when an attempt started to wait.
    pub limits: Limits,
}

/// One step of releasing attempts from the queues of concurrency limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseStep {
    /// The release step starts after the queue of this concurrency limit.
    pub after: Option<LimitKey>,
    /// Maximum number of concurrency limits whose queues are read.
    pub limit: u32,
    pub terms: LimitTerms,
    /// True if an attempt moves from the queue of its concurrency key to the queue of its tenant or
    /// lane when the limit of the tenant or lane also blocks it. The moved attempts then compete
    /// for the next permit of the tenant or lane.
    pub to_wider: bool,
}

/// A queue of attempts that wait for a permit of one concurrency limit; never empty.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LimitQueue {
    pub key: LimitKey,
    /// Lowest value of the limit that was in effect when an attempt of this queue started to wait.
    pub lowest: u32,
    pub highest: u32,
}

impl LimitQueue {
    /// Returns how many attempts of each lane to read if `free` permits are available. The first
    /// attempts of every lane are read, because another limit can block a whole lane.
    pub fn look(&self, free: u32) -> u32 {
        // If the limits of the attempts differ, or other limits also apply, an attempt that can
        // start may be further back in the queue.
        let are_alike = self.key.scope() == LimitScope::Key && self.lowest == self.highest;
        if are_alike || free == 0 { free.min(RELEASED_MAX) } else { RELEASED_MAX }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Released {
    /// Number of attempts that went back to the queues of their pools.
    pub moved: u64,
    /// The next release step starts after the queue of this limit; `None` if all queues were read.
    pub next: Option<LimitKey>,
    /// True if permits are left for attempts that wait behind the attempts that were read. Each
    /// release step that sets `again` has removed attempts from a queue.
    pub again: bool,
}

verbs! {
    trait LimitStore {}

    /// Releases waiting attempts from the queues of concurrency limits after other attempts have
    /// finished. For each finished attempt of a concurrency limit, the first waiting attempt in
    /// dispatch order whose claim window is open is released. Returns the number of released
    /// attempts. An attempt that another limit blocks moves to the queue of that limit, and the
    /// next attempt is released instead. If other limits block many attempts, a few more attempts
    /// than needed are released. Releasing too many attempts does no harm, because the claim checks
    /// the limits again. `release_limited` is only an optimization:
    /// [`release_all_limited`](Self::release_all_limited) finds the same attempts later.
    write fn release_limited(ended: &[Permit], terms: &LimitTerms, now: Now) -> u64;

    /// Reads the queues of some concurrency limits, ordered by limit, and moves the attempts that
    /// could start now back to the queues of their pools, in dispatch order. An attempt that
    /// another limit blocks moves to the queue of that limit, unless the limit also blocks all
    /// attempts behind it. In one step, at most [`RELEASED_MAX`] attempts leave the queue of a
    /// limit. One step reads at most [`RELEASED_MAX`] attempts per lane of a queue, and about
    /// [`RELEASE_SCAN_MAX`] attempts in total.
    write fn release_all_limited(rooms: ReleaseStep, now: Now) -> Released;

    /// Deletes the permits of finished attempts. Reads `limit` permits after `after` and returns
    /// where the next call continues, or `None` if all permits were read. Permits of finished
    /// attempts have no effect even before they are deleted.
    write fn prune_permits(after: Option<Permit>, limit: u32) -> Option<Permit>;
}
