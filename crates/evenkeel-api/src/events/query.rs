//! Which events somebody wants to hear of, and from when on.

use axum::http::HeaderMap;
use evenkeel_store::{EventKind, EventNo};
use utoipa::IntoParams;

use crate::params::Params;

/// Which events.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only these kinds, separated by commas; `job.*` and `run.*` stand for all of a sort.
    #[param(example = "job.*,run.ended")]
    kinds: Option<String>,
    /// Only those about this job (its id or name).
    job_id: Option<String>,
    /// Go on after the event with this id. The header `Last-Event-ID` does the same, and wins.
    after: Option<String>,
}

/// What a client wants to be sent.
pub(crate) struct Wanted {
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) job: Option<String>,
    pub(crate) after: Option<EventNo>,
}

impl EventQuery {
    /// Takes the parameters, and the place to go on from.
    /// The job is as the client wrote it: looking it up needs the store.
    pub(crate) fn take(params: &mut Params, headers: &HeaderMap) -> Wanted {
        let query = Self {
            kinds: params.text("kinds"),
            job_id: params.text("job_id"),
            after: params.text("after"),
        };
        let kinds = query.kinds.map(|text| read_kinds(&text, params)).unwrap_or_default();
        let after = query.after.and_then(|text| read_place("after", &text, params));
        // A browser that comes back sends both: the address as it was, and how far it came.
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
        let last = last.filter(|text| !text.is_empty());
        let last = last.and_then(|text| read_place("Last-Event-ID", text, params));
        Wanted { kinds, job: query.job_id, after: last.or(after) }
    }
}

fn read_place(name: &str, text: &str, params: &mut Params) -> Option<EventNo> {
    let place = text.parse().ok().filter(|no| *no >= 0).map(EventNo);
    if place.is_none() {
        params.fault(name, "is not the id of an event; send one as it came");
    }
    place
}

fn read_kinds(text: &str, params: &mut Params) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let before = kinds.len();
        let sort = word.strip_suffix('*').filter(|sort| sort.ends_with('.'));
        kinds.extend(EventKind::ALL.into_iter().filter(|kind| match sort {
            Some(sort) => kind.as_str().starts_with(sort),
            None => kind.as_str() == word,
        }));
        if kinds.len() == before {
            let known = EventKind::ALL.map(EventKind::as_str).join(", ");
            params.fault("kinds", format!("{word:?} is no kind of event; there are {known}"));
        }
    }
    kinds
}
