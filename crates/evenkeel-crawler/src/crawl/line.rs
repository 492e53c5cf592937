//! Lines of the log.

use evenkeel_outbound::reqwest::Url;

use crate::visit::Visit;

/// A line of the log.
#[derive(Debug)]
pub(super) struct Line {
    head: String,
    url: Url,
    pub(super) what: String,
}

impl Line {
    pub(super) fn of(visit: &Visit) -> Self {
        let status = visit.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        let head = format!("{status} {} B {} ms", visit.bytes, visit.took.as_millis());
        Self { head, url: visit.entry.url.clone(), what: String::new() }
    }

    pub(super) fn text(&self) -> String {
        self.saying(&self.what)
    }

    /// The same with other words.
    pub(super) fn saying(&self, what: &str) -> String {
        format!("{} {} {what}", self.head, self.url)
    }
}
