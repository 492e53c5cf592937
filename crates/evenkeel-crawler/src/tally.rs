//! What a crawl counts.

use serde::{Deserialize, Serialize};

/// What a crawl has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Pages that were asked for and dealt with, however that went.
    pub visited: u64,
    /// Requests that were made, robots.txt and sitemaps apart.
    pub requests: u64,
    /// Pages that were read, or found unchanged.
    pub crawled: u64,
    /// Pages that were new or had changed, and were kept.
    pub indexed: u64,
    /// Pages with the content of another one.
    pub copies: u64,
    /// Pages that were left out, by what they or robots.txt say, by their kind or by their size.
    pub skipped: u64,
    /// Pages that are gone.
    pub gone: u64,
    /// Pages that could not be got.
    pub failed: u64,
    /// Pages for which there was no room.
    pub no_room: u64,
    /// Starts that were read.
    pub starts_read: u64,
    /// Starts that were not.
    pub starts_lost: u64,
    /// Links that were left out because they look endless.
    pub traps: u64,
}
