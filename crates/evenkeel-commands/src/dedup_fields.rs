//! The job fields that describe the deduplication key.

use evenkeel_core::dedup::{Dedup, DedupScope};
use serde_json::{Value, json};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DedupFields {
    /// True if a second job with the same deduplication key counts as a duplicate.
    pub unique: bool,
    pub key: Option<String>,
    /// Scope of the deduplication key: `pending`, `pending_or_running` or `window`.
    pub scope: Option<&'static str>,
    pub window_seconds: Option<u64>,
}

impl DedupFields {
    pub fn of(dedup: Option<&Dedup>) -> Self {
        let Some(dedup) = dedup else { return Self::default() };
        let (scope, window_seconds) = match dedup.scope {
            DedupScope::Pending => ("pending", None),
            DedupScope::PendingOrRunning => ("pending_or_running", None),
            DedupScope::Window(window) => ("window", Some(window.as_micros() / 1_000_000)),
        };
        Self { unique: true, key: Some(dedup.key.clone()), scope: Some(scope), window_seconds }
    }

    /// Returns the deduplication fields of a job document. A default deduplication key is left out,
    /// so that it changes with the job's target, source or URL.
    pub(crate) fn document_fields(dedup: Option<&Dedup>) -> [(&'static str, Value); 4] {
        let Self { unique, key, scope, window_seconds } = Self::of(dedup);
        let key = key.filter(|_| dedup.is_some_and(|dedup| !dedup.by_target));
        [
            ("unique", if unique && key.is_none() { Value::Bool(true) } else { Value::Null }),
            ("dedup_key", json!(key)),
            ("dedup_scope", json!(scope)),
            ("dedup_window_seconds", json!(window_seconds)),
        ]
    }
}
