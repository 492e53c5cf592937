//! Writes down what was done and what was refused, many entries in one transaction.

use std::sync::Arc;

use evenkeel_store::{AuditEntry, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Entries that wait at most. Refusals beyond are dropped and counted; changes wait for room.
const WAITING_MAX: usize = 10_000;
/// Entries of one transaction.
const BATCH_MAX: usize = 1000;
/// Transactions under way at once. With one, whoever comes a moment too late waits for two; the
/// stores commit together what comes together.
const SIDE_BY_SIDE: usize = 4;
/// Texts of an entry are cut to this.
const TEXT_CHARS_MAX: usize = 500;

/// Refusals that were not written down, because too many were waiting or the store failed.
const DROPPED: &str = "evenkeel_audit_dropped_total";

struct Waiting {
    entry: AuditEntry,
    /// Whoever waits until it is written down.
    done: Option<oneshot::Sender<bool>>,
}

/// Writes down what was done and what was refused. Clones share one queue.
///
/// While a few transactions are under way the next gathers, so that a crowd of requests costs hardly
/// more of them than a single one, and nobody waits for company.
#[derive(Clone)]
pub struct AuditLog(mpsc::Sender<Waiting>);

impl AuditLog {
    /// Starts to write into `store`, until the last clone is gone. Call it inside a runtime.
    pub fn start(store: Arc<dyn Store>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(store, receiver));
        Self(sender)
    }

    /// Writes down what was done. False if it could not be.
    pub async fn record(&self, entry: AuditEntry) -> bool {
        let (done, written) = oneshot::channel();
        let sent = self.0.send(Waiting { entry: neat(entry), done: Some(done) }).await;
        sent.is_ok() && written.await.unwrap_or(false)
    }

    /// Writes down a refusal, later, unless too many are waiting: whoever can make the server refuse
    /// must not be able to make it stand still.
    pub fn record_refusal(&self, entry: AuditEntry) {
        if self.0.try_send(Waiting { entry: neat(entry), done: None }).is_err() {
            metrics::counter!(DROPPED).increment(1);
        }
    }
}

async fn write(store: Arc<dyn Store>, mut receiver: mpsc::Receiver<Waiting>) {
    let room = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut batch = Vec::new();
    // It is never closed, so there is always a permit in the end.
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
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
    let written = store.record(entries).await.inspect_err(|error| {
        let source = error as &dyn std::error::Error;
        tracing::error!(error = source, "entries of the audit log were not written");
        metrics::counter!(DROPPED).increment(refusals);
    });
    for done in waiting.into_iter().flatten() {
        // Whoever asked may have gone.
        let _ = done.send(written.is_ok());
    }
}

/// Short, and without what no database keeps or a terminal obeys.
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
    async fn what_was_recorded_is_there_when_the_call_returns() {
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
