//! Claim windows limit when a queued attempt may be claimed.

use std::collections::BTreeMap;

use evenkeel_core::AttemptKey;
use evenkeel_store::{ClaimWindow, ClosedAttempt};
use tokio_postgres::Row;

use crate::connection::OwnedParams;
use crate::error::Tried;
use crate::rows::{KeyColumns, column, get, key, micros, span};

pub(super) fn read_closed(row: &Row) -> Tried<ClosedAttempt> {
    Ok(ClosedAttempt {
        key: key(row)?,
        average_good_duration: get::<Option<i64>>(row, "average_us")?.map(span),
        definition: get(row, "definition")?,
    })
}

pub(super) fn window_params(batch: &[(AttemptKey, ClaimWindow)]) -> OwnedParams {
    // Claim windows are sorted in lock order, so that two calls cannot deadlock. If the batch
    // contains two claim windows of an attempt, the last one is stored.
    let sorted: BTreeMap<_, _> =
        batch.iter().map(|(key, window)| ((key.job_no, *key), *window)).collect();
    let from = column(sorted.values(), |window| micros(window.from));
    let until = column(sorted.values(), |window| micros(window.until));
    let keys = sorted.keys().map(|(_, key)| *key);
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys.collect();
    params![job_no, scheduled_at, sequence, attempt, from, until]
}
