//! The floors on PostgreSQL: two connections, each with half of the jobs.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::Clock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use super::{DueOrder, FIRST, Firing, PERIOD, Promises, phase, previous};

/// Two connections keep two cores busy; more connections were not faster.
const CONNECTIONS: i64 = 2;
const NODE: i32 = 1;

/// Creates the tables of a loop in a schema of their own and fills them.
pub(super) async fn fill(address: &str, promises: Promises, jobs: i64) -> anyhow::Result<()> {
    let client = connect(address).await?;
    client.batch_execute(TABLES).await?;
    if promises == Promises::Same {
        client.batch_execute(PROMISE_COLUMNS).await?;
    }
    let phases: Vec<i64> = (1..=jobs).map(|job| FIRST + phase(job)).collect();
    let insert = "INSERT INTO state (job_no, next_at) \
                  SELECT ordinality, next_at FROM unnest($1::int8[]) WITH ORDINALITY AS t(next_at, ordinality)";
    client.execute(insert, &[&phases]).await?;
    // VACUUM must not run in the transaction of another statement.
    client.batch_execute("VACUUM ANALYZE state").await?;
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

/// Deletes the tables of the loop.
pub(super) async fn remove(address: &str) -> anyhow::Result<()> {
    Ok(connect(address).await?.batch_execute("DROP SCHEMA IF EXISTS floor CASCADE").await?)
}

const TABLES: &str = "
DROP SCHEMA IF EXISTS floor CASCADE;
CREATE SCHEMA floor;
CREATE TABLE floor.state (
    job_no int8 PRIMARY KEY, next_at int8 NOT NULL, last_at int8 NOT NULL DEFAULT 0,
    generation int4 NOT NULL DEFAULT 1, shard int2 NOT NULL DEFAULT 0, active bool NOT NULL DEFAULT true,
    live int4 NOT NULL DEFAULT 0
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE floor.run (
    scheduled_at int8 NOT NULL, job_no int8 NOT NULL, status int2 NOT NULL, node_no int4 NOT NULL,
    started_at int8, finished_at int8, error text, output text,
    PRIMARY KEY (scheduled_at, job_no)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2);";

const PROMISE_COLUMNS: &str = "
CREATE TABLE floor.node (node_no int4 PRIMARY KEY, state int2 NOT NULL);
INSERT INTO floor.node VALUES (1, 0);
ALTER TABLE floor.state
    ADD head_at int8 NOT NULL DEFAULT 0, ADD executions int8 NOT NULL DEFAULT 0,
    ADD last_status int2 NOT NULL DEFAULT 0, ADD failures int4 NOT NULL DEFAULT 0,
    ADD last_start_at int8 NOT NULL DEFAULT 0, ADD last_end_at int8 NOT NULL DEFAULT 0,
    ADD average_us int8 NOT NULL DEFAULT 0, ADD variance float8 NOT NULL DEFAULT 0,
    ADD succeeded_runs int4 NOT NULL DEFAULT 0;
ALTER TABLE floor.run ADD fence int4 NOT NULL, ADD prev_at int8, ADD number int8 NOT NULL;";

/// Runs the loop until `until` and returns the number of finished firings.
pub(super) async fn run(
    address: &str,
    promises: Promises,
    jobs: i64,
    clock: &Arc<dyn Clock>,
    until: Duration,
) -> anyhow::Result<u64> {
    let mut tasks = Vec::new();
    for part in 0..CONNECTIONS {
        let connection = LoopConnection::open(address, promises).await?;
        let (order, clock) = (DueOrder::new(jobs, part, CONNECTIONS), Arc::clone(clock));
        tasks.push(tokio::spawn(connection.run(order, clock, until)));
    }
    let mut firings = 0;
    for task in tasks {
        firings += task.await??;
    }
    Ok(firings)
}

async fn connect(address: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute("SET search_path = floor; SET plan_cache_mode = force_generic_plan")
        .await?;
    Ok(client)
}

struct LoopConnection {
    client: Client,
    promises: Promises,
    advance: Statement,
    insert: Statement,
    finish: Statement,
}

impl LoopConnection {
    async fn open(address: &str, promises: Promises) -> anyhow::Result<Self> {
        let client = connect(address).await?;
        let [advance, insert, finish] = match promises {
            Promises::Bare => BARE,
            Promises::Same => SAME,
        };
        Ok(Self {
            advance: client.prepare(advance).await?,
            insert: client.prepare(insert).await?,
            finish: client.prepare(finish).await?,
            client,
            promises,
        })
    }

    async fn run(
        self,
        mut order: DueOrder,
        clock: Arc<dyn Clock>,
        until: Duration,
    ) -> anyhow::Result<u64> {
        let mut firings = 0;
        while clock.monotonic() < until {
            let batch = order.next_batch();
            let columns = Columns::new(&batch);
            self.fire(&columns).await?;
            let finished = self.client.execute(&self.finish, &columns.keys(self.promises)).await?;
            anyhow::ensure!(finished == batch.len() as u64, "finished {finished} of a batch");
            firings += finished;
        }
        Ok(firings)
    }

    /// Advances the jobs and inserts their runs, in one transaction. The runs are inserted only
    /// when the answer shows that all jobs were advanced.
    async fn fire(&self, columns: &Columns) -> anyhow::Result<()> {
        let client = &self.client;
        let advance = columns.advance(self.promises);
        let (begun, advanced) =
            tokio::join!(client.batch_execute("BEGIN"), client.query_one(&self.advance, &advance));
        begun?;
        let row = advanced?;
        let advanced: i64 = row.get(0);
        anyhow::ensure!(advanced == columns.job.len() as i64, "advanced {advanced} of a batch");
        let numbers: Option<Vec<i64>> = match self.promises {
            Promises::Bare => None,
            Promises::Same => row.get(1),
        };
        let mut insert: Vec<&(dyn ToSql + Sync)> = vec![&columns.job, &columns.scheduled_at, &NODE];
        if let Some(numbers) = &numbers {
            insert.extend([&columns.previous as &(dyn ToSql + Sync), numbers]);
        }
        let (inserted, committed) =
            tokio::join!(client.execute(&self.insert, &insert), client.batch_execute("COMMIT"));
        inserted?;
        Ok(committed?)
    }
}

/// A batch as arrays.
struct Columns {
    job: Vec<i64>,
    scheduled_at: Vec<i64>,
    next_at: Vec<i64>,
    previous: Vec<i64>,
    fence: Vec<i32>,
}

impl Columns {
    fn new(batch: &[Firing]) -> Self {
        Self {
            job: batch.iter().map(|firing| firing.job).collect(),
            scheduled_at: batch.iter().map(|firing| firing.scheduled_at).collect(),
            next_at: batch.iter().map(|firing| firing.scheduled_at + PERIOD).collect(),
            previous: batch.iter().map(previous).collect(),
            fence: vec![1; batch.len()],
        }
    }

    fn advance(&self, promises: Promises) -> Vec<&(dyn ToSql + Sync)> {
        match promises {
            Promises::Bare => vec![&self.job, &self.scheduled_at, &self.next_at],
            Promises::Same => {
                vec![&self.job, &self.scheduled_at, &self.next_at, &self.previous, &NODE]
            }
        }
    }

    fn keys(&self, promises: Promises) -> Vec<&(dyn ToSql + Sync)> {
        match promises {
            Promises::Bare => vec![&self.job, &self.scheduled_at],
            Promises::Same => vec![&self.job, &self.scheduled_at, &self.fence, &NODE],
        }
    }
}

const BARE: [&str; 3] = [
    "WITH fired AS (
        UPDATE state s SET next_at = d.next_at, last_at = d.due
          FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS d(job_no, due, next_at)
         WHERE s.job_no = d.job_no AND s.next_at = d.due
     RETURNING s.job_no)
     SELECT count(*) FROM fired",
    "INSERT INTO run (scheduled_at, job_no, status, node_no, started_at)
     SELECT due, job_no, 1, $3, due FROM unnest($1::int8[], $2::int8[]) AS d(job_no, due)",
    "UPDATE run r SET status = 2, finished_at = d.due + 5
       FROM unnest($1::int8[], $2::int8[]) AS d(job_no, due)
      WHERE r.scheduled_at = d.due AND r.job_no = d.job_no",
];

const SAME: [&str; 3] = [
    "WITH alive AS MATERIALIZED (
        SELECT 1 FROM node WHERE node_no = $5 AND state = 0 FOR KEY SHARE
     ), fired AS (
        UPDATE state s SET next_at = d.next_at, last_at = d.due, head_at = d.due, live = s.live + 1,
               executions = s.executions + 1
          FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS d(job_no, due, next_at, head_at)
         WHERE s.job_no = d.job_no AND s.next_at = d.due AND s.generation = 1 AND s.active
           AND s.head_at = d.head_at AND EXISTS (SELECT FROM alive)
     RETURNING s.job_no, s.executions)
     SELECT count(*), array_agg(executions ORDER BY job_no) FROM fired",
    "INSERT INTO run (scheduled_at, job_no, status, node_no, started_at, fence, prev_at, number)
     SELECT due, job_no, 1, $3, due, 1, prev_at, number
       FROM unnest($1::int8[], $2::int8[], $4::int8[], $5::int8[]) AS d(job_no, due, prev_at, number)",
    "WITH ended AS (
        UPDATE run r SET status = 2, finished_at = d.due + 5
          FROM unnest($1::int8[], $2::int8[], $3::int4[]) AS d(job_no, due, fence)
         WHERE r.scheduled_at = d.due AND r.job_no = d.job_no AND r.fence = d.fence
           AND r.node_no = $4 AND r.status = 1
     RETURNING r.job_no, d.due, r.finished_at - r.started_at AS took)
     UPDATE state s
        SET live = s.live - 1, last_status = 2, last_start_at = e.due, last_end_at = e.due + 5,
            failures = 0, average_us = s.average_us + (e.took - s.average_us) / 5,
            variance = 0.8 * (s.variance + 0.2 * (e.took - s.average_us) * (e.took - s.average_us)),
            succeeded_runs = s.succeeded_runs + 1
       FROM ended e WHERE s.job_no = e.job_no",
];
