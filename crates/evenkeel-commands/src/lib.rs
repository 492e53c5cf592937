//! What people can ask of Evenkeel, whatever way they ask it.
//!
//! A use case reads a document into domain types, asks the store once, wakes whoever waits for the
//! change, and answers in domain types. HTTP, pages and the command line only translate.

mod callbacks;
mod describe;
mod error;
mod executors;
mod fault;
mod figures;
mod filter;
mod jobs;
mod pages;
mod preview;
mod read;
mod runs;
mod starts;
mod words;

pub use callbacks::{Callbacks, Ending};
pub use describe::describe;
pub use error::{CommandError, Conflict};
pub use executors::ExecutorCheck;
pub use fault::Fault;
pub use figures::{Figures, RunSearch};
pub use filter::{FILTER_NAMES, METADATA_PREFIX, SORT_NAMES, read_filter, read_sort, read_time};
pub use jobs::{
    Accepted, Created, Foreseen, JobCondition, JobExplanation, Jobs, LOAD_COUNTED_MAX, SlotLoad,
    condition_of,
};
pub use pages::Pages;
pub use preview::{NEXT_TIMES_MAX, PREVIEW_TIMES_MAX, Preview, kind, preview};
pub use read::{JobSpec, Misread, Said, limits, read_job, read_schedule};
pub use runs::Runs;
pub use starts::NextTime;
pub use words::{condition_words, why_words};
