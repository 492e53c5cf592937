//! The store that a benchmark runs on.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store::Store;
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};

use crate::machine::{self, Disturbance, MachineTime};

/// Size of the WAL files that a private PostgreSQL server reuses during a measurement. The
/// benchmark `max` writes less than this in its floors and in 6 s of firing.
const LOG_FILES_MB: u32 = 2048;

/// A store and the PostgreSQL server or temporary folder that was created for it.
pub struct Target {
    pub store: Arc<dyn Store>,
    /// `sqlite` or `postgres`.
    pub kind: &'static str,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    /// Address that `--store` of another process accepts.
    pub address: String,
    server: Option<PrivatePostgres>,
    folder: Option<tempfile::TempDir>,
    written_before: u64,
    cpu_before: f64,
    machine_before: MachineTime,
}

impl Target {
    /// Opens the store named by `--store`.
    pub async fn open(name: &str) -> anyhow::Result<Self> {
        if name == "sqlite" {
            let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
            let target = Self::sqlite(&folder.path().join("bench.db")).await?;
            Ok(Self { folder: Some(folder), ..target })
        } else if let Some(path) = name.strip_prefix("sqlite:") {
            Self::sqlite(Path::new(path)).await
        } else if name == "postgres" {
            let server =
                tokio::task::spawn_blocking(|| PrivatePostgres::start(Options::benchmark()))
                    .await?
                    .context(
                        "starting a private PostgreSQL; is the package `postgresql` installed?",
                    )?;
            let target = Self::postgres(server.url()).await?;
            Ok(Self { server: Some(server), ..target })
        } else if name.starts_with("postgres://") || name.starts_with("postgresql://") {
            Self::postgres(name).await
        } else {
            bail!(
                "--store {name} is not supported; use sqlite, sqlite:PATH, postgres or postgres://…"
            )
        }
    }

    async fn sqlite(path: &Path) -> anyhow::Result<Self> {
        let store = SqliteStore::open(SqliteOptions::new(path)).await?;
        let durability = store.durability();
        let address = format!("sqlite:{}", path.display());
        Ok(Self::new(Arc::new(store), "sqlite", durability, address))
    }

    async fn postgres(url: &str) -> anyhow::Result<Self> {
        let store = PostgresStore::connect(PostgresOptions::new(url)).await?;
        let durability = store.durability().await?;
        let on = |switch: bool| if switch { "on" } else { "off" };
        let durability = format!(
            "fsync={} synchronous_commit={} full_page_writes={}",
            on(durability.fsync),
            durability.synchronous_commit,
            on(durability.full_page_writes)
        );
        Ok(Self::new(Arc::new(store), "postgres", durability, url.into()))
    }

    fn new(store: Arc<dyn Store>, kind: &'static str, durability: String, address: String) -> Self {
        Self {
            store,
            kind,
            durability,
            address,
            server: None,
            folder: None,
            written_before: 0,
            cpu_before: 0.0,
            machine_before: MachineTime::default(),
        }
    }

    /// Brings a private PostgreSQL server into the state of a server that has run for some time. A
    /// new server creates and fills each file of its WAL, which makes writes up to a fifth slower; a
    /// server that has run for some time reuses its files.
    pub async fn create_log_files(&self) -> anyhow::Result<()> {
        if self.server.is_none() {
            return Ok(());
        }
        let (client, connection) =
            tokio_postgres::connect(&self.address, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        let fill = format!(
            "SELECT count(pg_logical_emit_message(false, 'bench', repeat('x', 1 << 20))) \
               FROM generate_series(1, {LOG_FILES_MB})"
        );
        client.batch_execute(&fill).await.context("filling the WAL")?;
        client.batch_execute("CHECKPOINT").await?;
        drop(client);
        Ok(connection.await??)
    }

    /// Starts the measurement: resets the counters of CPU time and bytes written.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        self.written_before = self.written().await?;
        self.cpu_before = self.cpu();
        self.machine_before = MachineTime::now();
        Ok(())
    }

    /// CPU seconds of this process and a private PostgreSQL server since [`Self::begin`].
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu() - self.cpu_before
    }

    /// What else ran on the machine since [`Self::begin`], `seconds` ago. `further_cpu_s` is the CPU
    /// time of other measured processes. `None` if the CPU time of the PostgreSQL server is unknown.
    pub fn disturbance(&self, further_cpu_s: f64, seconds: f64) -> Option<Disturbance> {
        let is_known = self.kind == "sqlite" || self.server.is_some();
        let cpu_s = self.cpu_seconds() + further_cpu_s;
        is_known.then(|| Disturbance::since(self.machine_before, cpu_s, seconds))
    }

    /// Bytes written to the WAL (PostgreSQL) or to disk (SQLite) since [`Self::begin`].
    pub async fn bytes_written(&self) -> anyhow::Result<u64> {
        Ok(self.written().await?.saturating_sub(self.written_before))
    }

    fn cpu(&self) -> f64 {
        let server = self.server.as_ref().map_or(0.0, PrivatePostgres::server_cpu_seconds);
        machine::cpu_seconds() + server
    }

    async fn written(&self) -> anyhow::Result<u64> {
        if self.kind == "sqlite" {
            return Ok(machine::bytes_written());
        }
        let (client, connection) =
            tokio_postgres::connect(&self.address, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        let row = client
            .query_one("SELECT (pg_current_wal_lsn() - '0/0')::int8", &[])
            .await
            .context("reading the position of the WAL")?;
        let position: i64 = row.get(0);
        drop(client);
        connection.await??;
        Ok(u64::try_from(position)?)
    }

    /// Closes the store. With `keep`, does not delete the store and returns its address.
    pub fn close(self, keep: bool) -> Option<String> {
        let Self { address, server, folder, .. } = self;
        if !keep {
            return None;
        }
        if let Some(folder) = folder {
            // `keep` prevents the removal of the folder on drop.
            let _ = folder.keep();
        }
        if let Some(server) = server {
            let folder = server.data_dir().display().to_string();
            return match server.leave_running() {
                Ok(()) => Some(format!("{address} (still running; data directory {folder})")),
                Err(error) => Some(format!("the store could not be kept: {error}")),
            };
        }
        Some(address)
    }
}
