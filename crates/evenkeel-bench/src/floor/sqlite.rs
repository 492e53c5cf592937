//! The floors on SQLite: one connection that writes, as in the store.

use std::fs;
use std::time::Duration;

use evenkeel_engine::Clock;
use evenkeel_store_sqlite::SqliteOptions;
use rusqlite::{Connection, params};

use super::{DueOrder, FIRST, Firing, PERIOD, Promises, phase, previous};

const NODE: i64 = 1;

/// Creates an empty database beside the store and fills the tables of the loop.
pub(super) fn fill(store: &str, promises: Promises, jobs: i64) -> anyhow::Result<()> {
    remove(store)?;
    let connection = open(store)?;
    connection.execute_batch(match promises {
        Promises::Bare => BARE_TABLES,
        Promises::Same => SAME_TABLES,
    })?;
    connection.execute_batch("BEGIN")?;
    let mut insert = connection.prepare("INSERT INTO state (job_no, next_at) VALUES (?1, ?2)")?;
    for job in 1..=jobs {
        insert.execute([job, FIRST + phase(job)])?;
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// Deletes the database of the loop.
pub(super) fn remove(store: &str) -> anyhow::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{}{suffix}", path(store));
        if fs::exists(&file)? {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

fn path(store: &str) -> String {
    format!("{}-floor", store.trim_start_matches("sqlite:"))
}

/// Opens the database with the settings of the store.
fn open(store: &str) -> anyhow::Result<Connection> {
    let connection = Connection::open(path(store))?;
    let options = SqliteOptions::new(path(store));
    let (cache_kb, log_pages) = (options.cache_mb * 1024, options.wal_autocheckpoint_pages);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{cache_kb}; \
         PRAGMA wal_autocheckpoint = {log_pages}"
    ))?;
    Ok(connection)
}

/// Runs the loop until `until` and returns the number of finished firings.
pub(super) fn run(
    store: &str,
    promises: Promises,
    jobs: i64,
    clock: &dyn Clock,
    until: Duration,
) -> anyhow::Result<u64> {
    let connection = open(store)?;
    let mut order = DueOrder::new(jobs, 0, 1);
    let mut firings = 0;
    while clock.monotonic() < until {
        let batch = order.next_batch();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        match promises {
            Promises::Bare => fire_bare(&connection, &batch)?,
            Promises::Same => fire_same(&connection, &batch)?,
        }
        connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        match promises {
            Promises::Bare => finish_bare(&connection, &batch)?,
            Promises::Same => finish_same(&connection, &batch)?,
        }
        connection.execute_batch("COMMIT")?;
        firings += batch.len() as u64;
    }
    Ok(firings)
}

fn fire_bare(connection: &Connection, batch: &[Firing]) -> anyhow::Result<()> {
    let mut advance = connection.prepare_cached(
        "UPDATE state SET next_at = ?3, last_at = ?2 WHERE job_no = ?1 AND next_at = ?2",
    )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO run (scheduled_at, job_no, status, node_no, started_at) VALUES (?2, ?1, 1, ?3, ?2)",
    )?;
    for firing in batch {
        let (job, at) = (firing.job, firing.scheduled_at);
        anyhow::ensure!(advance.execute([job, at, at + PERIOD])? == 1, "job {job} has changed");
        insert.execute([job, at, NODE])?;
    }
    Ok(())
}

fn finish_bare(connection: &Connection, batch: &[Firing]) -> anyhow::Result<()> {
    let mut finish = connection.prepare_cached(
        "UPDATE run SET status = 2, finished_at = ?2 + 5 WHERE scheduled_at = ?2 AND job_no = ?1",
    )?;
    for firing in batch {
        finish.execute([firing.job, firing.scheduled_at])?;
    }
    Ok(())
}

fn fire_same(connection: &Connection, batch: &[Firing]) -> anyhow::Result<()> {
    let mut alive =
        connection.prepare_cached("SELECT 1 FROM node WHERE node_no = ?1 AND state = 0")?;
    anyhow::ensure!(alive.exists([NODE])?, "the node is not alive");
    let mut advance = connection.prepare_cached(
        "UPDATE state
            SET next_at = ?3, last_at = ?2, head_at = ?2, live = live + 1,
                executions = executions + 1
          WHERE job_no = ?1 AND next_at = ?2 AND generation = 1 AND active = 1 AND head_at = ?4
      RETURNING executions",
    )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO run (scheduled_at, job_no, status, node_no, started_at, fence, prev_at, number)
         VALUES (?2, ?1, 1, ?3, ?2, 1, ?4, ?5)",
    )?;
    for firing in batch {
        let (job, at, previous) = (firing.job, firing.scheduled_at, previous(firing));
        let number: i64 = advance.query_row([job, at, at + PERIOD, previous], |row| row.get(0))?;
        insert.execute([job, at, NODE, previous, number])?;
    }
    Ok(())
}

fn finish_same(connection: &Connection, batch: &[Firing]) -> anyhow::Result<()> {
    let mut finish = connection.prepare_cached(
        "UPDATE run SET status = 2, finished_at = ?2 + 5
          WHERE scheduled_at = ?2 AND job_no = ?1 AND node_no = ?3 AND fence = 1 AND status = 1",
    )?;
    let mut history = connection.prepare_cached(
        "UPDATE state
            SET live = live - 1, last_status = 2, last_start_at = ?2, last_end_at = ?2 + 5,
                failures = 0, average_us = average_us + (5 - average_us) / 5,
                variance = 0.8 * (variance + 0.2 * (5 - average_us) * (5 - average_us)),
                succeeded_runs = succeeded_runs + 1
          WHERE job_no = ?1",
    )?;
    for firing in batch {
        let (job, at) = (firing.job, firing.scheduled_at);
        anyhow::ensure!(finish.execute(params![job, at, NODE])? == 1, "a fence has changed");
        history.execute([job, at])?;
    }
    Ok(())
}

const BARE_TABLES: &str = "
CREATE TABLE state (
    job_no INTEGER PRIMARY KEY, next_at INTEGER NOT NULL, last_at INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 1, shard INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, live INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE run (
    scheduled_at INTEGER NOT NULL, job_no INTEGER NOT NULL, status INTEGER NOT NULL,
    node_no INTEGER NOT NULL, started_at INTEGER, finished_at INTEGER NOT NULL DEFAULT 0,
    error TEXT, output TEXT,
    PRIMARY KEY (scheduled_at, job_no)
) WITHOUT ROWID;";

const SAME_TABLES: &str = "
CREATE TABLE node (node_no INTEGER PRIMARY KEY, state INTEGER NOT NULL);
INSERT INTO node VALUES (1, 0);
CREATE TABLE state (
    job_no INTEGER PRIMARY KEY, next_at INTEGER NOT NULL, last_at INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 1, shard INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, live INTEGER NOT NULL DEFAULT 0,
    head_at INTEGER NOT NULL DEFAULT 0, executions INTEGER NOT NULL DEFAULT 0,
    last_status INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
    last_start_at INTEGER NOT NULL DEFAULT 0, last_end_at INTEGER NOT NULL DEFAULT 0,
    average_us INTEGER NOT NULL DEFAULT 0, variance REAL NOT NULL DEFAULT 0,
    succeeded_runs INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE run (
    scheduled_at INTEGER NOT NULL, job_no INTEGER NOT NULL, status INTEGER NOT NULL,
    node_no INTEGER NOT NULL, started_at INTEGER, finished_at INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL, prev_at INTEGER, number INTEGER NOT NULL, error TEXT, output TEXT,
    PRIMARY KEY (scheduled_at, job_no)
) WITHOUT ROWID;";
