//! That a job is not to be there twice.

use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, Span};

use super::about::label;
use super::fields::Fields;
use super::limits::DEDUP_WINDOW_SECONDS_MAX;

/// What a document may say in place of the length of a window.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Word {
    Pending,
    PendingOrRunning,
    Window,
}

const WORDS: [(&str, Word); 3] = [
    ("pending", Word::Pending),
    ("pending_or_running", Word::PendingOrRunning),
    ("window", Word::Window),
];

pub(super) fn read(
    fields: &mut Fields<'_>,
    about: &About,
    executor: Option<&ExecutorSpec>,
) -> Option<Dedup> {
    let unique = fields.flag("unique");
    let chosen = label(fields, "dedup_key");
    let scope = scope(fields);
    let by_target = chosen.is_none();
    let key = match (unique, chosen) {
        (Some(false), Some(_)) => {
            let message = "is false, but a dedup_key is given; leave out one of them";
            fields.fault("unique", message);
            return None;
        }
        (_, Some(key)) => key,
        (Some(true), None) => match target_of(about, executor) {
            Some(key) => key,
            None => {
                let message = "needs something to tell the job by: give a dedup_key, or say what it \
                               is about by target, source_id or url";
                fields.fault("unique", message);
                return None;
            }
        },
        (None | Some(false), None) => {
            if fields.value("dedup_scope").is_some() {
                let message = "says nothing without \"unique\": true or a dedup_key";
                fields.fault("dedup_scope", message);
            }
            return None;
        }
    };
    Some(Dedup { key, by_target, scope: scope? })
}

/// What a job is about, as a key: what it says, or else where its executor goes.
fn target_of(about: &About, executor: Option<&ExecutorSpec>) -> Option<String> {
    let target = about.target.map(|number| format!("target:{number}"));
    let url = || executor?.config.get("url")?.as_str().map(str::to_owned);
    target.or_else(|| about.source_id.clone()).or_else(|| about.url.clone()).or_else(url)
}

/// `None` if something is wrong with it.
fn scope(fields: &mut Fields<'_>) -> Option<DedupScope> {
    let is_said = fields.value("dedup_scope").is_some();
    let word = fields.word("dedup_scope", &WORDS);
    let is_long = fields.value("dedup_window_seconds").is_some();
    let window = fields.number("dedup_window_seconds", 1..=DEDUP_WINDOW_SECONDS_MAX);
    match word {
        None if is_said => None,
        Some(Word::Window) if !is_long => {
            fields.fault("dedup_window_seconds", "is needed with \"dedup_scope\": \"window\"");
            None
        }
        Some(Word::Window) => window.map(|secs| DedupScope::Window(Span::from_secs(secs))),
        None | Some(Word::Pending | Word::PendingOrRunning) if is_long => {
            let message = "goes with \"dedup_scope\": \"window\" only";
            fields.fault("dedup_window_seconds", message);
            None
        }
        Some(Word::PendingOrRunning) => Some(DedupScope::PendingOrRunning),
        None | Some(Word::Pending) => Some(DedupScope::Pending),
    }
}
