//! The loops that run a node: scheduling, execution, cluster membership, upkeep and statistics.
//!
//! Decisions live in `evenkeel-core`, state lives in the store (`evenkeel-store`); the loops
//! connect the two. Each loop is a thin `run` around a `run_once` that a test can call. Time and
//! randomness are passed in, so `tests/simulation` runs a cluster for days of simulated time in
//! seconds.
//!
//! [`Engine`] starts a node. A node that the cluster fences (declares dead) starts again with a new
//! `NodeSession`, which spawns these loops:
//!
//! | folder | loop | purpose |
//! |---|---|---|
//! | `scheduler/` | `Scheduler` | fires due jobs, retries and triggers of its shards |
//! | `worker/` | `Claimer` | claims queued attempts for free slots and starts their bodies |
//! | | `Finisher` | stores the results of ended bodies in batches |
//! | | `Recorder` | stores progress, output and checkpoints of running bodies |
//! | | `Canceller` | cancels bodies whose cancellation was requested |
//! | | `Inbox` | delivers messages from other nodes to running bodies |
//! | `cluster/` | `Heartbeat` | renews the node's lease; ends all bodies before it expires |
//! | | `Reaper` | declares silent nodes dead and takes over their attempts |
//! | | `Reconciler` | gives back attempts that the store assigns to this node but that do not run |
//! | `upkeep/` | `Pruner` | deletes old history |
//! | | `AutoPauser` | pauses jobs after too many failed runs in a row |
//! | | `LimitRelease` | after a limited run ends, requeues a run that waits for its permit |
//! | | `LimitQueueSweeper` | requeues runs of all limit queues that could start |
//! | | `Reprioritizer` | recomputes priorities of queued attempts after settings change |
//! | | `LoadRecount` | updates each job's share of the load from its measured durations |
//! | | `StaleChecker` | triggers jobs of targets without a recent success |
//! | `insight/` | `Judge` | computes the condition (OK, WARNING, ERROR) of at-risk jobs |
//! | | `RunStats` | stores totals of ended runs and failure groups |
//! | | `RunLogger` | logs starts and ends of runs, at most 20 lines per second |
//! | | `EventPublisher` | writes events to the store while a client listens |
//! | | `QueueMetrics` | exports queue depth and age |
//! | | `BalanceScore` | exports and stores how evenly load is spread |

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
pub use insight::metered_store::Metered;
pub use insight::queue_metrics::unserved_pools;
pub use insight::run_metrics::show_jobs_by_state;
pub use settings::{Retention, Settings, Staleness};
pub use upkeep::stale_targets::{StaleChecker, StalePass};
pub use worker::page_store::StorePages;
