//! What runs a job.

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, TenantNo};
use serde_json::{Map, Value};

use super::about::{fits, object};
use super::fields::Fields;
use super::limits::{EXECUTOR_CONFIG_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::ExecutorCheck;
use crate::fault::shown;

/// The executor of a job that names none and has an address.
pub(crate) const CRAWL: &str = "crawl";

pub(super) fn read(
    fields: &mut Fields<'_>,
    tenant: TenantNo,
    about: &About,
    payload: &Value,
    executors: &dyn ExecutorCheck,
) -> Option<ExecutorSpec> {
    let faults_before = fields.faults.count();
    let about_url = about.url.as_deref();
    let config = object(fields, "executor_config", EXECUTOR_CONFIG_BYTES_MAX);
    let known = executors.kinds();
    let named = fields.value("executor_type").is_some();
    let kind = match fields.text("executor_type") {
        // The word of another document for the same thing.
        Some("http_callback") => "http",
        // As one is shown that has none: it has, as soon as there is an address.
        Some(ExecutorSpec::NONE) if about_url.is_some() => CRAWL,
        Some(kind) => kind,
        None if named => return None,
        // What a source is there for.
        None if about_url.is_some() => CRAWL,
        // It may have one. If not, there is nothing to run until it has.
        None if about.target.is_some() => ExecutorSpec::NONE,
        None => {
            let message = format!(
                "is missing; give a url and the job is a crawl of it, or name one of {}",
                known.join(", "),
            );
            fields.fault("executor_type", message);
            return None;
        }
    };
    if kind == ExecutorSpec::NONE && about.target.is_some() {
        return Some(ExecutorSpec { kind: kind.into(), config });
    }
    let config = if kind == CRAWL { with_start(config, about_url) } else { config };
    if !known.iter().any(|known| known == kind) {
        let off = if kind == "shell" { "; shell is off unless the server enables it" } else { "" };
        let message = format!("{} is not one of {}{off}", shown(&kind.into()), known.join(", "));
        fields.fault("executor_type", message);
        return None;
    }
    if fields.faults.count() > faults_before {
        return None;
    }
    match executors.check(tenant, kind, &config, payload) {
        Ok(()) => Some(ExecutorSpec { kind: kind.into(), config }),
        Err((field, message)) => {
            fields.faults.add(field, message);
            None
        }
    }
}

/// A crawl that is not told where to start starts at what the job is about.
pub(crate) fn with_start(config: Value, url: Option<&str>) -> Value {
    let mut fields = match config {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let told = fields.contains_key("url") || fields.contains_key("start_urls");
    if let (false, Some(url)) = (told, url) {
        fields.insert("url".into(), url.into());
    }
    Value::Object(fields)
}

/// Whatever the executor is to pass on.
pub(super) fn payload(fields: &mut Fields<'_>) -> Value {
    match fields.value("payload") {
        Some(value) if fits(fields, "payload", value, PAYLOAD_BYTES_MAX) => value.clone(),
        _ => Value::Null,
    }
}
