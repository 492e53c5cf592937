//! Leases and fences decide which node may write the result of an attempt, and when another node
//! may take over.
//!
//! Each node holds one lease for all attempts that it runs. Another node takes over a lease in two
//! steps. First, the other node notices that the lease's owner has stopped pinging, and records a
//! challenge (`steal_start_at`). Second, the lease's owner has a grace period in which it can still
//! answer the challenge. The grace period must pass both on the database clock and on the clock of
//! the challenging node. Time in which the challenging node cannot reach the store does not count
//! towards the grace period. So neither a jump of a clock nor a database outage can cause a node to
//! lose its lease.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::NodeNo;
use crate::time::{Span, Timestamp};

/// Fence number: counts how many workers have claimed an attempt. Only the worker with the highest
/// fence number may write results.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fence(pub u32);

impl Fence {
    /// The fence number of an attempt that no worker has claimed yet.
    pub const NONE: Self = Self(0);

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// How often nodes ping, and when their leases can be taken over.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LeaseTimings {
    pub ping: Span,
    /// If a node has not pinged for this long, other nodes may challenge its lease.
    pub silent_after: Span,
    /// A node that does not answer a challenge within this time loses its lease.
    pub grace: Span,
}

impl Default for LeaseTimings {
    fn default() -> Self {
        Self {
            ping: Span::from_secs(2),
            silent_after: Span::from_secs(6),
            grace: Span::from_secs(4),
        }
    }
}

/// Errors for lease timings with which attempts could be lost or never be taken over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingsError {
    /// A node must be able to miss one ping without a challenge of its lease.
    #[error("ping_seconds ({ping}) must be at most half of lease_seconds ({silent_after})")]
    PingTooSlow { ping: Span, silent_after: Span },
    /// A node needs enough time to stop its running attempts.
    #[error("grace_seconds ({0}) must be at least 3s")]
    GraceTooShort(Span),
}

impl LeaseTimings {
    pub fn validate(self) -> Result<Self, LeaseTimingsError> {
        if self.ping.is_zero() || self.ping.saturating_mul(2) > self.silent_after {
            let Self { ping, silent_after, .. } = self;
            return Err(LeaseTimingsError::PingTooSlow { ping, silent_after });
        }
        // Half of the grace period must be enough to kill the process of an attempt, which may take
        // a second; the rest is a safety margin.
        if self.grace < Span::from_secs(3) {
            return Err(LeaseTimingsError::GraceTooShort(self.grace));
        }
        Ok(self)
    }

    /// Returns the time after its last answered ping by which a node must have stopped all its
    /// attempts. Another node can take over half the grace period later.
    pub fn bodies_must_end_after(self) -> Span {
        let half_grace = Span::from_micros(self.grace.as_micros() / 2);
        self.silent_after.saturating_add(half_grace)
    }
}

/// The lease of another node, as read from the database.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LeaseView {
    pub node: NodeNo,
    pub last_ping_at: Timestamp,
    /// When the lease was challenged.
    pub steal_start_at: Option<Timestamp>,
}

/// What a node may do about the lease of another node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LeaseVerdict {
    Leave,
    /// Challenge the lease.
    BeginSteal,
    /// Take over the attempts.
    Steal,
}

/// Tracks for how long this node has seen no new ping of each other node. Time in which this node
/// cannot reach the store does not count.
#[derive(Debug, Default)]
pub struct StealWatch {
    /// For each other node, the time of its last known ping, and when this node first saw the ping.
    silent: BTreeMap<NodeNo, (Timestamp, Duration)>,
    /// For each challenged node, the time of the challenge, and when this node first saw the
    /// challenge.
    watched: BTreeMap<NodeNo, (Timestamp, Duration)>,
}

impl StealWatch {
    /// Decides whether a lease may be challenged or taken over, at `db_now` on the database clock
    /// and `own_now` on this node's monotonic clock. A ping with a time in the future counts as if
    /// it were sent now.
    pub fn judge(
        &mut self,
        timings: LeaseTimings,
        lease: LeaseView,
        db_now: Timestamp,
        own_now: Duration,
    ) -> LeaseVerdict {
        let (ping, since) = *self.silent.entry(lease.node).or_insert((lease.last_ping_at, own_now));
        if ping != lease.last_ping_at {
            self.silent.insert(lease.node, (lease.last_ping_at, own_now));
        }
        if db_now.since(lease.last_ping_at) <= timings.silent_after {
            self.watched.remove(&lease.node);
            return LeaseVerdict::Leave;
        }
        let Some(challenged_at) = lease.steal_start_at else {
            self.watched.remove(&lease.node);
            // The owner of a lease stops its attempts by its own clock, counted from its last ping.
            // If the database clock jumped, the owner of the lease may have pinged a moment ago and
            // may be too busy to answer a challenge in time.
            let silent_for = own_now.saturating_sub(since);
            let silent =
                ping == lease.last_ping_at && silent_for >= Duration::from(timings.silent_after);
            return if silent { LeaseVerdict::BeginSteal } else { LeaseVerdict::Leave };
        };
        let (seen, since) = *self.watched.entry(lease.node).or_insert((challenged_at, own_now));
        if seen != challenged_at {
            self.watched.insert(lease.node, (challenged_at, own_now));
            return LeaseVerdict::Leave;
        }
        let on_db_clock = db_now.since(challenged_at) >= timings.grace;
        let on_own_clock = own_now.saturating_sub(since) >= Duration::from(timings.grace);
        if on_db_clock && on_own_clock { LeaseVerdict::Steal } else { LeaseVerdict::Leave }
    }

    /// Restarts the observation of all leases, because the store was not reachable.
    pub fn store_trouble(&mut self) {
        self.silent.clear();
        self.watched.clear();
    }

    /// Removes nodes that left the cluster.
    pub fn retain(&mut self, nodes: &[NodeNo]) {
        self.silent.retain(|node, _| nodes.contains(node));
        self.watched.retain(|node, _| nodes.contains(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMINGS: LeaseTimings = LeaseTimings {
        ping: Span::from_secs(2),
        silent_after: Span::from_secs(6),
        grace: Span::from_secs(4),
    };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn lease(pinged: i64, challenged: Option<i64>) -> LeaseView {
        LeaseView { node: NodeNo(1), last_ping_at: at(pinged), steal_start_at: challenged.map(at) }
    }

    fn judge(watch: &mut StealWatch, view: LeaseView, db: i64, own: u64) -> LeaseVerdict {
        watch.judge(TIMINGS, view, at(db), Duration::from_secs(own))
    }

    #[test]
    fn silence_is_challenged_and_then_stolen_after_the_grace() {
        let watch = &mut StealWatch::default();
        assert_eq!(judge(watch, lease(100, None), 100, 0), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, None), 106, 6), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, None), 107, 7), LeaseVerdict::BeginSteal);
        assert_eq!(judge(watch, lease(100, Some(107)), 108, 8), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, Some(107)), 111, 11), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, Some(107)), 112, 12), LeaseVerdict::Steal);
    }

    #[test]
    fn jump_of_the_database_clock_alone_challenges_no_lease() {
        let watch = &mut StealWatch::default();
        assert_eq!(judge(watch, lease(100, None), 101, 1), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, None), 130, 2), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(131, None), 132, 4), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(131, None), 161, 9), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(131, None), 162, 10), LeaseVerdict::BeginSteal);
    }

    #[test]
    fn jump_of_the_database_clock_alone_steals_no_lease() {
        let watch = &mut StealWatch::default();
        judge(watch, lease(100, Some(107)), 108, 2);
        assert_eq!(judge(watch, lease(100, Some(107)), 9_999, 3), LeaseVerdict::Leave);
    }

    #[test]
    fn outage_restarts_the_grace() {
        let watch = &mut StealWatch::default();
        judge(watch, lease(100, Some(107)), 108, 2);
        watch.store_trouble();
        assert_eq!(judge(watch, lease(100, Some(107)), 400, 300), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(100, Some(107)), 404, 304), LeaseVerdict::Steal);
    }

    #[test]
    fn ping_ends_a_challenge() {
        let watch = &mut StealWatch::default();
        judge(watch, lease(100, Some(107)), 108, 2);
        assert_eq!(judge(watch, lease(109, None), 112, 6), LeaseVerdict::Leave);
        assert_eq!(judge(watch, lease(109, Some(116)), 117, 11), LeaseVerdict::Leave);
    }

    #[test]
    fn a_ping_from_the_future_counts_as_now() {
        let watch = &mut StealWatch::default();
        assert_eq!(judge(watch, lease(5_000, None), 100, 0), LeaseVerdict::Leave);
    }

    #[test]
    fn a_node_ends_its_bodies_before_they_can_be_stolen() {
        let earliest_steal = TIMINGS.silent_after.saturating_add(TIMINGS.grace);
        assert!(TIMINGS.bodies_must_end_after() < earliest_steal);
    }

    #[test]
    fn inconsistent_timings_are_refused() {
        let hasty = LeaseTimings { silent_after: Span::from_secs(3), ..TIMINGS };
        assert!(matches!(hasty.validate(), Err(LeaseTimingsError::PingTooSlow { .. })));
        let graceless = LeaseTimings { grace: Span::from_millis(10), ..TIMINGS };
        assert!(matches!(graceless.validate(), Err(LeaseTimingsError::GraceTooShort(_))));
    }
}
