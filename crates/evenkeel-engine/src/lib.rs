//! The loops that make Evenkeel run.
//!
//! Each loop is thin around a `run_once` that a test can step. What to do is decided in
//! `evenkeel-core`, what is so is kept by the store; the loops carry the one to the other. Time and
//! chance come in from outside, so a simulation can run many nodes for days in a second.

mod chance;
mod clock;
mod cluster;
mod engine;
mod insight;
mod scheduler;
mod settings;
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
