//! A node as a member of its cluster: joining, leases, heartbeats, and taking over from dead nodes.

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
