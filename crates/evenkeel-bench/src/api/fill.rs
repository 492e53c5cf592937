//! Jobs to ask for.

use anyhow::ensure;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, Slot, Span, Timestamp};
use evenkeel_store::{NewJob, Now, Registered};
use indicatif::ProgressBar;

use super::Amounts;
use crate::run::Bench;

/// Jobs registered in one request.
const BATCH: u64 = 5000;
/// More ids than this are not remembered.
const IDS_MAX: u64 = 50_000;

/// Registers jobs that are due in a month or so, and some that are due in the slot `soon`. Says the
/// ids of some of them, from everywhere.
pub(super) async fn register(
    bench: &mut Bench,
    amounts: &Amounts,
    soon: Slot,
    now: Timestamp,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<String>> {
    let (target, sources, scope, ..) = bench.parts();
    let month = Span::from_secs(30 * 86_400);
    let definition = Definition::noop(Schedule::Interval(Interval::new(month, None)?));
    let all = amounts.jobs + amounts.due;
    let every = (all / IDS_MAX).max(1);
    let mut ids = Vec::new();
    let mut done = 0;
    while done < all {
        let until = (done + BATCH).min(all);
        let mut jobs = Vec::with_capacity(BATCH as usize);
        for n in done..until {
            let bits = sources.chance.bits();
            let next_at = if n < amounts.due {
                soon.start().saturating_add(Span::from_micros(bits % Slot::LENGTH.as_micros()))
            } else {
                now.saturating_add(Span::from_secs(86_400 + bits % (29 * 86_400)))
            };
            let id = JobId::new(now, sources.chance.ten_bytes());
            if n % every == 0 {
                ids.push(id.to_string());
            }
            let about = About {
                name: Some(format!("bench-{n}")),
                source_id: Some("bench".into()),
                url: Some("https://example.com/".into()),
                ..About::default()
            };
            jobs.push(NewJob { id, about, definition: definition.clone(), next_at: Some(next_at) });
        }
        let registered = target.store.register(&scope, jobs, Now::Database).await?;
        let created = registered.iter().all(|it| matches!(it, Registered::Created { .. }));
        ensure!(created, "the store holds jobs of an earlier measurement; give an empty one");
        progress.inc(until - done);
        done = until;
    }
    Ok(ids)
}
