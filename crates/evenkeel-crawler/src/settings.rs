//! The server's settings for all crawls.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct CrawlerSettings {
    /// The name of this crawler, by which it finds the rules in robots.txt that apply to it.
    pub robots_name: String,
    /// True if jobs may ignore robots.txt.
    pub may_ignore_robots: bool,
    /// The minimum delay between requests to a host, even if a job sets a shorter delay.
    pub delay_min: Duration,
    /// Maximum number of connections to a host, for all crawls of the node together.
    pub connections_per_host: usize,
    /// The directory for export files; with `None`, jobs cannot request an export.
    pub export_dir: Option<PathBuf>,
    /// The first pause after an error of a host. Each further error doubles the pause, up to 32
    /// times this value.
    pub error_pause: Duration,
    /// The maximum pause after an error of a host, even if the host requests a longer pause with
    /// `Retry-After`.
    pub error_pause_max: Duration,
    /// Maximum number of crawls that run on the node at the same time; further crawls wait.
    pub crawls_max: usize,
    /// Maximum time for reading all sitemaps of a crawl; sitemaps that were not read by then are
    /// skipped.
    pub sitemaps_time_max: Duration,
    pub checkpoint_bytes_max: usize,
    /// The minimum time between checkpoints of a crawl. After a large checkpoint, or one that was
    /// slow to save, the time until the next checkpoint is longer.
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
