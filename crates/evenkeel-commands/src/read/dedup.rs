//! Reads the deduplication key of a job, and the scope of the key.

use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, Span};

use super::fields::Fields;
use super::limits::DEDUP_WINDOW_SECONDS_MAX;

const SCOPES: [(&str, DedupScope); 3] = [
    ("pending", DedupScope::Pending),
    ("pending_or_running", DedupScope::PendingOrRunning),
    // The field `dedup_window_seconds` contains the length of the window.
    ("window", DedupScope::Window(Span::ZERO)),
];

pub(super) fn read(
    fields: &mut Fields<'_>,
    about: &About,
    executor: Option<&ExecutorSpec>,
    catalog: ExecutorCatalog,
) -> Option<Dedup> {
    let unique = fields.flag("unique");
    let chosen = fields.label("dedup_key");
    let scope = scope(fields);
    let by_target = chosen.is_none();
    let key = match (unique, chosen) {
        (Some(false), Some(_)) => {
            let message = "is false, but a dedup_key is given; leave out one of them";
            return fields.refuse("unique", message);
        }
        (_, Some(key)) => key,
        (Some(true), None) => match default_key(about, executor, catalog) {
            Some(key) => key,
            None => {
                let message = "true needs a key: give a dedup_key, or one of target, source_id and \
                               url, from which the key is made";
                return fields.refuse("unique", message);
            }
        },
        (None | Some(false), None) => {
            if fields.value("dedup_scope").is_some() {
                let message = "has no effect without \"unique\": true or a dedup_key";
                fields.fault("dedup_scope", message);
            }
            return None;
        }
    };
    Some(Dedup { key, by_target, scope: scope? })
}

/// Returns the default deduplication key: the target, or else the source, or else the URL of the
/// job or its executor.
fn default_key(
    about: &About,
    executor: Option<&ExecutorSpec>,
    catalog: ExecutorCatalog,
) -> Option<String> {
    let target = about.target.map(|number| format!("target:{number}"));
    let field_of_executor = || {
        let executor = executor?;
        let field = catalog.get(&executor.kind)?.dedup_field?;
        executor.config.get(field)?.as_str().map(str::to_owned)
    };
    target
        .or_else(|| about.source_id.clone())
        .or_else(|| about.url.clone())
        .or_else(field_of_executor)
}

/// Reads the scope of the deduplication key. Returns `None` if the fields of the scope are invalid.
fn scope(fields: &mut Fields<'_>) -> Option<DedupScope> {
    let is_given = fields.value("dedup_scope").is_some();
    let scope = fields.word("dedup_scope", &SCOPES);
    let has_window = fields.value("dedup_window_seconds").is_some();
    let window = fields.number("dedup_window_seconds", 1..=DEDUP_WINDOW_SECONDS_MAX);
    match scope {
        None if is_given => None,
        Some(DedupScope::Window(_)) if !has_window => {
            fields.refuse("dedup_window_seconds", "is needed with \"dedup_scope\": \"window\"")
        }
        Some(DedupScope::Window(_)) => window.map(|secs| DedupScope::Window(Span::from_secs(secs))),
        _ if has_window => {
            let message = "is for \"dedup_scope\": \"window\" only; leave it out";
            fields.refuse("dedup_window_seconds", message)
        }
        scope => Some(scope.unwrap_or_default()),
    }
}
