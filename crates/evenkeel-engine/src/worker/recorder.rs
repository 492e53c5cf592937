//! Stores progress, output and checkpoints of running attempts in batches at a fixed interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::AttemptKey;
use evenkeel_store::{ProgressNote, StoreError};
use tokio::sync::Mutex;
use tracing::{error, warn};

use crate::cluster::node_context::{Backoff, NodeContext};
use crate::cluster::store_health::log_trouble;

/// Size limit of a batch.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Progress, output and checkpoint of an attempt, with the number of checkpoints that the attempt
/// has saved so far.
pub type VersionedNote = (ProgressNote, u64);

/// Progress notes that are not stored yet, by attempt. A running attempt reports each progress only
/// once, so the note is kept in memory until it is stored. Only the holder of the `UnsavedNotes`
/// lock writes progress notes to the store, so an older note never overwrites a newer note.
pub type UnsavedNotes = Mutex<BTreeMap<AttemptKey, VersionedNote>>;

pub struct Recorder {
    pub ctx: Arc<NodeContext>,
}

impl Recorder {
    /// Stores new progress, output and checkpoints. Returns the number of attempts with new
    /// progress.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let mut unsaved = self.ctx.unsaved_notes.lock().await;
        for (note, version) in self.ctx.worker.notes() {
            add(&mut unsaved, note, version);
        }
        // The result of a finished attempt already contains its last progress note.
        unsaved.retain(|key, _| self.ctx.worker.has(*key));
        let count = unsaved.len();
        flush(&self.ctx, &mut unsaved).await?;
        Ok(count)
    }

    /// The loop also runs while the node drains, because attempts of a draining node make progress.
    pub async fn run(self) {
        let mut backoff = Backoff::default();
        let mut wait = self.ctx.settings.progress_every;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.run_once().await {
                Ok(_) => {
                    backoff.reset();
                    self.ctx.settings.progress_every
                }
                Err(error) => {
                    log_trouble(&error, "storing the progress of attempts failed; will retry");
                    self.ctx.settings.progress_every.max(backoff.next())
                }
            };
        }
    }
}

/// Stores the last checkpoints of attempts before the attempts are requeued, so that their next
/// execution resumes at these checkpoints. Gives up after `patience`.
pub async fn store_last(ctx: &NodeContext, notes: Vec<ProgressNote>, patience: Duration) {
    if notes.is_empty() {
        return;
    }
    let count = notes.len();
    let storing = async {
        let mut unsaved = ctx.unsaved_notes.lock().await;
        notes.into_iter().for_each(|note| add(&mut unsaved, note, 0));
        flush(ctx, &mut unsaved).await
    };
    match tokio::time::timeout(patience, storing).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = &error as &dyn std::error::Error;
            warn!(
                error,
                runs.count = count,
                "storing the last checkpoints of stopped attempts failed; they restart from older checkpoints"
            );
        }
        Err(_) => warn!(
            runs.count = count,
            "storing the last checkpoints of stopped attempts took too long; they restart from older checkpoints"
        ),
    }
}

async fn flush(
    ctx: &NodeContext,
    unsaved: &mut BTreeMap<AttemptKey, VersionedNote>,
) -> Result<(), StoreError> {
    while !unsaved.is_empty() {
        let batch = first_batch(unsaved, ctx.store.batch_sizing().batch);
        let notes = batch.iter().map(|(note, _)| note.clone()).collect();
        // The store returns `false` for a progress note whose attempt has finished or belongs to
        // another node.
        let stored = match ctx.store.save_progress(ctx.node, notes, NodeContext::NOW).await {
            Err(refusal) if !refusal.is_outage() => {
                error!(
                    error = &refusal as &dyn std::error::Error,
                    "store refuses progress reports of running attempts; dropping these reports"
                );
                vec![false; batch.len()]
            }
            answer => answer?,
        };
        for ((note, version), stored) in batch.iter().zip(stored) {
            unsaved.remove(&note.key);
            if stored {
                ctx.worker.noted(note.key, note.fence, *version);
            }
        }
    }
    Ok(())
}

/// Adds a progress note and replaces an older note of the same attempt. Fields that the newer
/// progress note leaves empty keep their old values.
fn add(unsaved: &mut BTreeMap<AttemptKey, VersionedNote>, newer: ProgressNote, version: u64) {
    let older = unsaved.remove(&newer.key).map(|(older, _)| older);
    let ProgressNote { progress, log, checkpoint, .. } = match older {
        Some(older) if older.fence == newer.fence => older,
        _ => ProgressNote { progress: None, log: None, checkpoint: None, ..newer.clone() },
    };
    let key = newer.key;
    let merged = ProgressNote {
        progress: newer.progress.or(progress),
        log: newer.log.or(log),
        checkpoint: newer.checkpoint.or(checkpoint),
        ..newer
    };
    unsaved.insert(key, (merged, version));
}

/// Returns as many progress notes as fit into one batch, at least one.
fn first_batch(
    unsaved: &BTreeMap<AttemptKey, VersionedNote>,
    rows_max: usize,
) -> Vec<VersionedNote> {
    let mut bytes = 0;
    let size = |note: &ProgressNote| {
        note.log.as_ref().map_or(0, String::len) + note.checkpoint.as_ref().map_or(0, Vec::len)
    };
    unsaved
        .values()
        .take(rows_max)
        .enumerate()
        .take_while(|(at, (note, _))| {
            bytes += size(note);
            *at == 0 || bytes <= BATCH_BYTES_MAX
        })
        .map(|(_, noted)| noted.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_core::lease::Fence;
    use evenkeel_core::{JobNo, Progress, Timestamp};

    use super::*;

    fn note(job: i64, fence: u32) -> ProgressNote {
        let key = AttemptKey::regular(JobNo(job), Timestamp::from_micros(1));
        ProgressNote { key, fence: Fence(fence), progress: None, log: None, checkpoint: None }
    }

    #[test]
    fn newer_note_keeps_the_fields_it_leaves_out() {
        let mut unsaved = BTreeMap::new();
        let log = Some("one".to_string());
        add(
            &mut unsaved,
            ProgressNote { log: log.clone(), checkpoint: Some(vec![1]), ..note(1, 1) },
            1,
        );
        let progress = Some(Progress { done: Some(1), ..Progress::default() });
        let newer =
            ProgressNote { checkpoint: Some(vec![2]), progress: progress.clone(), ..note(1, 1) };
        add(&mut unsaved, newer, 2);
        let (merged, version) = &unsaved[&note(1, 1).key];
        assert_eq!((&merged.log, &merged.progress), (&log, &progress));
        assert_eq!((merged.checkpoint.as_deref(), *version), (Some(&[2_u8][..]), 2));
        add(&mut unsaved, note(1, 2), 0);
        assert_eq!(unsaved[&note(1, 1).key].0, note(1, 2));
    }

    #[test]
    fn batch_is_bounded_in_rows_and_bytes_and_never_empty() {
        let large =
            |job| ProgressNote { checkpoint: Some(vec![0; BATCH_BYTES_MAX]), ..note(job, 1) };
        let mut unsaved = BTreeMap::new();
        (1..=3).for_each(|job| add(&mut unsaved, large(job), 1));
        assert_eq!(first_batch(&unsaved, 100).len(), 1);
        let mut unsaved = BTreeMap::new();
        (1..=30).for_each(|job| add(&mut unsaved, note(job, 1), 0));
        assert_eq!(first_batch(&unsaved, 20).len(), 20);
    }
}
