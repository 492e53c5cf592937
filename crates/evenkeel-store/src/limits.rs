//! Verbs about limits of how many runs go on at once.
//!
//! Who starts under a limit takes a place of it in the [claim](crate::AttemptStore::claim), and nobody
//! gives it back: a place counts for exactly as long as its attempt runs, however that ends. Who finds
//! none is moved into the limit's waiting room, and by the verbs here back into its pool.

use evenkeel_core::AttemptKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{LimitKey, LimitScope, Limits};

use crate::Now;
use crate::verbs::verbs;

/// An attempt that had a place and has ended.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Permit {
    /// Of this limit.
    pub limit: LimitKey,
    /// Which attempt.
    pub run: AttemptKey,
}

/// Of one waiting room, so many are looked at and leave it in a step at most.
pub const RELEASED_MAX: u32 = 1_000;
/// Of all waiting rooms of a step together, so many are looked at, or as many as of one room.
pub const RELEASE_SCAN_MAX: u32 = 2_000;

/// By what those in waiting rooms are judged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitTerms {
    /// How waiting counts.
    pub aging: Aging,
    /// What operators say of tenants and lanes today, which may be another limit than the one that
    /// somebody was turned away by, or none.
    pub limits: Limits,
}

/// A step of looking into the waiting rooms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseStep {
    /// Those after this one.
    pub after: Option<LimitKey>,
    /// So many at most.
    pub limit: u32,
    /// Who could start.
    pub terms: LimitTerms,
    /// Do those of a key go on to the room of their tenant or lane if that is what holds them up? They
    /// are to be among those who get the next place there; but whoever looks does not see how many
    /// of them are there already.
    pub to_wider: bool,
}

/// A waiting room in which somebody waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LimitQueue {
    /// Of this limit.
    pub key: LimitKey,
    /// The lowest limit that one of those in it was turned away by.
    pub lowest: u32,
    /// The highest.
    pub highest: u32,
}

impl LimitQueue {
    /// How many are to be looked at if so many places are free. They are the first of each lane, since
    /// another limit may hold up a whole lane.
    pub fn look(&self, free: u32) -> u32 {
        // Where they do not agree on the limit, or are under others that differ, those that fit may
        // be further behind.
        let are_alike = self.key.scope() == LimitScope::Key && self.lowest == self.highest;
        if are_alike || free == 0 { free.min(RELEASED_MAX) } else { RELEASED_MAX }
    }
}

/// What became of a step.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Released {
    /// So many went back into the queue.
    pub moved: u64,
    /// The next step looks at those after this one; `None` if all rooms were looked at.
    pub next: Option<LimitKey>,
    /// In one of the rooms there are places for those who wait behind those that were looked at. Each
    /// look that says so has made them fewer.
    pub again: bool,
}

verbs! {
    /// What is done about limits beside claiming.
    trait LimitStore {}

    /// These attempts have ended: of each limit, as many of those that wait in its room go back into
    /// their pools as are named, the first in the order of dispatch that may be claimed now. Says how
    /// many. Who finds no place of another limit goes to that one's room instead, and the next has its
    /// turn. If there are many of those, some more go back. Whether one of them starts is for a claim to decide, so nothing is lost if more go back
    /// than there are places. Nobody need call this: [`release_all_limited`](Self::release_all_limited) finds them too.
    write fn release_limited(ended: &[Permit], terms: &LimitTerms, now: Now) -> u64;

    /// Looks into some waiting rooms, in the order of their limits. From each, those go back into
    /// their pools, in the order of dispatch, that could start now. Who is held up by another limit
    /// that those behind it are not under goes to that one's room. Of a room, at most [`RELEASED_MAX`]
    /// leave it and of each lane as many are looked at, of all together about [`RELEASE_SCAN_MAX`].
    write fn release_all_limited(rooms: ReleaseStep, now: Now) -> Released;

    /// Forgets places of attempts that have ended: looks at `limit` of them after `after`, in order,
    /// and says where to go on; `None` at the end. They count for nothing before that.
    write fn prune_permits(after: Option<Permit>, limit: u32) -> Option<Permit>;
}
