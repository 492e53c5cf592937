//! Retry policies, spelled out field by field.

use evenkeel_core::Span;
use evenkeel_core::retry::{Backoff, Jitter, Preset, RetryPolicy};
use serde_json::{Value, json};

use crate::read::job_fields::whole_seconds;

/// What a document says, and a view shows, of when a failed run is tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryWords {
    /// The preset that it is in every field, if it is one.
    pub policy: Option<&'static str>,
    /// Tries after the first one.
    pub max_retries: u16,
    /// `exponential`, `fixed` or `stages`.
    pub backoff: &'static str,
    /// The wait before the first retry.
    pub backoff_seconds: u64,
    /// The longest wait, if it doubles.
    pub backoff_cap_seconds: Option<u64>,
    /// The waits one after the other, if they are listed.
    pub stages: Option<Vec<Span>>,
    /// `none`, `symmetric` or `additive`.
    pub jitter: &'static str,
    /// By how much, in percent.
    pub jitter_percent: u8,
}

impl RetryWords {
    /// Those of a policy.
    pub fn of(retry: &RetryPolicy) -> Self {
        let (backoff, wait, cap, stages) = match &retry.backoff {
            Backoff::Exponential { base, cap } => ("exponential", *base, Some(*cap), None),
            Backoff::Fixed { delay } => ("fixed", *delay, None, None),
            Backoff::Stages { delays } => {
                let first = delays.first().copied().unwrap_or(Span::ZERO);
                ("stages", first, None, Some(delays.clone()))
            }
        };
        let (jitter, jitter_percent) = match retry.jitter {
            Jitter::None => ("none", 0),
            Jitter::Symmetric { percent } => ("symmetric", percent),
            Jitter::Additive { percent } => ("additive", percent),
        };
        Self {
            policy: Preset::of(retry).map(Preset::as_str),
            max_retries: retry.max_retries,
            backoff,
            backoff_seconds: whole_seconds(wait),
            backoff_cap_seconds: cap.map(whole_seconds),
            stages,
            jitter,
            jitter_percent,
        }
    }

    /// The fields of a document, without the name: that would be said twice.
    pub(crate) fn fields(self) -> [(&'static str, Value); 7] {
        [
            ("max_retries", self.max_retries.into()),
            ("retry_backoff", self.backoff.into()),
            ("retry_backoff_seconds", self.backoff_seconds.into()),
            ("retry_backoff_cap_seconds", json!(self.backoff_cap_seconds)),
            ("retry_stages", json!(self.stages)),
            // Where there is none, its percentage says so, and a new one may be of any kind.
            ("retry_jitter", json!(Some(self.jitter).filter(|_| self.jitter_percent > 0))),
            ("retry_jitter_percent", self.jitter_percent.into()),
        ]
    }
}
