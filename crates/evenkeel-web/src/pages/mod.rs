//! One file per page.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod at_risk;
pub(crate) mod audit;
pub(crate) mod balance;
pub(crate) mod crawled;
pub(crate) mod dead_letters;
pub(crate) mod failures;
pub(crate) mod job;
mod job_field_list;
mod job_fields;
mod job_filter;
pub(crate) mod job_form;
mod job_history;
mod job_json;
mod job_preview;
pub(crate) mod jobs;
pub(crate) mod lists;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod pauses;
pub(crate) mod queue;
pub(crate) mod run;
mod run_strip;
pub(crate) mod runs;
pub(crate) mod saved_views;
pub(crate) mod sign_in;
pub(crate) mod targets;
pub(crate) mod timeline;
mod typed_times;

use maud::{Markup, html};
use serde_json::Value;

use crate::backend::escape;

/// Items per page of a list.
pub(crate) const PAGE_ITEMS: usize = 50;

/// The items of a list in an answer of the API.
pub(crate) fn items<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or(&[], Vec::as_slice)
}

/// Returns how many items a list has, "about" if the API only estimates it.
pub(crate) fn total(answer: &Value) -> String {
    let about = if answer["total_is_estimate"] == true { "about " } else { "" };
    format!("{about}{}", answer["total"])
}

/// Returns how many items a list has with their noun, for example "1 job" or "about 3000 jobs".
pub(crate) fn counted(answer: &Value, noun: &str) -> String {
    let plural = if answer["total"] == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", total(answer))
}

/// Links to the first and the next page of a list. `query` has the other parameters. The page before
/// is where the browser's Back button leads, because each page has an address of its own.
pub(crate) fn next_page(answer: &Value, path: &str, query: &[(&str, &str)]) -> Markup {
    let shown = crate::zone::address();
    let (_, shown) = shown.split_once('?').unwrap_or_default();
    let is_first = !shown.split('&').any(|pair| pair.starts_with("cursor=") && pair != "cursor=");
    let next = answer["next_cursor"].as_str();
    if is_first && next.is_none() {
        return html! {};
    }
    html! {
        nav.pages aria-label="Pages of the list" {
            @if !is_first { a href=(lists::address(path, query)) rel="first" { "First page" } }
            @if let Some(cursor) = next {
                a href=(lists::address(&lists::address(path, query), &[("cursor", cursor)])) rel="next" { "Next page" }
            }
        }
    }
}

/// A link to a job.
pub(crate) fn job_link(id: &Value, name: &Value) -> Markup {
    let target = format!("/jobs/{}", escape(id.as_str().unwrap_or_default()));
    html! { a href=(target) { (crate::text::job_name(name, id)) } }
}
