//! From SQLite's faults to the port's.

use evenkeel_store::{Cause, StoreError, Unwritable};
use rusqlite::ErrorCode;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be made or reached.
    #[error("cannot open the database file")]
    File(#[source] std::io::Error),
    /// SQLite refused.
    #[error("cannot open the database")]
    Database(#[from] rusqlite::Error),
    /// A newer version of the program has migrated the database.
    #[error(
        "the database has schema version {found}, but this program knows versions up to {known}: \
         use the newer program, or restore a backup from before the upgrade"
    )]
    Newer { found: i64, known: i64 },
    /// The tables are older than the first release.
    #[error(
        "the database was made by an older, unreleased version of Evenkeel and cannot be upgraded: \
         start with an empty data directory; nothing older was released"
    )]
    Unreleased,
    /// SQLite would not keep a write-ahead log, for instance on a network file system.
    #[error("the database cannot have a write-ahead log there (journal_mode is {0})")]
    NoLog(String),
    /// A thread could not be started.
    #[error("cannot start a thread for the database")]
    Thread(#[source] std::io::Error),
}

/// A verb's failure while it is still inside this crate.
pub(crate) enum Failure {
    /// SQLite said no.
    Sql(rusqlite::Error),
    /// It was told apart already.
    Store(StoreError),
}

/// What a verb inside this crate answers.
pub(crate) type Answer<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Sql(error) => classify(error),
        }
    }
}

/// Only what the statement itself did wrong is `Refused`: everything else may be better tomorrow.
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
                unavailable("it took too long and was given up: narrow down what is looked for")
            }
            _ => fault_of(error),
        },
        _ => StoreError::Refused(Box::new(error)),
    }
}

/// What a fault means that is no fault of the statement's. SQLite undoes the transaction when the
/// disk is full, at the commit as well.
pub(crate) fn fault_of(error: rusqlite::Error) -> StoreError {
    match unwritable(&error) {
        Some(why) => StoreError::NotWritable(why, Box::new(error)),
        None => StoreError::Unavailable(Box::new(error)),
    }
}

/// Does it say that nothing can be written?
pub(crate) fn unwritable(error: &rusqlite::Error) -> Option<Unwritable> {
    let error = error.sqlite_error()?;
    match error.code {
        ErrorCode::DiskFull => Some(Unwritable::DiskFull),
        // The index of the log can't grow.
        _ if error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            Some(Unwritable::DiskFull)
        }
        ErrorCode::ReadOnly => Some(Unwritable::ReadOnly),
        _ => None,
    }
}

/// The database did not answer, because of this.
pub(crate) fn unavailable(why: impl Into<Cause>) -> StoreError {
    StoreError::Unavailable(why.into())
}
