//! Flags of deduplication.

use clap::Args;
use evenkeel_core::Span;
use serde_json::{Map, Value};

use super::create::whole_seconds;
use super::policies::put;
use crate::Result;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct DedupArgs {
    /// Do not create the job if a job with the same target, source or URL exists
    #[arg(long, conflicts_with = "file", help_heading = "How")]
    unique: bool,
    /// Do not create the job if a job with this deduplication key exists
    #[arg(long, value_name = "KEY", conflicts_with = "file", help_heading = "How")]
    dedup_key: Option<String>,
    /// Which jobs count as duplicates: pending, pending_or_running or window [default: pending]
    #[arg(long, value_name = "SCOPE", conflicts_with = "file", help_heading = "How")]
    dedup_scope: Option<String>,
    /// Jobs that were created or triggered within this time count as duplicates; implies
    /// --dedup-scope window
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    dedup_window: Option<Span>,
}

impl DedupArgs {
    pub(super) fn add_to(&self, job: &mut Map<String, Value>) -> Result {
        let window = whole_seconds("--dedup-window", self.dedup_window)?;
        let scope = self.dedup_scope.clone().or_else(|| window.as_ref().map(|_| "window".into()));
        put(job, "unique", self.unique.then_some(true));
        put(job, "dedup_key", self.dedup_key.as_ref());
        put(job, "dedup_scope", scope);
        put(job, "dedup_window_seconds", window);
        Ok(())
    }
}
