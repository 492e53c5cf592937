//! Fires delayed attempts: retries and triggered runs.

use std::collections::HashSet;

use evenkeel_core::Timestamp;
use evenkeel_core::lease::Fence;
use evenkeel_store::{FireDelayed, FireResult, Fired, Postpone, Start};

use crate::connection::{Connection, OwnedParams, Params, rounds};
use crate::error::Tried;
use crate::rows::{KeyColumns, QueueColumns, array, column, entry_of, get, time};

pub(super) struct Args {
    pub(super) node: i32,
    pub(super) now: Option<i64>,
    pub(super) batch: Vec<FireDelayed>,
}

pub(super) async fn fire_delayed(connection: &Connection, args: &Args) -> Tried<Fired> {
    let rounds = rounds(&args.batch, |delayed| delayed.key.job_no);
    match &rounds[..] {
        // A single statement is a transaction, so no explicit transaction is needed.
        [] | [_] => run(connection, args, &rounds).await,
        _ => connection.transaction(run(connection, args, &rounds)).await,
    }
}

async fn run(connection: &Connection, args: &Args, rounds: &[Vec<usize>]) -> Tried<Fired> {
    let mut now = None;
    let mut results = vec![FireResult::Stale; args.batch.len()];
    for round in rounds {
        // All rounds use the time that the first round read.
        let literal = now.map(Timestamp::as_micros).or(args.now);
        let fired_at = fire_round(connection, args, literal, round, &mut results).await?;
        now.get_or_insert(fired_at);
    }
    match now {
        Some(now) => Ok(Fired { now, results }),
        None => {
            let row = connection.row(sql!("now"), &[&args.now]).await?;
            Ok(Fired { now: time(&row, 0)?, results })
        }
    }
}

async fn fire_round(
    connection: &Connection,
    args: &Args,
    now: Option<i64>,
    round: &[usize],
    results: &mut [FireResult],
) -> Tried<Timestamp> {
    let attempts = || round.iter().map(|at| &args.batch[*at]);
    let keys: KeyColumns = attempts().map(|delayed| delayed.key).collect();
    let due = column(attempts(), |delayed| delayed.due.as_micros());
    let mut entries = QueueColumns::default();
    attempts().for_each(|delayed| entries.push(entry_of(&delayed.start)));
    let params: Params<'_> = &[
        &now, &args.node, &keys.job_no, &due, &keys.scheduled_at, &keys.sequence, &keys.attempt,
        &entries.pool, &entries.lane, &entries.priority, &entries.should_start_by,
        &entries.limit_key, &entries.open_from, &entries.open_until, &entries.forbidden_nodes,
        &entries.own_priority, &entries.since, &entries.rise, &entries.limit_max,
    ];
    let row = connection.row(sql!("fire_delayed"), params).await?;
    let fired_at = time(&row, 0)?;
    let alive: bool = get(&row, 1)?;
    let fired: HashSet<i64> = array(&row, 2)?.into_iter().collect();
    let mut exists = HashSet::new();
    if alive && fired.len() < round.len() {
        let params: Params<'_> =
            &[&keys.job_no, &due, &keys.scheduled_at, &keys.sequence, &keys.attempt];
        let rows = connection.rows(sql!("fire_delayed_classify"), params).await?;
        exists = rows.iter().map(|row| get(row, 0)).collect::<Tried<HashSet<i64>>>()?;
    }
    for at in round {
        let delayed = &args.batch[*at];
        let job = delayed.key.job_no.0;
        results[*at] = if fired.contains(&job) {
            FireResult::Fired(match delayed.start {
                Start::Claimed => Fence::NONE.next(),
                Start::Queued(_) => Fence::NONE,
            })
        } else if exists.contains(&job) && delayed.due > fired_at {
            FireResult::Early
        } else {
            FireResult::Stale
        };
    }
    Ok(fired_at)
}

pub(super) fn postpone_params(batch: &[Postpone]) -> OwnedParams {
    // The entries are sorted in lock order, so that two calls cannot deadlock. If an attempt occurs
    // twice, the first entry counts, because it makes the second stale.
    let mut sorted: Vec<&Postpone> = batch.iter().collect();
    sorted.sort_by_key(|postpone| (postpone.key.job_no, postpone.key));
    sorted.dedup_by_key(|postpone| postpone.key);
    let due = column(&sorted, |postpone| postpone.due.as_micros());
    let until = column(&sorted, |postpone| postpone.until.as_micros());
    let keys = sorted.iter().map(|postpone| postpone.key);
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys.collect();
    params![job_no, due, scheduled_at, sequence, attempt, until]
}
