//! Flags for retries, and for runs that fail without a retry left.

use clap::Args;
use evenkeel_core::Span;
use serde_json::{Map, Value, json};

use super::create::whole_seconds;
use super::policies::{put, put_same};
use crate::{Failure, Result};

#[derive(Args, Clone, Default)]
pub(super) struct RetryArgs {
    /// Retry preset: standard, interval, queue, deadline or cron_service; other flags override
    /// parts of the preset
    #[arg(long, value_name = "NAME", conflicts_with = "file", help_heading = "Failures")]
    retry_policy: Option<String>,
    /// The number of retries after a failure
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "Failures")]
    max_retries: Option<u32>,
    /// The delay before the first retry
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "Failures")]
    retry_backoff: Option<Span>,
    /// How the retry delay grows: exponential, fixed or stages
    #[arg(long, value_name = "HOW", conflicts_with = "file", help_heading = "Failures")]
    retry_growth: Option<String>,
    /// The maximum delay of an exponential backoff
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "Failures")]
    retry_backoff_cap: Option<Span>,
    /// The delays before each retry, like 5m,1h,4h; the last delay repeats
    #[arg(long, value_name = "TIMES", value_delimiter = ',', conflicts_with = "file")]
    #[arg(help_heading = "Failures")]
    retry_stages: Vec<Span>,
    /// Randomize each retry delay: none, symmetric (shorter or longer) or additive (longer)
    #[arg(long, value_name = "KIND", conflicts_with = "file", help_heading = "Failures")]
    retry_jitter: Option<String>,
    /// The maximum random change of a retry delay, in percent
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "Failures")]
    retry_jitter_percent: Option<u8>,
    /// What to do when a run fails and has no retry left: none, dead-letter, or pause (pause:5
    /// pauses the job after 5 failed runs in a row)
    #[arg(long, value_name = "ACTION", conflicts_with = "file", help_heading = "Failures")]
    on_failure: Option<String>,
    /// The note to show while the job is paused because of failures
    #[arg(long, value_name = "TEXT", conflicts_with = "file", requires = "on_failure")]
    #[arg(help_heading = "Failures")]
    failure_note: Option<String>,
}

impl RetryArgs {
    pub(super) fn add_to(&self, job: &mut Map<String, Value>) -> Result {
        put_same!(job, self, retry_policy, max_retries, retry_jitter, retry_jitter_percent);
        put(job, "retry_backoff_seconds", whole_seconds("--retry-backoff", self.retry_backoff)?);
        put(job, "retry_backoff", self.retry_growth.as_ref());
        let cap = whole_seconds("--retry-backoff-cap", self.retry_backoff_cap)?;
        put(job, "retry_backoff_cap_seconds", cap);
        let stages = &self.retry_stages;
        put(job, "retry_stages", (!stages.is_empty()).then_some(stages));
        put(job, "on_failure", self.on_failure()?);
        Ok(())
    }

    fn on_failure(&self) -> Result<Option<Value>> {
        let Some(given) = &self.on_failure else { return Ok(None) };
        let (action, after) = match given.split_once(':') {
            Some((action, after)) => (action, Some(after)),
            None => (given.as_str(), None),
        };
        let mut document = json!({"action": action.replace('-', "_")});
        if let Some(after) = after {
            let Ok(after) = after.parse::<u32>() else {
                return Err(Failure::usage(format!(
                    "--on-failure {given:?} has no number after :"
                ))
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

    fn document(args: &RetryArgs) -> Value {
        let mut job = Map::new();
        args.add_to(&mut job).ok();
        Value::Object(job)
    }

    #[test]
    fn failure_actions_become_a_field() {
        let args = |on_failure: &str, note: Option<&str>| RetryArgs {
            on_failure: Some(on_failure.into()),
            failure_note: note.map(Into::into),
            ..RetryArgs::default()
        };
        assert_eq!(
            document(&args("dead-letter", None)),
            json!({"on_failure": {"action": "dead_letter"}})
        );
        assert_eq!(
            document(&args("pause:5", Some("ask Ann"))),
            json!({"on_failure": {"action": "pause", "after": 5, "note": "ask Ann"}})
        );
        assert_eq!(document(&args("pause:often", None)), json!({}));
    }

    #[test]
    fn delay_flags_become_fields() {
        let args = RetryArgs {
            retry_policy: Some("002".into()),
            retry_backoff_cap: Some(Span::from_secs(7200)),
            retry_stages: vec![Span::from_secs(300), Span::from_secs(3600)],
            ..RetryArgs::default()
        };
        assert_eq!(
            document(&args),
            json!({"retry_policy": "002", "retry_backoff_cap_seconds": 7200,
                   "retry_stages": ["5m", "1h"]})
        );
    }
}
