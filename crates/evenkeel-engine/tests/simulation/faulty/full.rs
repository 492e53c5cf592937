//! A database that can be read, but takes no changes.

use std::pin::Pin;
use std::sync::atomic::Ordering;

use evenkeel_store::{StoreError, Unwritable};
use evenkeel_store_testkit::model::ModelStore;

use super::FaultyStore;

/// Verbs that change nothing, and so work on a full disk.
const READS: [&str; 17] = [
    "all_condition_counts",
    "announce",
    "cancellations",
    "census",
    "find_owned",
    "find_running",
    "get",
    "get_attempt",
    "get_with_now",
    "list_attempts",
    "load_jobs",
    "members",
    "now",
    "overdue_in_queue",
    "list_owned",
    "to_judge",
    "count_queued",
];

impl FaultyStore {
    /// Calls a verb, unless it changes something and the disk is full.
    pub(super) async fn change<T, F>(&self, name: &str, verb: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(ModelStore) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>
            + Send
            + 'static,
    {
        if self.link.full.load(Ordering::Relaxed) && !READS.contains(&name) {
            self.travel().await;
            self.link.refused.fetch_add(1, Ordering::Relaxed);
            let why = "a full disk of the simulation".into();
            return Err(StoreError::NotWritable(Unwritable::DiskFull, why));
        }
        self.call(verb).await
    }
}
