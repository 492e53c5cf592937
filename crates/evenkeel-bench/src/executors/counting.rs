//! An executor that forwards runs to another executor and counts their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, Report};
use serde_json::Value;

/// Forwards each call to `inner`, the measured executor, and counts the reports.
pub(super) struct CountingExecutor {
    inner: Arc<dyn Executor>,
    ended: AtomicU64,
    failed: AtomicU64,
    crawled: AtomicU64,
    indexed: AtomicU64,
    last_error: std::sync::Mutex<Option<String>>,
}

impl CountingExecutor {
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

    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Sum of the reported `items_processed`.
    pub(super) fn crawled(&self) -> u64 {
        self.crawled.load(Ordering::Acquire)
    }

    /// Sum of the reported `items_saved`.
    pub(super) fn indexed(&self) -> u64 {
        self.indexed.load(Ordering::Acquire)
    }

    /// Returns an error if a run failed. Failed runs are faster than real work, so the measurement
    /// would be wrong.
    pub(super) fn must_have_succeeded(&self) -> anyhow::Result<()> {
        let failed = self.failed.load(Ordering::Acquire);
        let error = self.last_error.lock().unwrap_or_else(|lock| lock.into_inner());
        anyhow::ensure!(failed == 0, "{failed} runs failed; last error: {:?}", *error);
        Ok(())
    }
}

#[async_trait]
impl Executor for CountingExecutor {
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
