//! Concurrency limits.
//!
//! An attempt takes its permits in the [claim](crate::AttemptStore::claim) and never returns them:
//! a permit counts exactly while its attempt runs, however that ends. An attempt that finds no
//! permit moves to the queue of the limit, and the verbs here move it back to its pool.

use evenkeel_core::AttemptKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{LimitKey, LimitScope, Limits};

use crate::Now;
use crate::verbs::verbs;

/// A permit of an attempt that has ended.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Permit {
    pub limit: LimitKey,
    pub run: AttemptKey,
}

/// The number of attempts of one limit queue that a step reads and releases at most.
pub const RELEASED_MAX: u32 = 1_000;
/// The number of attempts that a step reads over all limit queues, unless a single queue needs
/// more.
pub const RELEASE_SCAN_MAX: u32 = 2_000;

/// The settings by which attempts are released from limit queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitTerms {
    pub aging: Aging,
    /// The current limits of tenants and lanes. They can differ from the limit that an attempt was
    /// parked under.
    pub limits: Limits,
}

/// One step over the limit queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseStep {
    /// Starts after the queue of this limit.
    pub after: Option<LimitKey>,
    /// The maximum number of queues.
    pub limit: u32,
    pub terms: LimitTerms,
    /// Moves attempts from the queue of a key to the queue of their tenant or lane if that is what
    /// blocks them. They should compete for the next permit there; but a step does not see how many
    /// are there already.
    pub to_wider: bool,
}

/// A limit queue that is not empty.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LimitQueue {
    pub key: LimitKey,
    /// The lowest limit that an attempt in it was parked under.
    pub lowest: u32,
    pub highest: u32,
}

impl LimitQueue {
    /// Returns how many attempts to read of each lane if `free` permits are available. The first of
    /// each lane are read, since another limit can block a whole lane.
    pub fn look(&self, free: u32) -> u32 {
        // If the limits differ, or other limits also apply, attempts that can start may be further
        // behind.
        let are_alike = self.key.scope() == LimitScope::Key && self.lowest == self.highest;
        if are_alike || free == 0 { free.min(RELEASED_MAX) } else { RELEASED_MAX }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Released {
    /// The number of attempts that went back to their pools.
    pub moved: u64,
    /// The next step starts after this limit; `None` if all queues were read.
    pub next: Option<LimitKey>,
    /// Permits are left for attempts behind those that were read. Each step that returns true has
    /// shortened the queue.
    pub again: bool,
}

verbs! {
    trait LimitStore {}

    /// Releases attempts after others have ended: for each limit, as many attempts of its queue as
    /// there are ended attempts, the first in dispatch order whose claim window is open. Returns
    /// their number. An attempt that is blocked by another limit moves to that limit's queue
    /// instead, and the next attempt is considered; if there are many of those, a few more are
    /// released. A claim decides whether a released attempt starts, so releasing too many does no
    /// harm. This verb only speeds up the release:
    /// [`release_all_limited`](Self::release_all_limited) finds the same attempts.
    write fn release_limited(ended: &[Permit], terms: &LimitTerms, now: Now) -> u64;

    /// Reads some limit queues in the order of their limits and moves the attempts that could start
    /// now back to their pools, in dispatch order. An attempt that is blocked by another limit,
    /// under which those behind it are not, moves to that limit's queue. At most [`RELEASED_MAX`]
    /// attempts leave a queue, as many are read of each of its lanes, and about
    /// [`RELEASE_SCAN_MAX`] of all queues.
    write fn release_all_limited(rooms: ReleaseStep, now: Now) -> Released;

    /// Deletes the permits of ended attempts: reads `limit` permits after `after`, in order, and
    /// returns where the next call starts, or `None` at the end. Such permits have no effect
    /// before, either.
    write fn prune_permits(after: Option<Permit>, limit: u32) -> Option<Permit>;
}
