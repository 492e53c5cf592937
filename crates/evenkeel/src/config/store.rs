//! The choice of the database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The database. `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreChoice {
    Sqlite(PathBuf),
    Postgres(String),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a store: write sqlite:PATH or postgres://USER@HOST/DATABASE")]
pub struct StoreChoiceError;

impl StoreChoice {
    /// Returns the default database of a data directory.
    pub fn in_dir(data_dir: &Path) -> Self {
        Self::Sqlite(data_dir.join("evenkeel.db"))
    }
}

impl FromStr for StoreChoice {
    type Err = StoreChoiceError;

    fn from_str(text: &str) -> Result<Self, StoreChoiceError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.into()));
        }
        let path = text.strip_prefix("sqlite:").ok_or(StoreChoiceError)?;
        // Users often write SQLite URLs as sqlite:///path.
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') || path == ":memory:" {
            return Err(StoreChoiceError);
        }
        Ok(Self::Sqlite(path.into()))
    }
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                // The user part and the query of a URL may contain passwords, so both are hidden.
                let rest = url.split_once("://").map_or("", |(_, rest)| rest);
                let rest = rest.split('?').next().unwrap_or_default();
                let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
                write!(f, "postgres://{place}")
            }
        }
    }
}

impl fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_store_are_parsed() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreChoice::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///a/b.db".parse(), Ok(StoreChoice::Sqlite("/a/b.db".into())));
        let url = "postgresql://localhost/jobs";
        assert_eq!(url.parse(), Ok(StoreChoice::Postgres(url.into())));
        for text in ["", "a.db", "sqlite:", "sqlite::memory:", "mysql://localhost"] {
            assert_eq!(text.parse::<StoreChoice>(), Err(StoreChoiceError), "{text}");
        }
    }

    #[test]
    fn password_is_never_shown() {
        for url in [
            "postgres://ann:s3cret@db:5432/jobs?sslmode=require",
            "postgres://ann:s3c@ret@db:5432/jobs",
            "postgres://db:5432/jobs?user=ann&password=s3cret",
        ] {
            let choice: StoreChoice = url.parse().unwrap();
            assert_eq!(choice.to_string(), "postgres://db:5432/jobs");
            assert_eq!(format!("{choice:?}"), "postgres://db:5432/jobs");
        }
    }
}
