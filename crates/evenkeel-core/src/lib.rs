//! What Evenkeel decides, and nothing it does.
//!
//! Everything here is a pure function of state, event and time. No clock is read, no random
//! number drawn, nothing is written: the engine asks, the stores obey.

pub mod advance;
pub mod chance;
pub mod history;
pub mod ids;
pub mod job;
pub mod lease;
pub mod misfire;
pub mod order;
pub mod overlap;
pub mod retry;
pub mod run;
pub mod schedule;
pub mod shard;
pub mod slot;
pub mod status;
pub mod time;
pub mod window;

pub use history::History;
pub use ids::{Attempt, JobId, JobNo, NodeNo, Origin, RunId, RunKey, Sequence, TenantNo};
pub use job::{About, Definition};
pub use schedule::Schedule;
pub use shard::Shard;
pub use slot::Slot;
pub use time::{Span, Timestamp};
pub use window::StartWindow;
