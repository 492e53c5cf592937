//! Background work on stored data.
//!
//! [`pruner`] deletes old history, and [`dedup_sweeper`] deletes old deduplication keys.
//! [`auto_pauser`] pauses failing jobs, and [`limit_release`] requeues runs that wait for a permit.
//! [`reprioritizer`] recomputes the ranks of queued attempts after the aging settings change.
//! [`job_indexer`] adds new and changed jobs to the search index.
//! [`load_recount`] updates the load that balancing expects from each job. [`stale_targets`]
//! triggers runs for targets without a recent successful run.

pub(crate) mod auto_pauser;
pub(crate) mod dedup_sweeper;
pub(crate) mod job_indexer;
pub(crate) mod limit_release;
pub(crate) mod load_recount;
pub(crate) mod pruner;
pub(crate) mod reprioritizer;
pub(crate) mod stale_targets;
