//! The counters of a crawl.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlCounts {
    /// Number of pages that count against `max_pages`, including queued pages of given-up hosts.
    pub visited: u64,
    /// Number of requests for pages, not counting requests for robots.txt and sitemaps.
    pub requests: u64,
    /// Number of pages that were read or found unchanged.
    pub crawled: u64,
    /// Number of new or changed pages that were saved.
    pub indexed: u64,
    /// Number of pages that were not kept because they are copies of another page.
    pub copies: u64,
    /// Number of pages that were left out, for example because of robots.txt, type or size.
    pub skipped: u64,
    /// Number of pages that do not exist (status 404 or 410).
    pub gone: u64,
    /// Number of pages that could not be fetched.
    pub failed: u64,
    /// Number of pages that did not fit into `max_store_mb`.
    pub no_room: u64,
    pub starts_read: u64,
    /// Number of start URLs that could not be read.
    pub starts_lost: u64,
    /// Number of links that were ignored because their URL looks like one of an endless series.
    pub traps: u64,
}
