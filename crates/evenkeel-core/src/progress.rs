//! The progress that a running attempt reports.

use serde::{Deserialize, Serialize};

/// The progress of an attempt; all fields are optional because executors report different values.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(default, rename = "items_crawled", skip_serializing_if = "Option::is_none")]
    pub items_processed: Option<i64>,
    #[serde(default, rename = "items_indexed", skip_serializing_if = "Option::is_none")]
    pub items_saved: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Longer messages are cut.
pub const MESSAGE_CHARS_MAX: usize = 500;

impl Progress {
    /// Replaces the progress fields that are set in `news`.
    pub fn update(&mut self, news: Self) {
        let Self { done, total, items_processed, items_saved, message } = news;
        self.done = done.or(self.done);
        self.total = total.or(self.total);
        self.items_processed = items_processed.or(self.items_processed);
        self.items_saved = items_saved.or(self.items_saved);
        if let Some(message) = message {
            let fits = |c: &char| !c.is_control();
            self.message = Some(message.chars().filter(fits).take(MESSAGE_CHARS_MAX).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_replace_only_what_they_mention() {
        let mut progress = Progress { done: Some(1), total: Some(9), ..Progress::default() };
        let message = Some(format!("a\0b\n{}", "x".repeat(2 * MESSAGE_CHARS_MAX)));
        progress.update(Progress { done: Some(2), message, ..Progress::default() });
        assert_eq!((progress.done, progress.total), (Some(2), Some(9)));
        let message = progress.message.unwrap();
        assert!(message.starts_with("abx"));
        assert_eq!(message.len(), MESSAGE_CHARS_MAX);
    }
}
