//! Fires due jobs with one statement, which is one round trip and one transaction.

use std::collections::{HashMap, HashSet};

use evenkeel_core::lease::Fence;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Fire, FireResult, Fired, Now, Start, StoreError, skip_reason_code};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{QueueColumns, entry_of, get, micros, sequence, slot, time};

pub(super) async fn fire(
    store: &PostgresStore,
    node: NodeNo,
    batch: Vec<Fire>,
    now: Now,
) -> Result<Fired, StoreError> {
    let args = Args { node: node.0, now: micros(now.literal()), batch };
    run!(store.hot, args, |connection, args| run(connection, args).await)
}

struct Args {
    node: i32,
    now: Option<i64>,
    batch: Vec<Fire>,
}

async fn run(connection: &Connection, args: &Args) -> Tried<Fired> {
    let mut sorted: Vec<&Fire> = args.batch.iter().collect();
    // All batches lock jobs in the order of their numbers, so that two batches cannot deadlock.
    sorted.sort_unstable_by_key(|fire| fire.job);
    let columns = FireColumns::new(&sorted);
    let row = if sorted.iter().all(|fire| is_plain(fire)) {
        columns.fire_claimed(connection, args).await?
    } else {
        columns.fire(connection, args, &sorted).await?
    };
    let now = time(&row, 0)?;
    let alive: bool = get(&row, 1)?;
    let fired: Vec<i64> = get::<Option<Vec<i64>>>(&row, 2)?.unwrap_or_default();
    if fired.len() == args.batch.len() {
        let results = args.batch.iter().map(fired_result).collect();
        return Ok(Fired { now, results });
    }
    let fired: HashSet<i64> = fired.into_iter().collect();
    // If the node is no longer alive, all its firings are stale.
    let unchanged: HashMap<i64, (i32, bool)> = if alive {
        let rows = columns.classify(connection).await?;
        rows.iter()
            .map(|row| Ok((get(row, 0)?, (get(row, 1)?, get(row, 2)?))))
            .collect::<Tried<_>>()?
    } else {
        HashMap::new()
    };
    let result = |fire: &Fire| match unchanged.get(&fire.job.0) {
        _ if fired.contains(&fire.job.0) => fired_result(fire),
        Some(_) if starts_at(fire) > now => FireResult::Early,
        Some(&(live, retry_pending)) if fire.idle_only && live > 0 => {
            FireResult::Busy { retry_pending }
        }
        // The job now matches the scheduler's decision, but did not when the statement ran, so the
        // next try will fire the job.
        Some(_) | None => FireResult::Stale,
    };
    Ok(Fired { now, results: args.batch.iter().map(result).collect() })
}

/// Returns the earliest time at which the job may fire.
fn starts_at(fire: &Fire) -> Timestamp {
    fire.start.as_ref().map_or(fire.due, |(at, _)| fire.due.max(*at))
}

/// True if the attempt is fired at its due time and claimed at once, no run is skipped, and the job
/// has a next run time.
fn is_plain(fire: &Fire) -> bool {
    fire.skip.is_none()
        && fire.next_at.is_some()
        && matches!(fire.start, Some((at, Start::Claimed)) if at == fire.due)
}

fn fired_result(fire: &Fire) -> FireResult {
    FireResult::Fired(match fire.start {
        Some((_, Start::Claimed)) => Fence::NONE.next(),
        Some((_, Start::Queued(_))) | None => Fence::NONE,
    })
}

/// The columns that the store sends for every batch of firings.
struct FireColumns {
    job_no: Vec<i64>,
    generation: Vec<i32>,
    due: Vec<i64>,
    head_at: Vec<Option<i64>>,
    head_sequence: Vec<Option<i32>>,
    next_at: Vec<Option<i64>>,
    slot: Vec<Option<i32>>,
    idle_only: Vec<bool>,
}

impl FireColumns {
    fn new(sorted: &[&Fire]) -> Self {
        let all = || sorted.iter();
        Self {
            job_no: all().map(|fire| fire.job.0).collect(),
            generation: all().map(|fire| fire.generation).collect(),
            due: all().map(|fire| fire.due.as_micros()).collect(),
            head_at: all().map(|fire| micros(fire.head.map(|head| head.scheduled_at))).collect(),
            head_sequence: all()
                .map(|fire| fire.head.map(|head| sequence(head.sequence)))
                .collect(),
            next_at: all().map(|fire| micros(fire.next_at)).collect(),
            slot: all().map(|fire| slot(fire.next_at)).collect(),
            idle_only: all().map(|fire| fire.idle_only).collect(),
        }
    }

    async fn fire_claimed(&self, connection: &Connection, args: &Args) -> Tried<Row> {
        let sql = sql!("fire_claimed");
        connection
            .row(
                sql,
                &[
                    &args.now, &args.node, &self.job_no, &self.generation, &self.due,
                    &self.head_at, &self.head_sequence, &self.next_at, &self.slot, &self.idle_only,
                ],
            )
            .await
    }

    async fn fire(&self, connection: &Connection, args: &Args, sorted: &[&Fire]) -> Tried<Row> {
        let start_at: Vec<Option<i64>> =
            sorted.iter().map(|fire| micros(fire.start.as_ref().map(|(at, _)| *at))).collect();
        let mut skips = SkipColumns::default();
        let mut entries = QueueColumns::default();
        for fire in sorted {
            skips.push(fire);
            entries.push(fire.start.as_ref().and_then(|(_, start)| entry_of(start)));
        }
        let sql = sql!("fire");
        connection
            .row(
                sql,
                &[
                    &args.now, &args.node, &self.job_no, &self.generation, &self.due,
                    &self.head_at, &self.head_sequence, &self.next_at, &self.slot, &self.idle_only,
                    &start_at, &skips.from, &skips.to, &skips.count, &skips.reason, &entries.pool,
                    &entries.lane, &entries.priority, &entries.should_start_by, &entries.limit_key,
                    &entries.open_from, &entries.open_until, &entries.forbidden_nodes,
                    &entries.own_priority, &entries.since, &entries.rise, &entries.limit_max,
                ],
            )
            .await
    }

    async fn classify(&self, connection: &Connection) -> Tried<Vec<Row>> {
        let sql = sql!("fire_classify");
        connection
            .rows(
                sql,
                &[&self.job_no, &self.generation, &self.due, &self.head_at, &self.head_sequence],
            )
            .await
    }
}

#[derive(Default)]
struct SkipColumns {
    from: Vec<Option<i64>>,
    to: Vec<Option<i64>>,
    count: Vec<Option<i64>>,
    reason: Vec<Option<i16>>,
}

impl SkipColumns {
    fn push(&mut self, fire: &Fire) {
        let skip = fire.skip.as_ref();
        let at = |moment: Option<Timestamp>| micros(moment);
        self.from.push(at(skip.map(|skip| skip.from)));
        self.to.push(at(skip.map(|skip| skip.to)));
        self.count.push(skip.map(|skip| i64::try_from(skip.count).unwrap_or(i64::MAX)));
        self.reason.push(skip.map(|skip| skip_reason_code(skip.reason)));
    }
}
