//! What goes wrong with PostgreSQL, sorted by what helps against it.

use evenkeel_store::{Cause, StoreError, Unwritable};
use tokio_postgres::error::SqlState;

/// A store that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address or an option makes no sense.
    #[error("the PostgreSQL address or options are not usable")]
    Options(#[source] Cause),
    /// The database did not answer.
    #[error("the database did not answer")]
    Unavailable(#[source] Cause),
    /// The server answered, and does not let this user into this database.
    #[error("the server refused the connection")]
    Refused(#[source] Cause),
    /// The tables could not be made or brought up to date.
    #[error("the tables could not be brought up to date")]
    Migration(#[source] Cause),
    /// A newer version of Evenkeel has used this database.
    #[error(
        "the database has schema version {found}, but this program knows versions up to {known}: \
         use the newer program, or restore a backup from before the upgrade"
    )]
    NewerSchema { found: i32, known: i32 },
    /// The tables are older than the first release.
    #[error(
        "the database was made by an older, unreleased version of Evenkeel and cannot be upgraded: \
         start with an empty database; nothing older was released"
    )]
    Unreleased,
}

impl OpenError {
    /// The server's code of what went wrong, if it gave one, like `3D000`.
    pub fn sql_state(&self) -> Option<&str> {
        let (Self::Unavailable(cause) | Self::Refused(cause) | Self::Migration(cause)) = self
        else {
            return None;
        };
        Some(cause.downcast_ref::<tokio_postgres::Error>()?.code()?.code())
    }
}

/// Why one try of a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database or the connection said so.
    Postgres(tokio_postgres::Error),
    /// Somebody was quicker; the verb changed nothing and is simply tried again.
    Again,
    /// Trying again does not help.
    Final(StoreError),
}

/// The result of one try of a verb.
pub(crate) type Tried<T> = Result<T, Failure>;

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

impl Failure {
    /// Two transactions were in each other's way, and this one was undone.
    pub(crate) fn is_collision(&self) -> bool {
        match self {
            Self::Postgres(error) => error.code().is_some_and(|code| {
                *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::T_R_SERIALIZATION_FAILURE
            }),
            Self::Again => true,
            Self::Final(_) => false,
        }
    }

    /// A unique index has such a value already.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Must the connection be thrown away?
    pub(crate) fn spoils_connection(&self) -> bool {
        matches!(self, Self::Postgres(error) if is_outage(error))
    }

    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Postgres(error) => match unwritable(&error) {
                Some(why) => StoreError::NotWritable(why, error.into()),
                None if is_outage(&error) => StoreError::Unavailable(error.into()),
                None => StoreError::Refused(error.into()),
            },
            Self::Again => StoreError::Unavailable("others were quicker, several times".into()),
            Self::Final(error) => error,
        }
    }
}

/// Will it pass by waiting? Without a code, the server said nothing at all: the connection is gone.
pub(crate) fn is_outage(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        return error.is_closed() || is_io(error);
    };
    // 08 connection, 53 resources, 57 operator intervention and time-outs, 58 system; then lock
    // time-out, idle time-out, and a server that has become a read-only replica.
    ["08", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
        || ["55P03", "25P03", "25006"].contains(&code.code())
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
}

/// A statement that failed for one of these was undone with its transaction. A server that can't
/// write its log at the commit itself stops instead of answering.
fn unwritable(error: &tokio_postgres::Error) -> Option<Unwritable> {
    match error.code()?.code() {
        "53100" => Some(Unwritable::DiskFull),
        "25006" => Some(Unwritable::ReadOnly),
        _ => None,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}
