//! Creates the tables and migrates them to the newest schema version.
//!
//! `PRAGMA user_version` holds the number of the last migration that was applied.

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// The migrations in order. A released migration never changes, and each new migration needs a case
/// in `tests/upgrade.rs`.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_activity.sql"),
    include_str!("../migrations/0003_job_search.sql"),
];

/// Applies the migrations that the database does not have yet, all in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Unreleased versions of the program kept the schema version in this table.
    if transaction.table_exists(None, "schema_migration")? {
        return Err(OpenError::Unreleased);
    }
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, script) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_applied() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), MIGRATIONS.len());
    }
}
