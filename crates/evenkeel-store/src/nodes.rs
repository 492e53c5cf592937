//! Verbs of nodes: membership and leases.

use evenkeel_core::lease::LeaseView;
use evenkeel_core::{NodeNo, Span, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{LongAttempt, Now};

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Roles {
    pub api: bool,
    pub scheduler: bool,
    pub worker: bool,
}

impl Roles {
    pub const ALL: Self = Self { api: true, scheduler: true, worker: true };
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    /// Other nodes may have the same name.
    pub name: String,
    /// The identity stored in the node's locked data directory. An earlier process with this
    /// identity has ended.
    pub identity: Uuid,
    pub roles: Roles,
    /// The pools whose attempts the node claims; empty if it is no worker.
    pub pools: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    pub node: NodeNo,
    /// The time of the store's clock.
    pub now: Timestamp,
    /// Earlier numbers of the same identity. They are dead now, and their attempts must be taken
    /// over.
    pub former: Vec<NodeNo>,
}

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum NodeState {
    Live,
    /// The node finishes its attempts and takes no new ones.
    Draining,
    /// The node lost its lease; its attempts must be taken over.
    Dead,
    /// The node has no attempts left.
    Gone,
}

impl NodeState {
    /// In the order of the stored codes.
    pub const ALL: [Self; 4] = [Self::Live, Self::Draining, Self::Dead, Self::Gone];
}

/// A node as others see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub node: NodeNo,
    pub name: String,
    pub roles: Roles,
    /// The pools whose attempts the node claims.
    pub pools: Vec<String>,
    pub state: NodeState,
    pub joined_at: Timestamp,
    pub last_ping_at: Timestamp,
    /// When another node challenged its lease.
    pub steal_start_at: Option<Timestamp>,
}

impl Member {
    pub fn is_live_worker(&self) -> bool {
        self.state == NodeState::Live && self.roles.worker
    }

    /// Returns true if the node is a live worker of the pool.
    pub fn serves(&self, pool: &str) -> bool {
        self.is_live_worker() && self.pools.iter().any(|served| served == pool)
    }

    pub const fn lease(&self) -> LeaseView {
        LeaseView {
            node: self.node,
            last_ping_at: self.last_ping_at,
            steal_start_at: self.steal_start_at,
        }
    }
}

/// A sign of life of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ping {
    pub node: NodeNo,
    /// The oldest scheduled time of an attempt that the node runs or is about to fire, without long
    /// attempts. `None` keeps the last value.
    pub oldest_open: Option<Timestamp>,
    /// All attempts of the node that have run for long.
    pub long_attempts: Vec<LongAttempt>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pinged {
    /// The node has its lease, and is no longer challenged.
    Alive {
        /// The time of the store's clock.
        now: Timestamp,
        /// All nodes that are not gone, including itself.
        members: Vec<Member>,
    },
    /// The node has lost its lease and must end everything it runs.
    Fenced,
}

verbs! {
    trait NodeStore {}

    /// Adds a node with a new number. Earlier numbers of the same identity are dead from then on.
    write fn join(node: &NewNode, now: Now) -> Joined;

    /// Renews the lease of a node and stores where its open attempts begin. The store keeps this
    /// bound below every attempt that it fires or claims for the node until the next ping, so that
    /// a search from the bound finds all attempts of the node.
    write fn ping(ping: &Ping, now: Now) -> Pinged;

    /// Challenges a node that has been silent for `silent_after`. Returns whether the node is
    /// challenged.
    write fn begin_steal(victim: NodeNo, silent_after: Span, now: Now) -> bool;

    /// Takes the lease of a node that was challenged at `challenged_at` and has not answered for
    /// `grace`. Returns whether the node is dead. Its later writes have no effect.
    write fn steal(victim: NodeNo, challenged_at: Timestamp, grace: Span, now: Now) -> bool;

    /// Excludes a node from firing and claiming. It may finish its attempts.
    write fn drain(node: NodeNo) -> ();

    /// Removes a node that has no attempts left. Returns whether it was removed.
    write fn retire(node: NodeNo) -> bool;

    /// Returns the time and all nodes that are not gone.
    read fn members() -> (Timestamp, Vec<Member>);
}
