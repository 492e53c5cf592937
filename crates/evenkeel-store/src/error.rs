//! Errors of stores.

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a reachable database rejects writes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unwritable {
    DiskFull,
    /// The database is a replica, or its file is not writable.
    ReadOnly,
}

impl Unwritable {
    /// Returns what an operator can do to make the database writable again. When the database is
    /// writable again, Evenkeel resumes without a restart.
    pub const fn way_out(self) -> &'static str {
        match self {
            Self::DiskFull => "free space on that disk",
            Self::ReadOnly => "make it writable again, or connect to the server that takes writes",
        }
    }
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::DiskFull => "the disk of the database is full",
            Self::ReadOnly => "the database is read-only",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer in time. It is unknown whether the operation took effect, so the
    /// caller must read the state again.
    #[error("the database did not answer")]
    Unavailable(#[source] Cause),
    /// The database accepts no writes for now. The transaction was rolled back, so nothing changed.
    #[error("{0}; nothing was changed")]
    NotWritable(Unwritable, #[source] Cause),
    /// A stored value cannot be read.
    #[error("stored {column} of {row} is not readable")]
    Corrupt { row: String, column: &'static str, source: Cause },
    /// The database rejected the SQL statement, which is a bug in Evenkeel; nothing changed.
    #[error("the database refused the statement")]
    Refused(#[source] Cause),
}

impl StoreError {
    pub fn corrupt(
        row: impl std::fmt::Display,
        column: &'static str,
        source: impl Into<Cause>,
    ) -> Self {
        Self::Corrupt { row: row.to_string(), column, source: source.into() }
    }

    /// Returns true if the caller should wait and retry.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::NotWritable(..))
    }

    pub const fn unwritable(&self) -> Option<Unwritable> {
        match self {
            Self::NotWritable(why, _) => Some(*why),
            _ => None,
        }
    }

    /// Copies the error for another caller that waited for the same result.
    pub fn for_another(&self) -> Self {
        let why = std::error::Error::source(self).map(ToString::to_string);
        let why = why.unwrap_or_else(|| self.to_string()).into();
        match self {
            Self::Unavailable(_) => Self::Unavailable(why),
            Self::NotWritable(unwritable, _) => Self::NotWritable(*unwritable, why),
            Self::Corrupt { .. } | Self::Refused(_) => Self::Refused(why),
        }
    }

    /// Converts the error of a command whose earlier steps took effect, so that the message does
    /// not claim that nothing changed.
    #[must_use]
    pub fn after_changes(self) -> Self {
        match self {
            Self::NotWritable(why, cause) => {
                Self::Unavailable(format!("{why}, in the middle of the command: {cause}").into())
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_outage_that_changed_nothing() {
        let full = StoreError::NotWritable(Unwritable::DiskFull, "no room".into());
        assert!(full.is_outage());
        assert_eq!(full.unwritable(), Some(Unwritable::DiskFull));
        assert_eq!(full.for_another().unwritable(), Some(Unwritable::DiskFull));
        let later = full.after_changes();
        assert!(later.is_outage());
        assert_eq!(later.unwritable(), None, "an earlier step has changed something");
        let refused = StoreError::Refused("no".into());
        assert!(matches!(refused.after_changes(), StoreError::Refused(_)));
    }
}
