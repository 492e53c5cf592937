//! The server's settings for all crawls.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct CrawlerSettings {
    /// The name in robots.txt to which our rules apply.
    pub robots_name: String,
    /// True if jobs may ignore robots.txt.
    pub may_ignore_robots: bool,
    /// The shortest delay between requests to a host, whatever jobs set.
    pub delay_min: Duration,
    /// Connections to a host, for all crawls of the node together.
    pub connections_per_host: usize,
    /// The directory for export files; without it, jobs cannot request any.
    pub export_dir: Option<PathBuf>,
    /// The first pause after an error of a host. It doubles up to 32 times the value.
    pub error_pause: Duration,
    /// The longest pause that a host can request with `Retry-After`.
    pub error_pause_max: Duration,
    /// Concurrent crawls of the node; others wait.
    pub crawls_max: usize,
    /// Time limit for all sitemaps of a crawl; the rest is left out.
    pub sitemaps_time_max: Duration,
    pub checkpoint_bytes_max: usize,
    /// The shortest time between checkpoints. Large ones are further apart.
    pub checkpoint_every: Duration,
}

impl Default for CrawlerSettings {
    fn default() -> Self {
        Self {
            robots_name: "evenkeel".into(),
            may_ignore_robots: false,
            delay_min: Duration::ZERO,
            connections_per_host: 2,
            export_dir: None,
            error_pause: Duration::from_secs(1),
            error_pause_max: Duration::from_secs(300),
            crawls_max: 64,
            sitemaps_time_max: Duration::from_secs(60),
            checkpoint_bytes_max: 4 * 1024 * 1024,
            checkpoint_every: Duration::from_secs(2),
        }
    }
}
