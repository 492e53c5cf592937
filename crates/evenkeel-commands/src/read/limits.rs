//! How much of everything a job may have.

use evenkeel_core::Span;
use evenkeel_core::dedup::LONGEST_WINDOW;
use evenkeel_core::schedule::Periodic;

/// Characters in a name.
pub const NAME_CHARS_MAX: usize = 255;
/// Characters in a description.
pub const DESCRIPTION_CHARS_MAX: usize = 4096;
/// Characters in an address.
pub const URL_CHARS_MAX: usize = 2048;
/// Characters in the name of a pool.
pub const POOL_CHARS_MAX: usize = 64;
/// Bytes of payload.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Bytes of metadata.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an executor's settings.
pub const EXECUTOR_CONFIG_BYTES_MAX: usize = 64 * 1024;
/// How deep objects and lists lie in each other. Stored definitions are read with a limit of 128,
/// and lie a little deeper than the documents they were made from.
pub const DEPTH_MAX: usize = 64;
/// Most lost workers a job may ask to survive.
pub const CRASHES_MAX: u16 = 1000;
/// The longest wait before a retry, if it is always the same.
pub const FIXED_BACKOFF_SECONDS_MAX: u64 = 30 * 86_400;
/// The longest wait before a retry, if it doubles and nobody says how long it may get.
pub const EXPONENTIAL_BACKOFF_SECONDS_MAX: u64 = 3600;
/// Waits before retries that may be listed.
pub const RETRY_STAGES_MAX: usize = 50;
/// Characters in the note of a pause.
pub const NOTE_CHARS_MAX: usize = 500;
/// The longest silence of a body.
pub const TIMEOUT_SECONDS_MAX: u64 = 30 * 86_400;
/// The shortest limit of a duration or a delay.
pub const SPAN_MIN: Span = Span::from_secs(1);
/// The longest one.
pub const SPAN_MAX: Span = Span::from_secs(365 * 86_400);
/// The least that a run may be said to cost.
pub const COST_MIN: Span = Span::from_millis(1);
/// The longest period of a periodic schedule.
pub const PERIOD_MAX: Span = Periodic::LONGEST;
/// Characters in a schedule on one line.
pub const EXPRESSION_CHARS_MAX: usize = 1000;
/// Blackouts a job may have.
pub const BLACKOUTS_MAX: usize = 48;
/// Nodes a job may stay away from.
pub const NODES_MAX: usize = 100;
/// Jobs that one command may name.
pub const BULK_IDS_MAX: usize = 10_000;
/// Jobs that one request may create.
pub const BULK_JOBS_MAX: usize = 10_000;
/// Keys of metadata in a filter.
pub const FILTER_LABELS_MAX: usize = 10;
/// The longest time in which a key counts.
pub const DEDUP_WINDOW_SECONDS_MAX: u64 = LONGEST_WINDOW.as_micros() / 1_000_000;
/// Runs after which a job may stop.
pub const RUNS_MAX: u64 = 1_000_000_000_000;

/// The largest number of a target: every program that reads JSON can hold it.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;
