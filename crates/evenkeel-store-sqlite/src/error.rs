//! Maps errors of SQLite to errors of the store.

use evenkeel_store::{Cause, StoreError, Unwritable};
use rusqlite::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be created or opened.
    #[error("cannot open the database file")]
    File(#[source] std::io::Error),
    #[error("cannot open the database")]
    Database(#[from] rusqlite::Error),
    /// A newer version of the program has migrated the database to a schema that this version does
    /// not know.
    #[error(
        "the database has schema version {found}, but this program knows versions up to {known}: \
         use the newer program, or restore a backup from before the upgrade"
    )]
    Newer { found: i64, known: i64 },
    /// A version before the first release created the tables.
    #[error(
        "the database was made by an older, unreleased version of Evenkeel and cannot be upgraded: \
         start with an empty data directory; nothing older was released"
    )]
    Unreleased,
    /// SQLite cannot use a write-ahead log at this path, for instance on a network file system.
    #[error(
        "the database cannot use a write-ahead log (journal_mode is {0}): put the file on a local disk"
    )]
    NoLog(String),
    #[error("cannot start a thread for the database")]
    Thread(#[source] std::io::Error),
}

/// An error inside this crate: the store error that a failed statement or a wrong row leads to.
pub(crate) struct Failure(StoreError);

pub(crate) type Answer<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self(classify(error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<Failure> for StoreError {
    fn from(Failure(error): Failure) -> Self {
        error
    }
}

/// Maps an error of SQLite. An error is `Refused` only if the statement is at fault; all other
/// errors may be temporary.
fn classify(error: rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => StoreError::corrupt("a row", "a column", error),
        rusqlite::Error::SqliteFailure(cause, _) => match cause.code {
            ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::ApiMisuse
            | ErrorCode::Unknown => StoreError::Refused(Box::new(error)),
            ErrorCode::OperationInterrupted => {
                unavailable("the query took too long and was interrupted: use a narrower filter")
            }
            // If the disk is full, SQLite rolls the transaction back, even during the commit.
            _ => match unwritable(&error) {
                Some(why) => StoreError::NotWritable(why, Box::new(error)),
                None => StoreError::Unavailable(Box::new(error)),
            },
        },
        _ => StoreError::Refused(Box::new(error)),
    }
}

/// Returns the reason if the error means that the database cannot be written.
pub(crate) fn unwritable(error: &rusqlite::Error) -> Option<Unwritable> {
    let error = error.sqlite_error()?;
    match error.code {
        ErrorCode::DiskFull => Some(Unwritable::DiskFull),
        // The index of the write-ahead log cannot grow.
        _ if error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            Some(Unwritable::DiskFull)
        }
        ErrorCode::ReadOnly => Some(Unwritable::ReadOnly),
        _ => None,
    }
}

pub(crate) fn unavailable(why: impl Into<Cause>) -> StoreError {
    StoreError::Unavailable(why.into())
}
