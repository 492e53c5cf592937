//! What the server says of all crawls.

use std::path::PathBuf;
use std::time::Duration;

/// What the server says of all crawls.
#[derive(Clone, Debug)]
pub struct CrawlerSettings {
    /// The name that robots.txt knows us by.
    pub robots_name: String,
    /// May jobs ignore robots.txt?
    pub may_ignore_robots: bool,
    /// The shortest wait between requests to a host, whatever jobs say.
    pub delay_min: Duration,
    /// Connections to a host at once, over all crawls of this node.
    pub connections_per_host: usize,
    /// Where NDJSON files go; without it, jobs can't ask for any.
    pub export_dir: Option<PathBuf>,
    /// The first wait after a host was in trouble; it doubles, up to 32 times as much.
    pub trouble_pause: Duration,
    /// The longest wait that a host can impose by `Retry-After`.
    pub trouble_pause_max: Duration,
    /// Crawls of this node at once; more wait.
    pub crawls_max: usize,
    /// All sitemaps of a crawl are read within this time; what comes later is left out.
    pub sitemaps_time_max: Duration,
    /// Bytes of a checkpoint at most.
    pub checkpoint_bytes_max: usize,
    /// Checkpoints are at least this far apart, and large ones further.
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
            trouble_pause: Duration::from_secs(1),
            trouble_pause_max: Duration::from_secs(300),
            crawls_max: 64,
            sitemaps_time_max: Duration::from_secs(60),
            checkpoint_bytes_max: 4 * 1024 * 1024,
            checkpoint_every: Duration::from_secs(2),
        }
    }
}
