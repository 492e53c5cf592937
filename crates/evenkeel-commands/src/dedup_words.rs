//! How it is said that a job is not to be there twice.

use evenkeel_core::dedup::{Dedup, DedupScope};
use serde_json::{Value, json};

/// The fields of a job about its key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DedupWords {
    /// Is it not to be there twice?
    pub unique: bool,
    /// What tells it from others.
    pub key: Option<String>,
    /// `pending`, `pending_or_running` or `window`.
    pub scope: Option<&'static str>,
    /// How long a window is.
    pub window_seconds: Option<u64>,
}

impl DedupWords {
    /// What a job says.
    pub fn of(dedup: Option<&Dedup>) -> Self {
        let Some(dedup) = dedup else { return Self::default() };
        let (scope, window_seconds) = match dedup.scope {
            DedupScope::Pending => ("pending", None),
            DedupScope::PendingOrRunning => ("pending_or_running", None),
            DedupScope::Window(window) => ("window", Some(window.as_micros() / 1_000_000)),
        };
        Self { unique: true, key: Some(dedup.key.clone()), scope: Some(scope), window_seconds }
    }

    /// The fields of a document that says the same; a key that nobody chose is left out, so that it
    /// goes on to follow what the job is about.
    pub(crate) fn fields(dedup: Option<&Dedup>) -> [(&'static str, Value); 4] {
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
