//! An executor and a tally of what it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, Report};
use serde_json::Value;

/// Passes everything on to the executor that is measured, and counts.
pub(super) struct Watched {
    inner: Arc<dyn Executor>,
    ended: AtomicU64,
    failed: AtomicU64,
    crawled: AtomicU64,
    indexed: AtomicU64,
    last_error: std::sync::Mutex<Option<String>>,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Executor>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            crawled: AtomicU64::new(0),
            indexed: AtomicU64::new(0),
            last_error: std::sync::Mutex::default(),
        })
    }

    /// Runs that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Items they say they have looked at.
    pub(super) fn crawled(&self) -> u64 {
        self.crawled.load(Ordering::Acquire)
    }

    /// Items they say they have kept.
    pub(super) fn indexed(&self) -> u64 {
        self.indexed.load(Ordering::Acquire)
    }

    /// Refuses a measurement of failures: they are faster than the real thing.
    pub(super) fn must_have_succeeded(&self) -> anyhow::Result<()> {
        let failed = self.failed.load(Ordering::Acquire);
        let error = self.last_error.lock().unwrap_or_else(|lock| lock.into_inner());
        anyhow::ensure!(failed == 0, "{failed} runs failed, one of them with: {:?}", *error);
        Ok(())
    }
}

#[async_trait]
impl Executor for Watched {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        self.inner.declaration()
    }

    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        self.inner.check(tenant, config, payload)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let report = self.inner.run(invocation).await;
        if report.outcome != Outcome::Completed {
            self.failed.fetch_add(1, Ordering::AcqRel);
            let mut last = self.last_error.lock().unwrap_or_else(|lock| lock.into_inner());
            last.clone_from(&report.error);
        }
        let count = |items: Option<i64>| items.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        self.crawled.fetch_add(count(report.items_processed), Ordering::AcqRel);
        self.indexed.fetch_add(count(report.items_saved), Ordering::AcqRel);
        self.ended.fetch_add(1, Ordering::AcqRel);
        report
    }
}
