//! Saves checkpoints of a crawl and resumes from them.

use std::time::Duration;

use super::{Crawl, CrawlError};
use crate::checkpoint::{Checkpoint, Head};
use crate::clock::now;
use crate::counts::CrawlCounts;
use crate::entry::{Entry, Lookup};
use crate::frontier::Frontier;
use crate::normal_url::key_of;

/// Maximum time for saving pages in the archive when a crawl is interrupted.
const WIND_UP_MAX: Duration = Duration::from_millis(500);
/// The pause after a checkpoint is this many times as long as saving the checkpoint took, unless
/// the checkpoint interval or its limits determine the pause.
const CHECKPOINT_SHARE: u32 = 20;
/// The pause between checkpoints is at most this many checkpoint intervals.
const CHECKPOINT_PAUSE_MAX: u32 = 10;
/// Each `CHECKPOINT_BYTES` bytes of a checkpoint make the pause until the next checkpoint one
/// checkpoint interval longer.
const CHECKPOINT_BYTES: usize = 128 * 1024;

impl Crawl {
    /// Continues the crawl from a checkpoint. Returns false if the checkpoint cannot be used.
    pub(super) fn resume(&mut self, data: &[u8]) -> bool {
        let config = &self.shared.config;
        let Checkpoint { head, queue, seen, contents, pointers } =
            match Checkpoint::decode(data, config.fingerprint) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    let what = "the checkpoint is not used";
                    self.log(format!("{what}: {error}; starting from the beginning"));
                    return false;
                }
            };
        let CrawlCounts { visited, .. } = head.counts;
        let cut = match head.cut {
            0 => String::new(),
            cut => format!(", {cut} did not fit into the checkpoint"),
        };
        let waiting = queue.len();
        self.log(format!("resuming: {visited} pages done, {waiting} queued{cut}"));
        self.frontier = Frontier::with_seen(config.queue_max(), seen);
        queue.into_iter().for_each(|entry| self.frontier.put_last(entry));
        self.contents = contents;
        self.pointers = pointers.into_iter().collect();
        self.counts = head.counts;
        self.sitemaps_read = head.sitemaps_read;
        self.losses.first = head.first_loss;
        self.losses.hopeful = self.losses.first.is_some();
        true
    }

    /// Returns a checkpoint from which a later crawl can continue.
    pub(super) async fn save(&self) -> Vec<u8> {
        let open = self.open.values();
        let queued = self.frontier.entries();
        let bare = |entry: &Entry| Entry { known: Lookup::NotYet, ..entry.clone() };
        let checkpoint = Checkpoint {
            head: Head {
                fingerprint: self.shared.config.fingerprint,
                counts: self.counts.clone(),
                sitemaps_read: self.sitemaps_read,
                first_loss: self.losses.first.clone(),
                cut: 0,
            },
            queue: open.chain(queued.iter().map(|(_, entry)| *entry)).map(bare).collect(),
            seen: self.frontier.seen.iter().copied().collect(),
            contents: self.contents.clone(),
            pointers: self.pointers.iter().copied().collect(),
        };
        let bytes_max = self.shared.settings.checkpoint_bytes_max;
        // A blocking thread compresses the checkpoint, because compression takes some time.
        // Compression cannot fail.
        let packing = tokio::task::spawn_blocking(move || checkpoint.encode(bytes_max));
        packing.await.unwrap_or_default()
    }

    /// Returns the checkpoint of an interrupted crawl. Pages that were read are first saved in the
    /// archive, if the archive is fast enough.
    pub async fn save_interrupted(&mut self) -> Vec<u8> {
        // Pages that were not saved in time stay in the queue of the checkpoint, so the next
        // attempt reads these pages again.
        let _ = tokio::time::timeout(WIND_UP_MAX, self.flush()).await;
        self.save().await
    }

    /// Saves a checkpoint if the pause since the last checkpoint has passed. Pages that were read
    /// are saved in the archive first.
    pub(super) async fn save_if_due(&mut self) -> Result<(), CrawlError> {
        let every = self.shared.settings.checkpoint_every;
        let pause = pause_after(every, self.saving_took, self.saved_bytes);
        if !self.is_changed || now() - self.saved_at < pause {
            return Ok(());
        }
        self.flush().await?;
        let started = now();
        let data = self.save().await;
        self.saved_bytes = data.len();
        self.listener.checkpoint(data);
        self.saved_at = now();
        self.saving_took = self.saved_at - started;
        self.is_changed = false;
        Ok(())
    }

    /// Returns the checkpoint of a crawl that has not started yet.
    pub(super) fn save_beginning(&self) -> Vec<u8> {
        let queue = self.starts();
        let seen = queue.iter().map(|entry| key_of(entry.url.as_str())).collect();
        let head = Head { fingerprint: self.shared.config.fingerprint, ..Head::default() };
        let beginning = Checkpoint { head, queue, seen, ..Checkpoint::default() };
        beginning.encode(self.shared.settings.checkpoint_bytes_max)
    }
}

/// Returns the pause until the next checkpoint, if the last checkpoint has `bytes` bytes and took
/// the time `took` to save.
fn pause_after(every: Duration, took: Duration, bytes: usize) -> Duration {
    let costs = took.saturating_mul(CHECKPOINT_SHARE);
    let by_time = costs.min(every.saturating_mul(CHECKPOINT_PAUSE_MAX));
    let by_size = u32::try_from(1 + bytes / CHECKPOINT_BYTES).unwrap_or(CHECKPOINT_PAUSE_MAX);
    every.saturating_mul(by_size.min(CHECKPOINT_PAUSE_MAX)).max(by_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_slow_checkpoints_are_further_apart() {
        let secs = Duration::from_secs;
        assert_eq!(pause_after(secs(2), Duration::ZERO, 1000), secs(2));
        assert_eq!(pause_after(secs(2), Duration::ZERO, 512 * 1024), secs(10));
        assert_eq!(pause_after(secs(2), secs(1), 1000), secs(20));
        assert_eq!(pause_after(secs(2), secs(60), usize::MAX), secs(20));
        assert_eq!(pause_after(Duration::ZERO, secs(1), 512 * 1024), Duration::ZERO);
        assert_eq!(pause_after(Duration::MAX, secs(1), 512 * 1024), Duration::MAX);
    }
}
