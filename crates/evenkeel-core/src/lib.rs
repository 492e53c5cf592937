//! What Evenkeel decides, and nothing it does.
//!
//! Everything here is a pure function of state, event and time. No clock is read, no random
//! number drawn, nothing is written: the engine asks, the stores obey.

pub mod advance;
pub mod after_attempt;
pub mod aging;
pub mod attempt;
pub mod attempt_token;
pub mod balance;
pub mod blackout;
pub mod chance;
pub mod condition;
pub mod conflict;
pub mod dedup;
pub mod executor;
pub mod explain;
pub mod fingerprint;
pub mod history;
pub mod ids;
pub mod job;
pub mod lease;
pub mod limit;
pub mod misfire;
pub mod next_time;
pub mod on_failure;
pub mod order;
pub mod overlap;
pub mod page;
pub mod progress;
pub mod redact;
pub mod retry;
pub mod run_id;
pub mod run_log;
pub mod schedule;
pub mod search;
pub mod secret;
pub mod shard;
pub mod slot;
pub mod status;
pub mod time;
pub mod window;
pub mod zone;

pub use attempt_token::AttemptTokens;
pub use history::History;
pub use ids::{AttemptKey, AttemptNo, JobId, JobNo, NodeNo, Origin, Sequence, TenantNo};
pub use job::{About, Definition};
pub use page::PageId;
pub use progress::Progress;
pub use run_id::{AttemptId, RunId, RunIds};
pub use run_log::{LogChunk, LogLine, LogLines, LogStream, RunLog};
pub use schedule::Schedule;
pub use search::SearchQuery;
pub use shard::Shard;
pub use slot::Slot;
pub use time::{Span, Timestamp};
pub use window::{Past, StartWindow};
pub use zone::Zone;
