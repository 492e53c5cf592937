//! A polite web crawler, independent of the store and the scheduler.
//!
//! All crawls of a node share one [`Crawler`], because the limits per host (connections, delays,
//! robots.txt) apply to all crawls together. A [`Crawl`] saves pages in a [`PageArchive`], reports
//! to a [`Listener`], and makes all requests through an [`Outbound`](evenkeel_outbound::Outbound),
//! which refuses private addresses.
//!
//! A page counts as changed if its title, text or extracted fields differ from the stored version.
//! If the server reports a page as unchanged, the crawl does not read the page again, but follows
//! its stored links. If the job's fields have changed, the crawl reads all pages again.
//!
//! - `crawl` runs a crawl, with `frontier` (the queue), `contents` (which pages are copies) and
//!   `checkpoint`.
//! - `visit`, `fetch` and `extract` read one page.
//! - `hosts`, `host_robots`, `robots` and `sitemap` apply the limits and rules of hosts, and read
//!   their sitemaps.
//! - `config`, `scope` and `fields` hold the configuration that a job sets.

mod archive;
mod charset;
mod checkpoint;
mod clock;
mod config;
mod contents;
mod counts;
mod crawl;
mod crawler;
mod ending;
mod entry;
mod export;
mod extract;
mod fetch;
mod fields;
mod frontier;
mod glob;
mod host_robots;
mod hosts;
mod normal_url;
mod robots;
mod scope;
mod settings;
mod silence;
mod sitemap;
mod visit;

pub use archive::{ArchiveError, Listener, PageArchive};
pub use config::{CONFIG_FIELDS, CrawlConfig};
pub use counts::CrawlCounts;
pub use crawl::Crawl;
pub use crawler::{CrawlRequest, Crawler};
pub use ending::{Ended, Ending};
pub use scope::Reach;
pub use settings::CrawlerSettings;
