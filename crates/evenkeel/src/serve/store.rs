//! Opens the store.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::Store;
use evenkeel_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};

use crate::config::StoreChoice;
use crate::{Failure, Result};

/// Opens the database and migrates its tables to this version.
pub async fn open(choice: &StoreChoice) -> Result<Arc<dyn Store>> {
    match choice {
        StoreChoice::Sqlite(path) => match SqliteStore::open(SqliteOptions::new(path)).await {
            Ok(store) => Ok(Arc::new(store)),
            Err(error) => Err(Failure::because(format!("{choice} can't be opened"), &error)
                .or_else(
                    "check the permissions of the file and its folder, and the free disk space",
                )),
        },
        StoreChoice::Postgres(url) => match PostgresStore::connect(PostgresOptions::new(url)).await
        {
            Ok(store) => Ok(Arc::new(store)),
            Err(error) => Err(postgres_failure(choice, &error)),
        },
    }
}

/// Opens the database. Retries for about 16 s if the database is unavailable, because a database is
/// often started together with the server.
pub async fn open_with_retries(choice: &StoreChoice) -> Result<Arc<dyn Store>> {
    const WAITS: [u64; 6] = [250, 500, 1000, 2000, 4000, 8000];
    let StoreChoice::Postgres(url) = choice else { return open(choice).await };
    for wait in WAITS {
        match PostgresStore::connect(PostgresOptions::new(url)).await {
            Ok(store) => return Ok(Arc::new(store)),
            Err(error @ OpenError::Unavailable(_)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    retry.wait_ms = wait,
                    store = %choice,
                    "database does not answer yet; will retry"
                );
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            Err(error) => return Err(postgres_failure(choice, &error)),
        }
    }
    open(choice).await
}

fn postgres_failure(choice: &StoreChoice, error: &OpenError) -> Failure {
    let failure = Failure::because(format!("{choice} can't be opened"), error);
    let create = || match choice {
        StoreChoice::Postgres(url) => PostgresOptions::new(url).create_command(),
        StoreChoice::Sqlite(_) => None,
    };
    match error.sql_state() {
        Some("3D000") => {
            let create = create().unwrap_or_else(|| "createdb DATABASE".into());
            failure.or_else(format!("create the database first: {create}"))
        }
        _ => failure.or_else(way_out(error)),
    }
}

fn way_out(error: &OpenError) -> &'static str {
    match (error, error.sql_state()) {
        (_, Some("28P01")) => "check the user and the password in the address",
        (_, Some(code)) if code.starts_with("28") => {
            "check the user in the address: create it with createuser, and allow it in the server's \
             pg_hba.conf"
        }
        (_, Some("53100")) => "free space on the disk of the database",
        (_, Some("25006")) => "connect to the server that takes writes; this one is read-only",
        (_, Some("42501")) => "check the user's rights: it must be allowed to create tables",
        (OpenError::Unavailable(_), _) => {
            "check that the database runs and can be reached from here"
        }
        (OpenError::NewerSchema { .. }, _) => "install the newer evenkeel, or use another database",
        (OpenError::Unreleased, _) => "use the address of an empty database",
        (OpenError::Options(_), _) => "write it like postgres://USER:PASSWORD@HOST:5432/DATABASE",
        (OpenError::Refused(_), _) => {
            "check the database, the user and the password in the address"
        }
        (OpenError::Migration(_), _) => "see the server's log for details",
    }
}
