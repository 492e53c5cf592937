//! What can go wrong in a store.

/// Any error at all, as the source of another.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A verb that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer, or not in time. Whether the verb took effect is unknown:
    /// read back before doing anything else.
    #[error("the database did not answer")]
    Unavailable(#[source] Cause),
    /// A stored value makes no sense.
    #[error("stored {column} of {row} is not readable")]
    Corrupt {
        /// Which row.
        row: String,
        /// Which column.
        column: &'static str,
        /// Why.
        source: Cause,
    },
    /// The database refused the statement, which changed nothing: a fault of ours.
    #[error("the database refused the statement")]
    Refused(#[source] Cause),
}

impl StoreError {
    /// A stored value that makes no sense.
    pub fn corrupt(
        row: impl std::fmt::Display,
        column: &'static str,
        source: impl Into<Cause>,
    ) -> Self {
        Self::Corrupt { row: row.to_string(), column, source: source.into() }
    }

    /// Is waiting and trying again the right answer?
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
