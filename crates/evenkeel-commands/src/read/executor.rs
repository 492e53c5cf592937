//! Reads the executor of a job and its configuration.

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, TenantNo};
use serde_json::Value;

use super::fields::Fields;
use super::limits::EXECUTOR_CONFIG_BYTES_MAX;
use crate::ExecutorCheck;
use crate::fault::shown;

pub(super) fn read(
    fields: &mut Fields<'_>,
    tenant: TenantNo,
    about: &About,
    payload: &Value,
    executors: &dyn ExecutorCheck,
) -> Option<ExecutorSpec> {
    let faults_before = fields.faults.count();
    let about_url = about.url.as_deref();
    let config = fields.object("executor_config", EXECUTOR_CONFIG_BYTES_MAX).unwrap_or_default();
    let (known, catalog) = (executors.kinds(), executors.catalog());
    let named = fields.value("executor_type").is_some();
    let for_url = about_url.and(catalog.for_urls()).map(|(kind, _)| kind);
    let kind = match (fields.text("executor_type"), for_url) {
        // A job that follows a target is shown with the executor `none` until the target has a URL.
        (Some(ExecutorSpec::NONE), Some(kind)) => kind,
        (Some(kind), _) => catalog.canonical(kind),
        (None, _) if named => return None,
        (None, Some(kind)) => kind,
        // A job with a target needs no executor yet, because the URL of the target determines the
        // executor.
        (None, None) if about.target.is_some() => ExecutorSpec::NONE,
        (None, None) => {
            let for_urls = catalog.for_urls();
            let by_url = for_urls.map(|(kind, _)| format!("give a url for {kind}, or "));
            let by_url = by_url.unwrap_or_default();
            let message = format!("is missing; {by_url}name one of {}", known.join(", "));
            return fields.refuse("executor_type", message);
        }
    };
    if kind == ExecutorSpec::NONE && about.target.is_some() {
        return Some(ExecutorSpec { kind: kind.into(), config });
    }
    let declaration = catalog.get(kind);
    let config = match declaration.and_then(|declaration| declaration.start) {
        Some(start) => start.add(config, about_url),
        None => config,
    };
    if !known.iter().any(|known| known == kind) {
        let hint = declaration.and_then(|declaration| declaration.disabled_hint);
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        let message = format!("{} is not one of {}{hint}", shown(&kind.into()), known.join(", "));
        return fields.refuse("executor_type", message);
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
