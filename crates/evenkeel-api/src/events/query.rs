//! Query parameters of an event stream: the filters, and the position from which to resume.

use axum::http::HeaderMap;
use evenkeel_store::{EventKind, EventNo};
use utoipa::IntoParams;

use crate::params::Params;

/// Filters of the event stream.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Sends only events of these kinds, separated by commas. `job.*` and `run.*` match all kinds
    /// that start with `job.` or `run.`.
    #[param(example = "job.*,run.ended")]
    kinds: Option<String>,
    /// Sends only events about this job, given by id or name.
    job_id: Option<String>,
    /// Resumes the stream after the event with this id. The header `Last-Event-ID` has the same
    /// effect and takes precedence over `after`.
    after: Option<String>,
}

pub(crate) struct Wanted {
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) job: Option<String>,
    pub(crate) after: Option<EventNo>,
}

impl EventQuery {
    /// Reads the query parameters of an event stream. The job filter stays a text, because looking
    /// up the job needs the store.
    pub(crate) fn take(params: &mut Params, headers: &HeaderMap) -> Wanted {
        let query = Self {
            kinds: params.text("kinds"),
            job_id: params.text("job_id"),
            after: params.text("after"),
        };
        let kinds = query.kinds.map(|text| read_kinds(&text, params)).unwrap_or_default();
        let after = query.after.and_then(|text| read_place("after", &text, params));
        // A browser that reconnects sends the original URL (with `after`) and the id of the last
        // event that it received.
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
        let last = last.filter(|text| !text.is_empty());
        let last = last.and_then(|text| read_place("Last-Event-ID", text, params));
        Wanted { kinds, job: query.job_id, after: last.or(after) }
    }
}

fn read_place(name: &str, text: &str, params: &mut Params) -> Option<EventNo> {
    let place = text.parse().ok().filter(|no| *no >= 0).map(EventNo);
    if place.is_none() {
        params.fault(name, "is not the id of an event; send an id unchanged");
    }
    place
}

fn read_kinds(text: &str, params: &mut Params) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let before = kinds.len();
        let prefix = name.strip_suffix('*').filter(|prefix| prefix.ends_with('.'));
        kinds.extend(EventKind::ALL.into_iter().filter(|kind| match prefix {
            Some(prefix) => kind.as_str().starts_with(prefix),
            None => kind.as_str() == name,
        }));
        if kinds.len() == before {
            let known = EventKind::ALL.map(EventKind::as_str).join(", ");
            params.fault("kinds", format!("{name:?} is not an event kind; the kinds are {known}"));
        }
    }
    kinds
}
