//! An executor that forwards runs to another executor and counts their results.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, Report};
use serde_json::Value;

/// Forwards each run to `inner`, the measured executor, and counts the finished runs and their
/// items.
pub(super) struct CountingExecutor {
    inner: Arc<dyn Executor>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) ended: u64,
    /// Sum of the reported `items_processed`.
    pub(super) crawled: u64,
    /// Sum of the reported `items_saved`.
    pub(super) indexed: u64,
    failed: u64,
    last_error: Option<String>,
}

impl CountingExecutor {
    pub(super) fn new(inner: impl Executor) -> Arc<Self> {
        Arc::new(Self { inner: Arc::new(inner), counts: Mutex::default() })
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if a run failed, because a failed run is faster than a successful one and
    /// would make the measurement wrong.
    pub(super) fn must_have_succeeded(&self) -> anyhow::Result<()> {
        let Counts { failed, last_error, .. } = &*self.counts();
        anyhow::ensure!(*failed == 0, "{failed} runs failed; last error: {last_error:?}");
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
        let mut counts = self.counts();
        if report.outcome != Outcome::Completed {
            counts.failed += 1;
            counts.last_error.clone_from(&report.error);
        }
        let count = |items: Option<i64>| items.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        counts.crawled += count(report.items_processed);
        counts.indexed += count(report.items_saved);
        counts.ended += 1;
        report
    }
}
