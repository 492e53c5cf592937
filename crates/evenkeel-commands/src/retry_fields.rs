//! The job fields that describe the retry policy.

use evenkeel_core::Span;
use evenkeel_core::retry::{Backoff, Jitter, Preset, RetryPolicy};
use serde_json::{Value, json};

use crate::read::job_fields::whole_seconds;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryFields {
    /// Name of the retry policy whose values all retry fields match, if any.
    pub policy: Option<&'static str>,
    pub max_retries: u16,
    /// How the delay between retries grows: `exponential`, `fixed` or `stages`.
    pub backoff: &'static str,
    pub backoff_seconds: u64,
    /// Maximum delay of an exponential backoff between retries, in seconds.
    pub backoff_cap_seconds: Option<u64>,
    /// The retry delays of a `stages` backoff.
    pub stages: Option<Vec<Span>>,
    /// How retry delays are randomized: `none`, `symmetric` or `additive`.
    pub jitter: &'static str,
    pub jitter_percent: u8,
}

impl RetryFields {
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

    /// Returns the retry fields of a job document. The name of the retry policy is left out,
    /// because the other fields describe the policy completely.
    pub(crate) fn document_fields(self) -> [(&'static str, Value); 7] {
        [
            ("max_retries", self.max_retries.into()),
            ("retry_backoff", self.backoff.into()),
            ("retry_backoff_seconds", self.backoff_seconds.into()),
            ("retry_backoff_cap_seconds", json!(self.backoff_cap_seconds)),
            ("retry_stages", json!(self.stages)),
            // If the jitter is 0 percent, `retry_jitter` is left out, so that a later change of the
            // percentage may choose any kind of jitter.
            ("retry_jitter", json!(Some(self.jitter).filter(|_| self.jitter_percent > 0))),
            ("retry_jitter_percent", self.jitter_percent.into()),
        ]
    }
}
