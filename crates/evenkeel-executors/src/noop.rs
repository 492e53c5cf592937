//! The executor that does nothing.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::config::Fields;
use crate::{ConfigFault, Executor, Invocation, Report, interrupted};

/// Does nothing, at once: for measuring, for demonstrations, for tests.
///
/// `{"sleep_ms": 250}` takes that long, a day at most; `{"fail": "message"}` fails with it.
#[derive(Copy, Clone, Default, Debug)]
pub struct NoopExecutor;

const SLEEP_MS_MAX: u64 = 24 * 3600 * 1000;

#[derive(Default)]
struct NoopConfig<'a> {
    sleep: Duration,
    fail: Option<&'a str>,
}

impl<'a> NoopConfig<'a> {
    fn parse(config: &'a Value) -> Result<Self, ConfigFault> {
        // The engine is measured with this executor: the usual case costs nothing.
        if config.is_null() {
            return Ok(Self::default());
        }
        let fields = Fields::read(config, &["sleep_ms", "fail"])?;
        let sleep_ms = match fields.get("sleep_ms") {
            None => 0,
            Some(value) => value.as_u64().filter(|ms| *ms <= SLEEP_MS_MAX).ok_or_else(|| {
                let message = format!("must be a whole number from 0 to {SLEEP_MS_MAX}");
                ConfigFault::new("sleep_ms", message)
            })?,
        };
        Ok(Self { sleep: Duration::from_millis(sleep_ms), fail: fields.text("fail")? })
    }
}

#[async_trait]
impl Executor for NoopExecutor {
    fn kind(&self) -> &'static str {
        "noop"
    }

    fn check(&self, config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        NoopConfig::parse(config).map(drop)
    }

    async fn run(&self, mut invocation: Invocation) -> Report {
        let config = match NoopConfig::parse(&invocation.definition.executor.config) {
            Ok(config) => config,
            Err(fault) => return Report::failed(fault.to_string()),
        };
        if !config.sleep.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(config.sleep) => {}
                reason = interrupted(&invocation.cancel, &mut invocation.lease) => {
                    return Report::cancelled(reason);
                }
            }
        }
        config.fail.map_or_else(Report::completed, Report::failed)
    }
}
