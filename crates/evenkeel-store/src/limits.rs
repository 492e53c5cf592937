//! Verbs about limits of how many runs go on at once.
//!
//! Who starts under a limit takes a place of it in the [claim](crate::RunStore::claim), and nobody
//! gives it back: a place counts for exactly as long as its attempt runs, however that ends. Who finds
//! none is moved into the limit's waiting room, and by the verbs here back into its pool.

use async_trait::async_trait;
use evenkeel_core::RunKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::LimitKey;

use crate::{Now, StoreError};

/// An attempt that had a place and has ended.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Of this limit.
    pub limit: LimitKey,
    /// Which attempt.
    pub run: RunKey,
}

/// Of one waiting room, so many go back into the queue in a step at most.
pub const UNPARKED_MAX: u32 = 1_000;

/// A step of looking into the waiting rooms.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rooms {
    /// Those after this one.
    pub after: Option<LimitKey>,
    /// So many.
    pub limit: u32,
    /// How waiting counts.
    pub aging: Aging,
}

/// What became of a step.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Unparked {
    /// So many went back into the queue.
    pub moved: u64,
    /// Where the next step begins; `None` if all rooms were looked at.
    pub next: Option<LimitKey>,
}

/// What is done about limits beside claiming.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// These attempts have ended: of each limit, as many of those that wait in its room go back into
    /// their pools as are named, the first in the order of dispatch that may be claimed now. Says how
    /// many. Whether one of them starts is for a claim to decide, so nothing is lost if more go back
    /// than there are places. Nobody need call this: [`unpark_all`](Self::unpark_all) finds them too.
    async fn unpark(&self, ended: &[Place], aging: Aging, now: Now) -> Result<u64, StoreError>;

    /// Looks into some waiting rooms, in the order of their limits. From each, those go back into
    /// their pools, in the order of dispatch, that could start now, at most [`UNPARKED_MAX`].
    async fn unpark_all(&self, rooms: Rooms, now: Now) -> Result<Unparked, StoreError>;

    /// Forgets places of attempts that have ended: looks at `limit` of them after `after`, in order,
    /// and says where to go on; `None` at the end. They count for nothing before that.
    async fn forget_places(
        &self,
        after: Option<Place>,
        limit: u32,
    ) -> Result<Option<Place>, StoreError>;
}
