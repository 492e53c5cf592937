//! Activity per tenant and time slot.

use evenkeel_core::activity::{ActivityCounts, Lateness, SkipCounts};
use evenkeel_core::{Slot, Span, TenantNo};
use evenkeel_store::{ActivityDelta, SlotActivity, StoreError};
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::rows::count;

pub(crate) fn add(connection: &Connection, activity: &[ActivityDelta]) -> Answer<()> {
    for ActivityDelta { tenant, slot, counts } in activity {
        let skipped = array(counts.skipped.by_code())?;
        let lateness = array(counts.lateness.buckets())?;
        let late_max = counts.lateness.max().unwrap_or(Span::ZERO);
        let row: Params<'_> = &[
            tenant, slot, &counts.fired, &counts.completed, &counts.failed, &counts.timed_out,
            &counts.cancelled, &counts.busy, &late_max, &skipped, &lateness,
        ];
        connection.run(sql!("add_activity"), row)?;
    }
    Ok(())
}

pub(crate) fn list(
    connection: &Connection,
    tenant: TenantNo,
    (from, until): (Slot, Slot),
    limit: u32,
) -> Answer<Vec<SlotActivity>> {
    connection.rows(sql!("list_activity"), &[&tenant, &from, &until, &limit], slot_from)
}

pub(crate) fn prune(connection: &Connection, before: Slot, limit: u32) -> Answer<u64> {
    connection.change(sql!("prune_activity"), &[&before, &limit])
}

fn slot_from(row: &Row<'_>) -> Answer<SlotActivity> {
    let late_max = Span::from_micros(count(row, "late_max_us")?);
    let counts = ActivityCounts {
        fired: count(row, "fired")?,
        completed: count(row, "completed")?,
        failed: count(row, "failed")?,
        timed_out: count(row, "timed_out")?,
        cancelled: count(row, "cancelled")?,
        busy: Span::from_micros(count(row, "busy_us")?),
        skipped: SkipCounts::from_codes(&counts_from(row, "skipped")?),
        lateness: Lateness::from_buckets(&counts_from(row, "lateness")?, late_max),
    };
    Ok(SlotActivity { slot: Slot(row.get("slot")?), counts })
}

fn array(counts: &[u64]) -> Answer<String> {
    Ok(serde_json::to_string(counts).map_err(|error| StoreError::Refused(error.into()))?)
}

fn counts_from(row: &Row<'_>, column: &str) -> Answer<Vec<u64>> {
    let text: String = row.get(column)?;
    Ok(serde_json::from_str(&text).map_err(|error| StoreError::Refused(error.into()))?)
}
