//! Opens connections: sets the permissions of the file, applies the settings, and creates the
//! tables.

use std::fs::OpenOptions;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::migrate::migrate;
use crate::{OpenError, SqliteOptions};

/// The statement cache holds every statement of this crate, so that each statement is prepared once
/// per connection.
const STATEMENTS_MAX: usize = 360;

/// SQLite truncates the write-ahead log to this many bytes after the log was copied.
const LOG_BYTES_KEPT: i64 = 256 << 20;

/// Opens the connection that writes, and creates or migrates the tables.
pub(crate) fn writer(options: &SqliteOptions) -> Result<Connection, OpenError> {
    create_private(options).map_err(OpenError::File)?;
    let mut connection = connect(options)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::NoLog(mode));
    }
    let synchronous = if options.synchronous_full { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -i64::from(options.cache_mb) * 1024)?;
    migrate(&mut connection)?;
    if let Some(pages) = options.pages_max {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(connection)
}

pub(crate) fn reader(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let connection = connect(options)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -4 * 1024)?;
    Ok(connection)
}

/// Opens the connection that copies the log into the file.
pub(crate) fn log_copier(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let connection = connect(options)?;
    // A connection that has read nothing does not know that the log exists: it would copy nothing
    // and report success.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn connect(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let connection = Connection::open(&options.path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Query plans must not depend on bound values. Without `ENABLE_QPSG`, SQLite plans a statement
    // again for each new value if a table has partial indexes, and planning takes longer than
    // running the statement.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The module `log` copies the write-ahead log, so that no commit has to copy it.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Creates the file with permissions for its owner only. SQLite gives the write-ahead log and its
/// index the same permissions as the database file.
fn create_private(options: &SqliteOptions) -> std::io::Result<()> {
    let mut how = OpenOptions::new();
    how.create(true).truncate(false).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        how.mode(0o600);
        let file = how.open(&options.path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
    }
    #[cfg(not(unix))]
    how.open(&options.path).map(drop)
}

#[cfg(test)]
mod tests {
    use rusqlite::{StatementStatus, params};

    use super::*;

    #[test]
    fn a_statement_is_planned_once_for_all_values() {
        let folder = tempfile::tempdir().unwrap();
        let connection = writer(&SqliteOptions::new(folder.path().join("plans.sqlite"))).unwrap();
        let sql = sql!("get_jobs");
        let mut get = connection.prepare(sql).unwrap();
        for tenant in 0..5_i32 {
            let id = [u8::try_from(tenant).unwrap(); 16];
            assert!(!get.exists(params![tenant, id]).unwrap());
        }
        assert_eq!(get.get_status(StatementStatus::RePrepare), 0);
    }
}
