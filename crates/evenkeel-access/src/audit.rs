//! Writes the audit log of changes and refused requests, with many entries in one transaction.

use std::sync::Arc;

use evenkeel_store::{AuditEntry, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Maximum number of audit entries that wait to be written. If so many wait, the server drops and
/// counts audit entries for refused requests, and requests that change data wait.
const WAITING_MAX: usize = 10_000;
/// Maximum number of audit entries in one transaction.
const BATCH_MAX: usize = 1000;
/// Maximum number of concurrent transactions. If the maximum were 1, an audit entry that arrives
/// during a transaction would wait for that transaction and for its own. The stores commit
/// concurrent transactions together.
const SIDE_BY_SIDE: usize = 4;
/// Maximum length of a text in an audit entry, in characters; longer texts are cut.
const TEXT_CHARS_MAX: usize = 500;

/// Metric: number of refused requests without an audit entry, because the queue of audit entries
/// was full or the store failed.
const DROPPED: &str = "evenkeel_audit_dropped_total";

struct Waiting {
    entry: AuditEntry,
    /// Receives true if the audit entry was written.
    done: Option<oneshot::Sender<bool>>,
}

/// Records changes and refused requests in the audit log. All clones share one queue.
///
/// Audit entries that arrive while transactions run are written together, so many requests need few
/// transactions.
#[derive(Clone)]
pub struct AuditLog(mpsc::Sender<Waiting>);

impl AuditLog {
    /// Starts a task that writes audit entries to `store` until the last clone of the audit log is
    /// dropped. Call `start` inside a Tokio runtime.
    pub fn start(store: Arc<dyn Store>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(store, receiver));
        Self(sender)
    }

    /// Records a change in the audit log and waits until it is stored. Returns false on failure.
    pub async fn record(&self, entry: AuditEntry) -> bool {
        let (done, written) = oneshot::channel();
        let sent = self.0.send(Waiting { entry: neat(entry), done: Some(done) }).await;
        sent.is_ok() && written.await.unwrap_or(false)
    }

    /// Queues the audit entry of a refused request without waiting, because refused requests must
    /// not slow the server down. If the queue of audit entries is full, the audit entry is dropped.
    pub fn record_refusal(&self, entry: AuditEntry) {
        if self.0.try_send(Waiting { entry: neat(entry), done: None }).is_err() {
            metrics::counter!(DROPPED).increment(1);
        }
    }
}

async fn write(store: Arc<dyn Store>, mut receiver: mpsc::Receiver<Waiting>) {
    let permits = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut batch = Vec::new();
    // The semaphore is never closed.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        if receiver.recv_many(&mut batch, BATCH_MAX).await == 0 {
            break;
        }
        let (store, batch) = (Arc::clone(&store), std::mem::take(&mut batch));
        tokio::spawn(async move {
            write_batch(&*store, batch).await;
            drop(permit);
        });
    }
}

async fn write_batch(store: &dyn Store, batch: Vec<Waiting>) {
    let (entries, waiting): (Vec<AuditEntry>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.entry, waiting.done)).unzip();
    let refusals = waiting.iter().filter(|done| done.is_none()).count() as u64;
    let written = store.record_audit(entries).await.inspect_err(|error| {
        let source = error as &dyn std::error::Error;
        tracing::error!(error = source, "audit entries could not be written and are lost");
        metrics::counter!(DROPPED).increment(refusals);
    });
    for done in waiting.into_iter().flatten() {
        // Sending the result fails if the caller no longer waits for the result.
        let _ = done.send(written.is_ok());
    }
}

/// Shortens long texts in an audit entry, and replaces control characters, because some databases
/// and terminals do not handle them.
fn neat(mut entry: AuditEntry) -> AuditEntry {
    let clean = |text: &mut String| {
        if text.chars().nth(TEXT_CHARS_MAX).is_some() || text.contains(char::is_control) {
            let legal = text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one });
            *text = legal.take(TEXT_CHARS_MAX).collect();
        }
    };
    clean(&mut entry.subject);
    [&mut entry.target, &mut entry.detail, &mut entry.remote].into_iter().flatten().for_each(clean);
    entry
}

#[cfg(test)]
mod tests {
    use evenkeel_store::{AuditFilter, PageRequest, Role, Scope, Store as _};
    use evenkeel_store_testkit::fixtures::START;
    use evenkeel_store_testkit::model::ModelStore;

    use super::*;

    async fn entry(store: &ModelStore, subject: &str) -> AuditEntry {
        AuditEntry {
            at: START,
            tenant: Some(store.tenant("main").await.unwrap()),
            subject: subject.into(),
            role: Some(Role::Admin),
            action: "create_job".into(),
            target: None,
            status: 201,
            denied: false,
            detail: None,
            remote: None,
            request_id: "r".into(),
        }
    }

    #[tokio::test]
    async fn recorded_entries_are_stored_when_the_call_returns() {
        let store = ModelStore::new(Arc::new(|| START));
        let log = AuditLog::start(Arc::new(store.clone()));
        log.record_refusal(entry(&store, "nul\0 and more").await);
        let long = "x".repeat(2 * TEXT_CHARS_MAX);
        assert!(log.record(entry(&store, &long).await).await);
        let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Admin };
        let filter = AuditFilter::default();
        let page =
            evenkeel_store::AccessStore::list_audit(&store, &scope, &filter, PageRequest::first(9))
                .await
                .unwrap();
        let subjects: Vec<_> = page.items.iter().map(|(_, entry)| entry.subject.as_str()).collect();
        assert_eq!(subjects, ["x".repeat(TEXT_CHARS_MAX).as_str(), "nul\u{fffd} and more"]);
    }
}
