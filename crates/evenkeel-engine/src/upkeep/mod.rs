//! Background work on stored data: pruning, pausing, reprioritizing, releasing limits.

pub(crate) mod auto_pauser;
pub(crate) mod dedup_sweeper;
pub(crate) mod limit_release;
pub(crate) mod load_recount;
pub(crate) mod pruner;
pub(crate) mod reprioritizer;
pub(crate) mod stale_targets;
