//! Registers the jobs that the API benchmark reads.

use evenkeel_core::{About, JobId, Slot, Span, Timestamp};
use evenkeel_store::NewJob;
use indicatif::ProgressBar;

use crate::args::ApiLoad;
use crate::run::Bench;
use crate::workload::noop_every;

/// Approximate maximum number of job ids that [`register`] returns.
const IDS_MAX: u64 = 50_000;

/// Registers `load.jobs` jobs that are due in 1 to 30 days and `load.due` jobs that are due in the
/// time slot `due_slot`. Returns an evenly spaced sample of the job ids.
pub(super) async fn register(
    bench: &Bench,
    load: &ApiLoad,
    due_slot: Slot,
    now: Timestamp,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<String>> {
    let chance = &bench.sources.chance;
    let definition = noop_every(Span::from_secs(30 * 86_400))?;
    let all = load.jobs + load.due;
    let every = (all / IDS_MAX).max(1);
    let mut ids = Vec::new();
    let job = |n| {
        let bits = chance.bits();
        let next_at = if n < load.due {
            due_slot.start().saturating_add(Span::from_micros(bits % Slot::LENGTH.as_micros()))
        } else {
            now.saturating_add(Span::from_secs(86_400 + bits % (29 * 86_400)))
        };
        let id = JobId::new(now, chance.ten_bytes());
        if n % every == 0 {
            ids.push(id.to_string());
        }
        let about = About {
            name: Some(format!("bench-{n}")),
            source_id: Some("bench".into()),
            url: Some("https://example.com/".into()),
            ..About::default()
        };
        Ok(NewJob { id, about, definition: definition.clone(), next_at: Some(next_at) })
    };
    bench.registrar(progress).register(all, job).await?;
    Ok(ids)
}
