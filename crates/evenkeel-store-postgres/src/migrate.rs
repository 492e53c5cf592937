//! Brings the tables up to date: forward only, by one node at a time, safe to repeat.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use crate::error::{OpenError, is_outage};
use crate::options::{CONNECT_TIMEOUT, PostgresOptions, Purpose};
use crate::tls;

/// Every step from an empty database to today's tables, oldest first.
const STEPS: [&str; 23] = [
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_notes.sql"),
    include_str!("../migrations/0003_pages.sql"),
    include_str!("../migrations/0004_cancel.sql"),
    include_str!("../migrations/0005_schedules.sql"),
    include_str!("../migrations/0006_control.sql"),
    include_str!("../migrations/0007_lists.sql"),
    include_str!("../migrations/0008_requests.sql"),
    include_str!("../migrations/0009_access.sql"),
    include_str!("../migrations/0010_events.sql"),
    include_str!("../migrations/0011_no_tenant_check.sql"),
    include_str!("../migrations/0012_balance.sql"),
    include_str!("../migrations/0013_aging.sql"),
    include_str!("../migrations/0014_pools.sql"),
    include_str!("../migrations/0015_targets.sql"),
    include_str!("../migrations/0016_dead.sql"),
    include_str!("../migrations/0017_run_priority.sql"),
    include_str!("../migrations/0018_limits.sql"),
    include_str!("../migrations/0019_dedup.sql"),
    include_str!("../migrations/0020_event_job_name.sql"),
    include_str!("../migrations/0021_secrets.sql"),
    include_str!("../migrations/0022_held.sql"),
    include_str!("../migrations/0023_given_up.sql"),
];

/// Taken while the tables change, and given back with the transaction.
const LOCK_CLASS: i32 = 0x45_4b_4d_47;

pub(crate) async fn migrate(options: &PostgresOptions) -> Result<(), OpenError> {
    let config = options.config(Purpose::Migrate)?;
    let tls = tls::connector(config.get_ssl_mode())?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT * 2, config.connect(tls))
        .await
        .map_err(|elapsed| OpenError::Unavailable(elapsed.into()))?;
    let (mut client, connection) = connected.map_err(open_error)?;
    let driver = tokio::spawn(connection);
    let migrated = run(&mut client, options.schema.as_deref()).await;
    drop(client);
    // The driver ends with the client; how the connection closed is of no interest.
    drop(driver.await);
    migrated
}

/// Each step is a transaction of its own: the next one does not keep what the last one has locked.
async fn run(client: &mut Client, schema: Option<&str>) -> Result<(), OpenError> {
    loop {
        let transaction = client.transaction().await.map_err(open_error)?;
        let has_more = next_step(&transaction, schema).await?;
        transaction.commit().await.map_err(open_error)?;
        if !has_more {
            return Ok(());
        }
    }
}

/// Takes the oldest step that is missing. Says whether there was one.
async fn next_step(transaction: &Transaction<'_>, schema: Option<&str>) -> Result<bool, OpenError> {
    let known = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
    let lock = sql!("migrate_lock");
    let name = schema.unwrap_or_default();
    transaction.execute(lock, &[&LOCK_CLASS, &name]).await.map_err(open_error)?;
    if let Some(schema) = schema {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
        transaction.batch_execute(&create).await.map_err(open_error)?;
    }
    let create = sql!("migrate_create_table");
    transaction.batch_execute(create).await.map_err(open_error)?;
    let newest = sql!("migrate_newest");
    let found: i32 = transaction.query_one(newest, &[]).await.map_err(open_error)?.get(0);
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    let Some((version, step)) = (1..).zip(STEPS).find(|(version, _)| *version > found) else {
        return Ok(false);
    };
    transaction.batch_execute(step).await.map_err(open_error)?;
    let record = sql!("migrate_record");
    transaction.execute(record, &[&version]).await.map_err(open_error)?;
    tracing::info!(schema.version = version, "brought the tables to version {version}");
    Ok(true)
}

fn open_error(error: tokio_postgres::Error) -> OpenError {
    // 28 authorisation, 3D no such database.
    let refuses = |code: &SqlState| ["28", "3D"].iter().any(|class| code.code().starts_with(class));
    if is_outage(&error) {
        OpenError::Unavailable(error.into())
    } else if error.code().is_some_and(refuses) {
        OpenError::Refused(error.into())
    } else {
        OpenError::Migration(error.into())
    }
}
