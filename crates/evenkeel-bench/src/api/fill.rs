//! Registers the jobs that the API benchmark reads.

use anyhow::ensure;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, Slot, Span, Timestamp};
use evenkeel_store::{NewJob, Now, Registered};
use indicatif::ProgressBar;

use crate::args::ApiLoad;
use crate::run::Bench;
use crate::workload::BATCH;

/// Approximate maximum number of job ids in the returned sample.
const IDS_MAX: u64 = 50_000;

/// Registers `load.jobs` jobs that are due in 1 to 30 days and `load.due` jobs that are due in the
/// time slot `due_slot`. Returns an evenly spaced sample of the job ids.
pub(super) async fn register(
    bench: &mut Bench,
    load: &ApiLoad,
    due_slot: Slot,
    now: Timestamp,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<String>> {
    let (target, sources, scope, ..) = bench.parts();
    let month = Span::from_secs(30 * 86_400);
    let definition = Definition::noop(Schedule::Interval(Interval::new(month, None)?));
    let all = load.jobs + load.due;
    let every = (all / IDS_MAX).max(1);
    let mut ids = Vec::new();
    let mut done = 0;
    while done < all {
        let until = (done + BATCH as u64).min(all);
        let mut jobs = Vec::with_capacity(BATCH);
        for n in done..until {
            let bits = sources.chance.bits();
            let next_at = if n < load.due {
                due_slot.start().saturating_add(Span::from_micros(bits % Slot::LENGTH.as_micros()))
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
        ensure!(created, "the store holds jobs of an earlier measurement; use an empty store");
        progress.inc(until - done);
        done = until;
    }
    Ok(ids)
}
