//! Writes the lines of the attempt's log.

use evenkeel_outbound::reqwest::Url;

use crate::visit::Visit;

/// A log line about a visited page.
#[derive(Debug)]
pub(super) struct LogLine {
    head: String,
    url: Url,
    pub(super) what: String,
}

impl LogLine {
    pub(super) fn of(visit: &Visit) -> Self {
        let status = visit.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        let head = format!("{status} {} B {} ms", visit.bytes, visit.took.as_millis());
        Self { head, url: visit.entry.url.clone(), what: String::new() }
    }

    pub(super) fn text(&self) -> String {
        self.with(&self.what)
    }

    /// Returns the log line with another text.
    pub(super) fn with(&self, what: &str) -> String {
        format!("{} {} {what}", self.head, self.url)
    }
}
