//! Flags about jobs that are not to be there twice.

use clap::Args;
use evenkeel_core::Span;
use serde_json::{Map, Value};

use super::create::whole_seconds;
use super::policies::put;
use crate::Failure;

/// That a job is not to be there twice.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct DedupArgs {
    /// Not if a job about the same is there: the same target, or where the executor goes
    #[arg(long, conflicts_with = "file", help_heading = "How")]
    unique: bool,
    /// Not if a job with this key is there
    #[arg(long, value_name = "KEY", conflicts_with = "file", help_heading = "How")]
    dedup_key: Option<String>,
    /// Which one counts: pending, pending_or_running or window [default: pending]
    #[arg(long, value_name = "SCOPE", conflicts_with = "file", help_heading = "How")]
    dedup_scope: Option<String>,
    /// One that was created or triggered no longer ago than this; the scope is window then
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    dedup_window: Option<Span>,
}

impl DedupArgs {
    /// Puts what was said into the document of a job.
    pub(super) fn add_to(&self, job: &mut Map<String, Value>) -> Result<(), Failure> {
        let window = whole_seconds("--dedup-window", self.dedup_window)?;
        let scope = self.dedup_scope.clone().or_else(|| window.as_ref().map(|_| "window".into()));
        put(job, "unique", self.unique.then_some(true));
        put(job, "dedup_key", self.dedup_key.clone());
        put(job, "dedup_scope", scope);
        put(job, "dedup_window_seconds", window);
        Ok(())
    }
}
