//! Verbs of nodes about themselves and each other.

use evenkeel_core::lease::LeaseView;
use evenkeel_core::{NodeNo, Span, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{LongAttempt, Now};

/// What a node does.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Roles {
    /// It answers requests.
    pub api: bool,
    /// It fires jobs.
    pub scheduler: bool,
    /// It runs them.
    pub worker: bool,
}

impl Roles {
    /// Everything.
    pub const ALL: Self = Self { api: true, scheduler: true, worker: true };
}

/// A node about to take part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    /// Its name, which others may share.
    pub name: String,
    /// The identity kept in its locked data directory: whoever had it before is gone.
    pub identity: Uuid,
    /// What it does.
    pub roles: Roles,
    /// The pools whose runs it takes; none if it runs none.
    pub pools: Vec<String>,
}

/// A node that takes part now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Its number.
    pub node: NodeNo,
    /// What the store's clock said.
    pub now: Timestamp,
    /// Its former incarnations, dead now, whose attempts must be taken over.
    pub former: Vec<NodeNo>,
}

/// Where a node stands.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum NodeState {
    /// It takes part.
    Live,
    /// It finishes what it has.
    Draining,
    /// It lost its lease; its attempts must be taken over.
    Dead,
    /// It has nothing left.
    Gone,
}

impl NodeState {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 4] = [Self::Live, Self::Draining, Self::Dead, Self::Gone];
}

/// A node as others see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number.
    pub node: NodeNo,
    /// Its name.
    pub name: String,
    /// What it does.
    pub roles: Roles,
    /// The pools whose runs it takes.
    pub pools: Vec<String>,
    /// Where it stands.
    pub state: NodeState,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When it last said that it lives.
    pub last_ping_at: Timestamp,
    /// When it was challenged, if it is.
    pub steal_start_at: Option<Timestamp>,
}

impl Member {
    /// Does it live and run jobs?
    pub fn is_live_worker(&self) -> bool {
        self.state == NodeState::Live && self.roles.worker
    }

    /// Does it live and take runs of this pool?
    pub fn serves(&self, pool: &str) -> bool {
        self.is_live_worker() && self.pools.iter().any(|served| served == pool)
    }

    /// Its lease.
    pub const fn lease(&self) -> LeaseView {
        LeaseView {
            node: self.node,
            last_ping_at: self.last_ping_at,
            steal_start_at: self.steal_start_at,
        }
    }
}

/// A sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ping {
    /// Whose.
    pub node: NodeNo,
    /// The oldest scheduled time of an attempt it has or is about to fire, not counting long runs;
    /// `None` to leave what was said before.
    pub oldest_open: Option<Timestamp>,
    /// All of its attempts that have run for long.
    pub long_runs: Vec<LongAttempt>,
}

/// The answer to a sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pinged {
    /// It is alive, and no longer challenged if it was.
    Alive {
        /// What the store's clock said.
        now: Timestamp,
        /// All nodes that are not gone, itself included.
        members: Vec<Member>,
    },
    /// It has lost its lease and must end all it runs.
    Fenced,
}

verbs! {
    /// What nodes do.
    trait NodeStore {}

    /// Takes part, as a new incarnation. Former ones of the same identity are dead from here on.
    write fn join(node: &NewNode, now: Now) -> Joined;

    /// Says that a node lives, and where its open attempts begin: the store keeps that bound below
    /// everything it fires or claims for the node in between, so that a search from there finds all.
    write fn ping(ping: &Ping, now: Now) -> Pinged;

    /// Challenges a node if it has been silent for `silent_after`. Says whether it is challenged.
    write fn begin_steal(victim: NodeNo, silent_after: Span, now: Now) -> bool;

    /// Takes the lease of a node that was challenged at `challenged_at` and has not answered for
    /// `grace`. Says whether it is dead now. From here on nothing it writes counts.
    write fn steal(victim: NodeNo, challenged_at: Timestamp, grace: Span, now: Now) -> bool;

    /// Takes no more part in scheduling and claiming; what it has it may finish.
    write fn drain(node: NodeNo) -> ();

    /// Is gone, if it has no attempt left. Says whether it is.
    write fn retire(node: NodeNo) -> bool;

    /// All nodes that are not gone.
    read fn members() -> (Timestamp, Vec<Member>);
}
