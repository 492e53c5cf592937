//! Membership of a node in its cluster, with leases, failure detection and takeover.
//!
//! [`heartbeat`] renews the lease, [`reaper`] takes over attempts of dead nodes, and [`reconciler`]
//! requeues attempts that this node owns but does not run. [`node_session`] starts all loops of the
//! engine, and [`node_context`] holds the state that these loops share.

pub(crate) mod db_clock;
pub(crate) mod heartbeat;
pub(crate) mod lease_keeper;
pub(crate) mod lost_attempts;
pub(crate) mod low_watermark;
pub(crate) mod node_context;
pub(crate) mod node_session;
pub(crate) mod reaper;
pub(crate) mod reconciler;
pub(crate) mod store_health;
