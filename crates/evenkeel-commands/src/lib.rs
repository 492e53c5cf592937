//! The commands and queries of Evenkeel, independent of HTTP and of the command line.
//!
//! A command reads a JSON document into domain types, changes the store, signals the nodes, and
//! returns domain types. The crate `evenkeel-api` and the `evenkeel` program only translate
//! requests and responses.
//!
//! - Documents: `read` parses jobs, schedules and commands, and reports all faults together; its
//!   module `job_fields` is the table of simple job fields. `update` parses changes, `document`
//!   converts a stored job to a JSON document, and `filter` parses filters and sort orders.
//! - Jobs: `jobs` creates, changes, triggers, pauses, lists and explains jobs. `admin` is the admin
//!   API of a crawl queue on the same jobs.
//! - Runs: `runs` reads and cancels attempts, `run_list` reads runs with their attempts, `stats`
//!   searches and counts them, `activity` counts them per time slot, `timeline` reads past and future
//!   runs of a period, `dead_letters` redrives failed runs, `callbacks` accepts reports of external
//!   services, `pages` reads crawled pages.
//! - Load: `balance` chooses start times and rebalances jobs, so that runs are spread evenly over
//!   time.
//! - Schedules: `preview` and `starts` compute start times. `describe`, `explain_text` and
//!   `explain_past_text` describe schedules, conditions and reasons in sentences, `condition_advice`
//!   says what would make a job OK again. `warnings` reports deadlines that cannot be kept.
//! - Events: `feed` streams events to clients. Import: `import` plans jobs from crontabs and from
//!   the table of a predecessor system.

mod activity;
mod admin;
mod balance;
mod callbacks;
mod condition_advice;
mod dead_letters;
mod dedup_fields;
mod describe;
mod document;
mod error;
mod executors;
mod explain_past_text;
mod explain_text;
mod fault;
mod feed;
mod filter;
pub mod import;
mod jobs;
mod pages;
mod preview;
mod read;
mod retry_fields;
mod run_list;
mod runs;
mod starts;
mod stats;
mod timeline;
mod update;
mod warnings;

pub use activity::{Activity, ActivityQuery};
pub use admin::{
    AdminCursor, AdminJob, AdminPage, AdminStats, AdminStatus, BulkStatus, EachJob, JobRef,
    ScheduledJob, cron_words, read_boost, read_bulk_retry, read_bulk_status, read_enabled,
    read_new_priority, read_status,
};
pub use balance::{
    Balance, Balancing, ChangedJob, Distribution, KnownLoads, LISTED_MAX, ListedMove, MovesPage,
    PlanOptions, PlanPreview, PlanSource, PlanSummary, RebalanceConflict, RebalanceReport,
    RebalanceRequest, RunningRebalance, SCORES_MAX, ScoreHistory, ScoreQuery, Shape, Share,
    SkippedJob, Spreads, plan_expires_at, read_plan_options, read_rebalance, read_undo, state_name,
    undo_until,
};
pub use callbacks::{AttemptReport, Callbacks};
pub use condition_advice::condition_advice;
pub use dead_letters::read_letter_ids;
pub use dedup_fields::DedupFields;
pub use describe::describe;
pub use document::document_of;
pub(crate) use error::Result;
pub use error::{CommandError, Conflict};
pub use executors::ExecutorCheck;
pub use explain_past_text::past_text;
pub use explain_text::{condition_text, reason_text};
pub use fault::Fault;
pub use feed::{EventFilter, EventSubscription, Feed, FeedItem};
pub use filter::{FILTER_NAMES, METADATA_PREFIX, SORT_NAMES, read_filter, read_sort, read_time};
pub use jobs::{
    BULK_BATCH, BulkAction, BulkCommand, BulkOutcome, ControlCommand, CreatedJob, DeletedJob, Edit,
    FollowerUpdate, JobAtRisk, JobCondition, JobExplanation, JobSelection, Jobs, LOAD_COUNTED_MAX,
    NextTimes, PastAnswer, PastTime, REFUSALS_LISTED_MAX, Refusal, Registration, SlotLoad,
    TriggerResult, WaitingRun, condition_of, read_past_time,
};
pub use pages::Pages;
pub use preview::{NEXT_TIMES_MAX, PREVIEW_TIMES_MAX, Preview, kind, preview};
pub use read::{
    JobSpec, ParsedSchedule, SyntaxError, is_set_by_the_server, job_field_names, limits,
    read_bulk_command, read_job, read_schedule, read_trigger,
};
pub use retry_fields::RetryFields;
pub use run_list::Run;
pub use runs::Runs;
pub use starts::NextTime;
pub use stats::{RunSearch, TenantStats};
pub use timeline::{Lane, Mark, MarkStatus, Timeline, TimelineContent, TimelineQuery};
pub use update::EditMode;
pub use warnings::warnings_of;

/// A JSON object.
type Object = serde_json::Map<String, serde_json::Value>;
