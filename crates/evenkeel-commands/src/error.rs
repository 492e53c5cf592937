//! What can go wrong with a command.

use evenkeel_core::JobId;
use evenkeel_store::StoreError;

use crate::Fault;

/// A command that was not obeyed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such thing, or not for this tenant: nobody learns which.
    #[error("there is no such job or execution")]
    NotFound,
    /// The document is wrong.
    #[error("the document is not acceptable")]
    Invalid(Vec<Fault>),
    /// Another job of the tenant has the name and the configuration.
    #[error("the job {id} has this name and configuration already")]
    NameTaken {
        /// Which one.
        id: JobId,
    },
    /// The job is in a state that does not allow it.
    #[error("{0}")]
    Conflict(Conflict),
    /// The store failed. Whether the command took effect is unknown if it did not answer.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Why a job does not allow what was asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Conflict {
    /// A run of it goes on.
    #[error(
        "a run of this job is still going on and its overlap policy allows no other; wait for its \
         end, or create the job with \"overlap\": \"allow\""
    )]
    Busy,
    /// Somebody ended it for good.
    #[error("this job was cancelled and runs no more; create it anew")]
    Cancelled,
}
