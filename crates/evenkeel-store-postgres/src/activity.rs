//! Activity per tenant and time slot.

use evenkeel_core::activity::{ActivityCounts, Lateness, SkipCounts};
use evenkeel_core::{Slot, Span};
use evenkeel_store::{ActivityDelta, SlotActivity};
use tokio_postgres::Row;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, count, get, span, span_micros};

pub(crate) async fn add(connection: &Connection, activity: &[ActivityDelta]) -> Tried<()> {
    if activity.is_empty() {
        return Ok(());
    }
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let late_max =
        |delta: &ActivityDelta| span_micros(delta.counts.lateness.max().unwrap_or(Span::ZERO));
    let params: Params<'_> = &[
        &column(activity, |delta| delta.tenant.0),
        &column(activity, |delta| delta.slot.0),
        &column(activity, |delta| whole(delta.counts.fired)),
        &column(activity, |delta| whole(delta.counts.completed)),
        &column(activity, |delta| whole(delta.counts.failed)),
        &column(activity, |delta| whole(delta.counts.timed_out)),
        &column(activity, |delta| whole(delta.counts.cancelled)),
        &column(activity, |delta| span_micros(delta.counts.busy)),
        &column(activity, late_max),
        &column(activity, |delta| array(delta.counts.skipped.by_code())),
        &column(activity, |delta| array(delta.counts.lateness.buckets())),
    ];
    connection.change(sql!("add_activity"), params).await?;
    Ok(())
}

/// Returns the text form of an array. PostgreSQL has no arrays of arrays of different lengths, so
/// the statement gets one text per row.
fn array(counts: &[u64]) -> String {
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    format!("{{{}}}", counts.join(","))
}

pub(crate) fn read_slot(row: &Row) -> Tried<SlotActivity> {
    let late_max = span(get(row, "late_max_us")?);
    let counts = ActivityCounts {
        fired: count(row, "fired")?,
        completed: count(row, "completed")?,
        failed: count(row, "failed")?,
        timed_out: count(row, "timed_out")?,
        cancelled: count(row, "cancelled")?,
        busy: span(get(row, "busy_us")?),
        skipped: SkipCounts::from_codes(&counts(row, "skipped")?),
        lateness: Lateness::from_buckets(&counts(row, "lateness")?, late_max),
    };
    Ok(SlotActivity { slot: Slot(get(row, "slot")?), counts })
}

fn counts(row: &Row, column: &str) -> Tried<Vec<u64>> {
    let counts: Vec<i64> = get(row, column)?;
    Ok(counts.into_iter().map(|count| count.max(0).cast_unsigned()).collect())
}
