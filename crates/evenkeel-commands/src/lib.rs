//! What people can ask of Evenkeel, whatever way they ask it.
//!
//! A use case reads a document into domain types, asks the store once, wakes whoever waits for the
//! change, and answers in domain types. HTTP, pages and the command line only translate.

mod admin;
mod balance;
mod callbacks;
mod dead;
mod dedup_words;
mod describe;
mod document;
mod error;
mod executors;
mod fault;
mod feed;
mod figures;
mod filter;
pub mod import;
mod jobs;
mod pages;
mod preview;
mod read;
mod retry_words;
mod runs;
mod starts;
mod update;
mod warnings;
mod words;

pub use admin::{
    AdminJob, AdminPage, AdminPlace, AdminStats, AdminStatus, BulkStatus, EachJob, JobRef,
    ScheduledJob, cron_words, read_boost, read_bulk_retry, read_bulk_status, read_enabled,
    read_new_priority, read_status,
};
pub use balance::{
    Balance, Balancing, ChangedJob, Distribution, Known, LISTED_MAX, MoveShown, MovesPage, Outlook,
    PlanOptions, Previewed, RebalanceConflict, RebalanceOrder, Rebalanced, Running, SCORES_MAX,
    ScoreHistory, ScoreQuery, Shape, Share, SkippedJob, Spreads, Subject, plan_expires_at,
    read_plan_options, read_rebalance, read_undo, state_word, undo_until,
};
pub use callbacks::{Callbacks, Ending};
pub use dead::read_letter_ids;
pub use dedup_words::DedupWords;
pub use describe::describe;
pub use document::document_of;
pub use error::{CommandError, Conflict};
pub use executors::ExecutorCheck;
pub use fault::Fault;
pub use feed::{EventFilter, Feed, Listening, News};
pub use figures::{Figures, RunSearch};
pub use filter::{FILTER_NAMES, METADATA_PREFIX, SORT_NAMES, read_filter, read_sort, read_time};
pub use jobs::{
    Accepted, Ask, Asked, BULK_BATCH, BulkAction, BulkCommand, BulkOutcome, Created, Edit,
    Foreseen, Forgotten, JobCondition, JobExplanation, Jobs, LOAD_COUNTED_MAX, Led, Made,
    REFUSALS_TOLD_MAX, Refusal, Registration, SlotLoad, Waits, Which, condition_of,
};
pub use pages::Pages;
pub use preview::{NEXT_TIMES_MAX, PREVIEW_TIMES_MAX, Preview, kind, preview};
pub use read::{
    JobSpec, ParsedSchedule, SyntaxError, is_set_by_the_server, job_field_names, limits,
    read_bulk_command, read_job, read_schedule, read_trigger,
};
pub use retry_words::RetryWords;
pub use runs::Runs;
pub use starts::NextTime;
pub use update::Manner;
pub use warnings::warnings_of;
pub use words::{condition_words, why_words};
