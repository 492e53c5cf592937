//! The loops that make Evenkeel run.
//!
//! Each loop is thin around a `run_once` that a test can step. What to do is decided in
//! `evenkeel-core`, what is so is kept by the store; the loops carry the one to the other. Time and
//! chance come in from outside, so a simulation can run many nodes for days in a second.

mod ager;
mod attempt;
mod awaited;
mod canceller;
mod chance;
mod clock;
mod db_clock;
mod definitions;
mod dispatcher;
mod due_lines;
mod due_order;
mod engine;
mod entry;
mod finisher;
mod heartbeat;
mod incarnation;
mod judge;
mod key_sweeper;
mod lease_keeper;
mod library;
mod life;
mod lost;
mod metered;
mod meters;
mod near_future;
mod node_due;
mod open_bound;
mod pauser;
mod postman;
mod pruner;
mod reaper;
mod reconciler;
mod recorder;
mod relay;
mod reporter;
mod scheduler;
mod scorer;
mod settings;
mod slots;
mod stale;
mod surveyor;
mod suspects;
mod tallier;
mod trouble;
mod unparker;
mod weigher;
mod worker;

pub use chance::RandomChance;
pub use clock::{Clock, SystemClock};
pub use engine::{Engine, Health, Parts, Probe, StartError};
pub use incarnation::Incarnation;
pub use library::StoreLibrary;
pub use metered::Metered;
pub use meters::show_jobs_by_state;
pub use settings::{Retention, Settings, Staleness};
pub use stale::{StaleChecker, StalePass};
pub use surveyor::unserved_pools;
pub use trouble::WriteHealth;
