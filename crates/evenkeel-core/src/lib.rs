//! The decision logic of Evenkeel, without side effects.
//!
//! Every function in this crate is pure and computes a decision from the current state, an event
//! and the time. No function reads a clock, draws a random number or writes anything. The engine
//! calls the functions of this crate, and the stores save the results.
//!
//! Jobs and their times:
//! - [`job`]: the definition of a job
//! - [`schedule`]: when a job runs: once, interval, calendar, cron, periodic
//! - [`time`], [`zone`]: timestamps, durations and time zones
//! - [`window`]: when the next run may start, and by when it must
//! - [`blackout`]: local hours in which a job does not run
//! - [`advance`]: whether a due job fires, is skipped or waits
//! - [`misfire`], [`overlap`]: the policies for missed scheduled times and for overlapping runs
//! - [`next_time`]: the next scheduled time after a resume, a retry or a change
//! - [`status`]: the status of a job, and the commands that it allows
//! - [`history`]: statistics of past attempts
//!
//! Runs and attempts:
//! - [`ids`], [`run_id`]: numbers and keys, and the public ids of runs and attempts
//! - [`attempt`]: the state machine of one attempt
//! - [`after_attempt`]: whether a finished attempt is retried
//! - [`retry`], [`on_failure`]: retry policies, and what happens when no retries are left
//! - [`lease`]: which node may write the results of an attempt
//! - [`attempt_token`]: tokens for receivers of HTTP calls
//! - [`progress`], [`run_log`]: the progress and output of an attempt
//! - [`fingerprint`]: groups similar failures
//!
//! Queue:
//! - [`order`], [`aging`]: dispatch order, and priority gained by waiting
//! - [`limit`]: concurrency limits
//! - [`dedup`]: rejects duplicate jobs and runs
//!
//! Insight:
//! - [`activity`]: counts of runs per time slot, for charts of the past
//! - [`condition`]: whether a job meets its deadlines
//! - [`conflict`]: whether a job's blackouts leave enough time to meet its deadlines
//! - [`explain`]: why a job does not run now, or did not run at a past time
//! - [`timeline`]: past and future runs of a period, as marks or as numbers per step
//!
//! Cluster and load:
//! - [`shard`]: divides jobs among schedulers
//! - [`slot`], [`balance`]: counts load per 15-minute time slot, chooses start times of jobs and plans
//!   rebalances
//!
//! Executors and data:
//! - [`executor`]: what executors declare about themselves
//! - [`secret`], [`redact`]: keeps secrets out of stored data, and values from viewers
//! - [`page`], [`search`]: crawled pages, and the search syntax
//! - [`job_search`]: search of jobs by words and parts of words
//! - [`chance`]: the source of random numbers

pub mod activity;
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
mod hash;
pub mod history;
pub mod ids;
pub mod job;
pub mod job_search;
pub mod lease;
pub mod limit;
pub mod misfire;
mod names;
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
pub mod timeline;
pub mod window;
pub mod zone;

pub use attempt_token::AttemptTokens;
pub use history::History;
pub use ids::{AttemptKey, AttemptNo, JobId, JobNo, NodeNo, Origin, Sequence, TenantNo};
pub use job::{About, Definition};
pub use job_search::{JobSearch, JobText};
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
