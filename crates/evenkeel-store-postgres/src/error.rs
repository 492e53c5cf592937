//! Classifies errors of PostgreSQL by how the store handles them.

use evenkeel_store::{Cause, StoreError, Unwritable};
use tokio_postgres::error::SqlState;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("invalid PostgreSQL URL or options")]
    Options(#[source] Cause),
    #[error("cannot reach the database")]
    Unavailable(#[source] Cause),
    /// The server does not allow this user to connect to this database.
    #[error("the server refused the connection")]
    Refused(#[source] Cause),
    #[error("cannot create or upgrade the tables")]
    Migration(#[source] Cause),
    /// A newer version of Evenkeel has migrated the database to a schema that this version does not
    /// know.
    #[error(
        "the database has schema version {found}, but this program knows versions up to {known}: \
         use the newer program, or restore a backup from before the upgrade"
    )]
    NewerSchema { found: i32, known: i32 },
    /// A version before the first release created the tables.
    #[error(
        "the database was made by an older, unreleased version of Evenkeel and cannot be upgraded: \
         start with an empty database; nothing older was released"
    )]
    Unreleased,
}

impl OpenError {
    /// Returns the SQLSTATE of the server's error, such as `3D000`.
    pub fn sql_state(&self) -> Option<&str> {
        let (Self::Unavailable(cause) | Self::Refused(cause) | Self::Migration(cause)) = self
        else {
            return None;
        };
        Some(cause.downcast_ref::<tokio_postgres::Error>()?.code()?.code())
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        // SQLSTATE classes: 28 is invalid authorization, 3D an unknown database.
        let is_refusal =
            |code: &SqlState| ["28", "3D"].iter().any(|class| code.code().starts_with(class));
        if is_outage(&error) {
            Self::Unavailable(error.into())
        } else if error.code().is_some_and(is_refusal) {
            Self::Refused(error.into())
        } else {
            Self::Migration(error.into())
        }
    }
}

/// Why one try of a store method failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Postgres(tokio_postgres::Error),
    /// Another transaction changed the same rows first, so the store method has changed nothing and
    /// is repeated.
    Again,
    /// Repeating the store method does not help.
    Final(StoreError),
}

/// The result of one try of a store method.
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
    /// True if the transaction was rolled back because of a conflict with another transaction.
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

    /// True for a violation of a unique index.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// True if the connection must be closed after this error.
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
            Self::Again => StoreError::Unavailable(
                "gave up after several conflicts with other transactions".into(),
            ),
            Self::Final(error) => error,
        }
    }
}

/// True if the error is likely to go away with time. An error without a SQLSTATE is a lost
/// connection.
fn is_outage(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        return error.is_closed() || is_io(error);
    };
    // SQLSTATE classes: 08 connection, 53 resources, 57 operator intervention and time-outs, 58
    // system. The remaining codes are lock time-out, idle time-out, and a server that has become a
    // read-only replica.
    ["08", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
        || ["55P03", "25P03", "25006"].contains(&code.code())
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
}

/// If a statement fails because the database cannot be written, its changes are rolled back. A
/// server that cannot write its log during a commit stops without a response.
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
