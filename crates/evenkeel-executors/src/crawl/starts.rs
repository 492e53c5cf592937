//! Templates in the places where a crawl starts.

use evenkeel_core::lease::Fence;
use evenkeel_core::{JobNo, RunKey, Timestamp};
use serde_json::Value;

use crate::template::{Escape, Template, Values};
use crate::{ConfigFault, Invocation};

/// The configuration of a run, with its values filled in.
pub(super) fn fill(invocation: &Invocation) -> Result<Value, ConfigFault> {
    let definition = &invocation.definition;
    let values =
        Values { key: invocation.key, fence: invocation.fence, payload: &definition.payload };
    fill_with(&definition.executor.config, &values)
}

/// The same as it could be for some run, to be checked.
pub(super) fn rehearse(config: &Value, payload: &Value) -> Result<Value, ConfigFault> {
    let key = RunKey::regular(JobNo(1), Timestamp::MIN);
    fill_with(config, &Values { key, fence: Fence(1), payload })
}

fn fill_with(config: &Value, values: &Values<'_>) -> Result<Value, ConfigFault> {
    let mut config = config.clone();
    if let Some(url) = config.get_mut("url") {
        fill_one("url", url, values)?;
    }
    if let Some(Value::Array(starts)) = config.get_mut("start_urls") {
        for (at, url) in starts.iter_mut().enumerate() {
            fill_one(&format!("start_urls.{at}"), url, values)?;
        }
    }
    Ok(config)
}

fn fill_one(field: &str, value: &mut Value, values: &Values<'_>) -> Result<(), ConfigFault> {
    if let Value::String(text) = value
        && text.contains("{{")
    {
        let filled = Template::parse(text).and_then(|t| t.fill(values, Escape::Url));
        *text = filled.map_err(|message| ConfigFault::new(field, message))?;
    }
    Ok(())
}
