//! What people can ask of Evenkeel, whatever way they ask it.
//!
//! A use case reads a document into domain types, asks the store once, wakes whoever waits for the
//! change, and answers in domain types. HTTP, pages and the command line only translate.

mod callbacks;
mod error;
mod executors;
mod fault;
mod jobs;
mod next;
mod pages;
mod read;
mod runs;

pub use callbacks::{Callbacks, Ending};
pub use error::{CommandError, Conflict};
pub use executors::ExecutorCheck;
pub use fault::Fault;
pub use jobs::{Accepted, Created, Jobs};
pub use next::{NEXT_TIMES_MAX, NextTime, next_times};
pub use pages::Pages;
pub use read::{JobSpec, limits, read_job, read_schedule};
pub use runs::Runs;
