//! Creates and upgrades the tables. One node at a time applies the missing migrations.

use tokio_postgres::{Client, Transaction};

use crate::connection::connector;
use crate::error::OpenError;
use crate::options::{CONNECT_TIMEOUT, PostgresOptions, Purpose};

/// All migrations, oldest first. A released migration never changes, and each new migration needs a
/// case in `tests/upgrade.rs`.
const MIGRATIONS: [&str; 4] = [
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_room_for_state.sql"),
    include_str!("../migrations/0003_activity.sql"),
    include_str!("../migrations/0004_job_search.sql"),
];

/// First half of the key of the advisory lock that a node holds while it migrates.
const LOCK_CLASS: i32 = 0x45_4b_4d_47;

pub(crate) async fn migrate(options: &PostgresOptions) -> Result<(), OpenError> {
    let config = options.config(Purpose::Migrate)?;
    let tls = connector(config.get_ssl_mode())?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT * 2, config.connect(tls))
        .await
        .map_err(|elapsed| OpenError::Unavailable(elapsed.into()))?;
    let (mut client, connection) = connected?;
    let driver = tokio::spawn(connection);
    let migrated = run(&mut client, options.schema.as_deref()).await;
    drop(client);
    // The connection driver ends when the client is dropped, and an error while closing does not
    // matter.
    drop(driver.await);
    migrated
}

/// Each migration runs in a separate transaction, so that its locks are released before the next
/// migration.
async fn run(client: &mut Client, schema: Option<&str>) -> Result<(), OpenError> {
    loop {
        let transaction = client.transaction().await?;
        let has_more = apply_next(&transaction, schema).await?;
        transaction.commit().await?;
        if !has_more {
            return Ok(());
        }
    }
}

/// Applies the oldest missing migration. Returns false if no migration is missing.
async fn apply_next(
    transaction: &Transaction<'_>,
    schema: Option<&str>,
) -> Result<bool, OpenError> {
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let name = schema.unwrap_or_default();
    transaction.execute(sql!("migrate_lock"), &[&LOCK_CLASS, &name]).await?;
    if let Some(schema) = schema {
        transaction.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    }
    if transaction.query_one(sql!("migrate_is_unreleased"), &[]).await?.get(0) {
        return Err(OpenError::Unreleased);
    }
    transaction.batch_execute(sql!("migrate_create_table")).await?;
    let found: i32 = transaction.query_one(sql!("migrate_newest"), &[]).await?.get(0);
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    let Some((version, migration)) = (1..).zip(MIGRATIONS).find(|(version, _)| *version > found)
    else {
        return Ok(false);
    };
    transaction.batch_execute(migration).await?;
    transaction.execute(sql!("migrate_record"), &[&version]).await?;
    tracing::info!(schema.version = version, "migrated the database to a newer schema version");
    Ok(true)
}
