//! Limits of job fields and requests.

use evenkeel_core::Span;
use evenkeel_core::dedup::LONGEST_WINDOW;
use evenkeel_core::schedule::Periodic;

pub const NAME_CHARS_MAX: usize = 255;
pub const DESCRIPTION_CHARS_MAX: usize = 4096;
pub const URL_CHARS_MAX: usize = 2048;
pub const POOL_CHARS_MAX: usize = 64;
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
pub const EXECUTOR_CONFIG_BYTES_MAX: usize = 64 * 1024;
/// Maximum nesting depth of a job document. Stored jobs are read with a depth limit of 128, and are
/// nested a little deeper than their documents.
pub const DEPTH_MAX: usize = 64;
pub const CRASHES_MAX: u16 = 1000;
/// Maximum fixed delay before a retry, in seconds.
pub const FIXED_BACKOFF_SECONDS_MAX: u64 = 30 * 86_400;
/// Default maximum delay of an exponential backoff between retries, in seconds.
pub const EXPONENTIAL_BACKOFF_SECONDS_MAX: u64 = 3600;
pub const RETRY_STAGES_MAX: usize = 50;
pub const NOTE_CHARS_MAX: usize = 500;
pub const TIMEOUT_SECONDS_MAX: u64 = 30 * 86_400;
/// Minimum duration or delay.
pub const SPAN_MIN: Span = Span::from_secs(1);
/// Maximum duration or delay.
pub const SPAN_MAX: Span = Span::from_secs(365 * 86_400);
/// Minimum value of `cost`, the expected running time of a run.
pub const COST_MIN: Span = Span::from_millis(1);
pub const PERIOD_MAX: Span = Periodic::LONGEST;
pub const EXPRESSION_CHARS_MAX: usize = 1000;
pub const BLACKOUTS_MAX: usize = 48;
pub const NODES_MAX: usize = 100;
pub const BULK_IDS_MAX: usize = 10_000;
pub const BULK_JOBS_MAX: usize = 10_000;
pub const FILTER_LABELS_MAX: usize = 10;
pub const DEDUP_WINDOW_SECONDS_MAX: u64 = LONGEST_WINDOW.as_micros() / 1_000_000;
/// Maximum value of `max_runs`.
pub const RUNS_MAX: u64 = 1_000_000_000_000;

/// Maximum target number, which every JSON parser can represent exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;
