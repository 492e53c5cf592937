//! Flags that say when a failed run is tried again, and what is done when it is not.

use clap::Args;
use evenkeel_core::Span;
use serde_json::{Map, Value, json};

use super::create::whole_seconds;
use super::policies::put;
use crate::Failure;

/// How a job takes failures.
#[derive(Args, Clone, Default)]
pub(super) struct RetryArgs {
    /// Try again by this rule: standard, interval (001), queue (002), deadline (003) or
    /// cron_service (004); other flags change parts of it
    #[arg(long, value_name = "NAME", conflicts_with = "file", help_heading = "Failures")]
    retry_policy: Option<String>,
    /// Try again so often after a failure
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "Failures")]
    max_retries: Option<u32>,
    /// Wait so long before the first retry
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "Failures")]
    retry_backoff: Option<Span>,
    /// How the wait goes on from there: exponential, fixed or stages
    #[arg(long, value_name = "HOW", conflicts_with = "file", help_heading = "Failures")]
    retry_growth: Option<String>,
    /// The longest wait, if it doubles
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "Failures")]
    retry_backoff_cap: Option<Span>,
    /// Wait so long before each retry, like 5m,1h,4h; the last one stays
    #[arg(long, value_name = "TIMES", value_delimiter = ',', conflicts_with = "file")]
    #[arg(help_heading = "Failures")]
    retry_stages: Vec<Span>,
    /// Let chance change each wait: none, symmetric (shorter or longer) or additive (longer)
    #[arg(long, value_name = "KIND", conflicts_with = "file", help_heading = "Failures")]
    retry_jitter: Option<String>,
    /// By so many percent
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "Failures")]
    retry_jitter_percent: Option<u8>,
    /// When a run has failed for good: none, dead-letter, or pause (pause:5 after 5 runs in a row)
    #[arg(long, value_name = "ACTION", conflicts_with = "file", help_heading = "Failures")]
    on_failure: Option<String>,
    /// What people are told when it is paused for its failures
    #[arg(long, value_name = "TEXT", conflicts_with = "file", requires = "on_failure")]
    #[arg(help_heading = "Failures")]
    failure_note: Option<String>,
}

impl RetryArgs {
    /// Adds what was said to a document.
    pub(super) fn add_to(&self, job: &mut Map<String, Value>) -> Result<(), Failure> {
        put(job, "retry_policy", self.retry_policy.clone());
        put(job, "max_retries", self.max_retries);
        put(job, "retry_backoff_seconds", whole_seconds("--retry-backoff", self.retry_backoff)?);
        put(job, "retry_backoff", self.retry_growth.clone());
        let cap = whole_seconds("--retry-backoff-cap", self.retry_backoff_cap)?;
        put(job, "retry_backoff_cap_seconds", cap);
        let stages = &self.retry_stages;
        put(job, "retry_stages", (!stages.is_empty()).then(|| json!(stages)));
        put(job, "retry_jitter", self.retry_jitter.clone());
        put(job, "retry_jitter_percent", self.retry_jitter_percent);
        put(job, "on_failure", self.on_failure()?);
        Ok(())
    }

    fn on_failure(&self) -> Result<Option<Value>, Failure> {
        let Some(said) = &self.on_failure else { return Ok(None) };
        let (action, after) = match said.split_once(':') {
            Some((action, after)) => (action, Some(after)),
            None => (said.as_str(), None),
        };
        let mut document = json!({"action": action.replace('-', "_")});
        if let Some(after) = after {
            let Ok(after) = after.parse::<u32>() else {
                return Err(Failure::usage(format!("--on-failure {said:?} has no number after :"))
                    .or_else("write it like --on-failure pause:5"));
            };
            document["after"] = after.into();
        }
        if let Some(note) = &self.failure_note {
            document["note"] = note.clone().into();
        }
        Ok(Some(document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(args: &RetryArgs) -> Value {
        let mut job = Map::new();
        args.add_to(&mut job).ok();
        Value::Object(job)
    }

    #[test]
    fn what_is_done_when_a_run_has_failed_for_good_is_said_in_a_word() {
        let args = |on_failure: &str, note: Option<&str>| RetryArgs {
            on_failure: Some(on_failure.into()),
            failure_note: note.map(Into::into),
            ..RetryArgs::default()
        };
        assert_eq!(
            said(&args("dead-letter", None)),
            json!({"on_failure": {"action": "dead_letter"}})
        );
        assert_eq!(
            said(&args("pause:5", Some("ask Ann"))),
            json!({"on_failure": {"action": "pause", "after": 5, "note": "ask Ann"}})
        );
        assert_eq!(said(&args("pause:often", None)), json!({}));
    }

    #[test]
    fn waits_are_fields_of_the_document() {
        let args = RetryArgs {
            retry_policy: Some("002".into()),
            retry_backoff_cap: Some(Span::from_secs(7200)),
            retry_stages: vec![Span::from_secs(300), Span::from_secs(3600)],
            ..RetryArgs::default()
        };
        assert_eq!(
            said(&args),
            json!({"retry_policy": "002", "retry_backoff_cap_seconds": 7200,
                   "retry_stages": ["5m", "1h"]})
        );
    }
}
