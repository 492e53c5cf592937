//! Handing over what a later crawl can go on from.

use std::time::Duration;

use super::{Crawl, Stuck};
use crate::checkpoint::{Checkpoint, Head};
use crate::clock::now;
use crate::entry::{Entry, Lookup};
use crate::frontier::Frontier;
use crate::normal_url::key_of;
use crate::tally::Tally;

/// What is left is kept within this time when a crawl is ended.
const WIND_UP_MAX: Duration = Duration::from_millis(500);
/// Checkpoints take one part in so many of the time at most.
const CHECKPOINT_SHARE: u32 = 20;
/// Unless they would be this many times further apart than they should.
const CHECKPOINT_PAUSE_MAX: u32 = 10;
/// A checkpoint with so many bytes more is to be the usual time further from the next.
const CHECKPOINT_BYTES: usize = 128 * 1024;

impl Crawl {
    /// Goes on from a checkpoint, if it is of any use.
    pub(super) fn resume(&mut self, data: &[u8]) -> bool {
        let config = &self.shared.config;
        let Checkpoint { head, queue, seen, contents, pointers } =
            match Checkpoint::decode(data, config.fingerprint) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    let line = format!("the checkpoint is not used: {error}; starting afresh");
                    self.listener.log(&line);
                    return false;
                }
            };
        let Tally { visited, .. } = head.tally;
        let cut = match head.cut {
            0 => String::new(),
            cut => format!(", {cut} did not fit into the checkpoint"),
        };
        let waiting = queue.len();
        self.listener.log(&format!("going on: {visited} pages done, {waiting} queued{cut}"));
        self.frontier = Frontier::with_seen(config.queue_max(), seen);
        queue.into_iter().for_each(|entry| self.frontier.put_last(entry));
        self.contents = contents;
        self.pointers = pointers.into_iter().collect();
        self.tally = head.tally;
        self.sitemaps_read = head.sitemaps_read;
        self.losses.first = head.first_loss;
        self.losses.hopeful = self.losses.first.is_some();
        true
    }

    /// What a later crawl can go on from.
    pub(super) async fn save(&self) -> Vec<u8> {
        let open = self.open.values();
        let queued = self.frontier.entries();
        let bare = |entry: &Entry| Entry { known: Lookup::NotYet, ..entry.clone() };
        let checkpoint = Checkpoint {
            head: Head {
                fingerprint: self.shared.config.fingerprint,
                tally: self.tally.clone(),
                sitemaps_read: self.sitemaps_read,
                first_loss: self.losses.first.clone(),
                cut: 0,
            },
            queue: open.chain(queued.iter().map(|(_, entry)| *entry)).map(bare).collect(),
            seen: self.frontier.seen().iter().copied().collect(),
            contents: self.contents.clone(),
            pointers: self.pointers.iter().copied().collect(),
        };
        let bytes_max = self.shared.settings.checkpoint_bytes_max;
        // Packing a large one takes a moment, and does not fail.
        let packing = tokio::task::spawn_blocking(move || checkpoint.encode(bytes_max));
        packing.await.unwrap_or_default()
    }

    /// The same for a crawl that was ended in the middle: what is read already is kept first, if
    /// the archive is quick about it.
    pub async fn wind_up(&mut self) -> Vec<u8> {
        // If it is not, those pages are in the checkpoint, and will be read again.
        let _ = tokio::time::timeout(WIND_UP_MAX, self.flush()).await;
        self.save().await
    }

    /// Pages that the checkpoint no longer has are kept before it is handed over.
    pub(super) async fn save_if_due(&mut self) -> Result<(), Stuck> {
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

    /// What a crawl that has not begun would hand over.
    pub(super) fn save_beginning(&self) -> Vec<u8> {
        let queue = self.starts();
        let seen = queue.iter().map(|entry| key_of(entry.url.as_str())).collect();
        let head = Head { fingerprint: self.shared.config.fingerprint, ..Head::default() };
        let beginning = Checkpoint { head, queue, seen, ..Checkpoint::default() };
        beginning.encode(self.shared.settings.checkpoint_bytes_max)
    }
}

/// How long to wait after a checkpoint that took so long and has so many bytes.
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
