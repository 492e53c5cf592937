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
pub(crate) mod runs;
pub(crate) mod sign_in;
pub(crate) mod targets;

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

/// A link to the next page of a list, if there is one. `query` has the other parameters.
pub(crate) fn next_page(answer: &Value, path: &str, query: &[(&str, &str)]) -> Markup {
    let Some(cursor) = answer["next_cursor"].as_str() else { return html! {} };
    let mut target = format!("{path}?cursor={}", escape(cursor));
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        target.push_str(&format!("&{name}={}", escape(value)));
    }
    html! { p { a href=(target) rel="next" { "Next page" } } }
}

/// A link to a job.
pub(crate) fn job_link(id: &Value, name: &Value) -> Markup {
    let target = format!("/jobs/{}", escape(id.as_str().unwrap_or_default()));
    html! { a href=(target) { (crate::text::job_name(name, id)) } }
}
