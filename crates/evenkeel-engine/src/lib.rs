//! The loops that run a node: scheduling, execution, cluster membership, upkeep and statistics.
//!
//! The rules of scheduling are pure functions in `evenkeel-core`, and all state is in the store
//! (`evenkeel-store`). The loops of this crate read the store, apply the scheduling rules and write
//! the results. Each loop has a method `run` that calls its method `run_once` repeatedly. Tests
//! call `run_once` directly. The clock and the random number generator are parameters, so
//! `tests/simulation` simulates days of a cluster in seconds.
//!
//! [`Engine`] starts a node. While a node is a member of the cluster, its `NodeSession` runs the
//! loops below. A node that was declared dead (fenced) starts a new session.
//!
//! | folder | loop | purpose |
//! |---|---|---|
//! | `scheduler/` | `Scheduler` | fires due jobs, retries and triggers of its shards |
//! | `worker/` | `Claimer` | claims queued attempts for free worker slots and starts them |
//! | | `Finisher` | stores the results of finished attempts in batches |
//! | | `Recorder` | stores progress, output and checkpoints of running attempts |
//! | | `Canceller` | cancels running attempts whose cancellation was requested |
//! | | `Inbox` | delivers messages from other nodes to running attempts |
//! | `cluster/` | `Heartbeat` | renews the node's lease; cancels attempts before the lease expires |
//! | | `Reaper` | declares silent nodes dead and takes over their attempts |
//! | | `Reconciler` | requeues attempts that this node owns but does not run |
//! | `upkeep/` | `Pruner` | deletes old history |
//! | | `AutoPauser` | pauses jobs after too many failed runs in a row |
//! | | `LimitRelease` | requeues the next waiting run when a concurrency limit has a free permit |
//! | | `LimitQueueSweeper` | finds waiting runs that `LimitRelease` missed |
//! | | `Reprioritizer` | recomputes priorities of queued attempts after the aging settings change |
//! | | `LoadRecount` | updates the expected load of each job from its measured durations |
//! | | `JobIndexer` | adds new and changed jobs to the search index |
//! | | `StaleChecker` | triggers a run for each target without a recent successful run |
//! | `insight/` | `Judge` | computes the condition (OK, WARNING, ERROR) of at-risk jobs |
//! | | `RunStats` | stores totals of ended runs, failure groups, and activity per time slot |
//! | | `RunLogger` | logs starts and ends of runs, at most 20 lines per second |
//! | | `EventPublisher` | writes events to the store while a client listens |
//! | | `QueueMetrics` | exports queue depth and age |
//! | | `BalanceScore` | exports and stores how evenly runs are spread over time |

mod chance;
mod clock;
mod cluster;
mod engine;
mod insight;
mod scheduler;
mod settings;
mod sync;
mod upkeep;
mod worker;

pub use chance::RandomChance;
pub use clock::{Clock, SystemClock};
pub use cluster::node_context::NodeContext;
pub use cluster::store_health::WriteHealth;
pub use engine::{Engine, EngineParts, Health, HealthProbe, StartError};
pub use insight::balance_score::score_of;
pub use insight::metered_store::Metered;
pub use insight::queue_metrics::unserved_pools;
pub use insight::run_metrics::show_jobs_by_state;
pub use settings::{Retention, Settings, Staleness};
pub use upkeep::stale_targets::{StaleChecker, StalePass};
pub use worker::page_store::StorePages;
