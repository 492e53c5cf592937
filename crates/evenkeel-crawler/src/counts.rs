//! The counters of a crawl.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlCounts {
    /// Pages that were requested and processed, whatever the result.
    pub visited: u64,
    /// Requests for pages, without those for robots.txt and sitemaps.
    pub requests: u64,
    /// Pages that were read or found unchanged.
    pub crawled: u64,
    /// New or changed pages that were saved.
    pub indexed: u64,
    /// Pages that have the same content as another page.
    pub copies: u64,
    /// Pages that were left out because of robots directives, type or size.
    pub skipped: u64,
    /// Pages that do not exist any more.
    pub gone: u64,
    /// Pages that could not be fetched.
    pub failed: u64,
    /// Pages that did not fit into `max_store_mb`.
    pub no_room: u64,
    /// Start URLs that were read.
    pub starts_read: u64,
    /// Start URLs that could not be read.
    pub starts_lost: u64,
    /// Links that were ignored because their URL looks like one of an endless series.
    pub traps: u64,
}
