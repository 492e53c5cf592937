//! Store operations on cluster membership and leases of nodes.

use evenkeel_core::lease::LeaseView;
use evenkeel_core::{NodeNo, Span, Timestamp, named_enum};
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
    /// Node names are not unique.
    pub name: String,
    /// The identity stored in the node's locked data directory. The lock on the directory
    /// guarantees that every earlier process with this identity has ended.
    pub identity: Uuid,
    pub roles: Roles,
    /// The pools whose attempts the node claims; empty if the node is not a worker.
    pub pools: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    pub node: NodeNo,
    /// Time of the store's clock.
    pub now: Timestamp,
    /// Node numbers that earlier processes with the same identity had. The earlier nodes are dead,
    /// and another node must take over their attempts.
    pub former: Vec<NodeNo>,
}

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
    pub enum NodeState {
        Live => "live",
        /// The node finishes its attempts and claims no new attempts.
        Draining => "draining",
        /// The node lost its lease, and other nodes must take over its attempts.
        Dead => "dead",
        /// The node has left and has no attempts.
        Gone => "gone",
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub node: NodeNo,
    pub name: String,
    pub roles: Roles,
    pub pools: Vec<String>,
    pub state: NodeState,
    pub joined_at: Timestamp,
    pub last_ping_at: Timestamp,
    /// When another node challenged the lease of this node because this node was silent.
    pub steal_start_at: Option<Timestamp>,
}

impl Member {
    pub fn is_live_worker(&self) -> bool {
        self.state == NodeState::Live && self.roles.worker
    }

    /// Returns true if the node is a live worker that serves the pool.
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

/// The regular heartbeat of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ping {
    pub node: NodeNo,
    /// The oldest scheduled time of all attempts that the node runs or is about to fire, except
    /// long-running attempts. `None` keeps the stored value.
    pub oldest_open: Option<Timestamp>,
    /// All long-running attempts of the node.
    pub long_attempts: Vec<LongAttempt>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pinged {
    /// The node still holds its lease, and any challenge of its lease is cleared.
    Alive {
        /// Time of the store's clock.
        now: Timestamp,
        /// All nodes of the cluster that have not left, including this node.
        members: Vec<Member>,
    },
    /// The node has lost its lease and must stop everything that it runs.
    Fenced,
}

verbs! {
    trait NodeStore {}

    /// Adds a node to the cluster with a new number. Nodes that joined earlier with the same
    /// identity become dead.
    write fn join(node: &NewNode, now: Now) -> Joined;

    /// Renews the lease of a node and stores [`Ping::oldest_open`] as the lower bound of the
    /// scheduled times of its attempts. Until the next ping, the store lowers the bound of the
    /// scheduled times for every older attempt that the node fires or claims. A search for attempts
    /// from the stored lower bound on therefore finds all attempts of the node.
    write fn ping(ping: &Ping, now: Now) -> Pinged;

    /// Challenges the lease of a node that has been silent for `silent_after`. Returns true if the
    /// lease of the node is challenged.
    write fn begin_steal(victim: NodeNo, silent_after: Span, now: Now) -> bool;

    /// Takes the lease away from a node that was challenged at `challenged_at` and has not answered
    /// within `grace`. Returns true if the node is dead. Later writes of the dead node have no
    /// effect.
    write fn steal(victim: NodeNo, challenged_at: Timestamp, grace: Span, now: Now) -> bool;

    /// Prevents a node from firing jobs and claiming attempts. A draining node may finish its
    /// running attempts.
    write fn drain(node: NodeNo) -> ();

    /// Removes a node that has no attempts. Returns true if the node was removed.
    write fn retire(node: NodeNo) -> bool;

    /// Returns the time of the store's clock and all nodes that have not left the cluster.
    read fn members() -> (Timestamp, Vec<Member>);
}
