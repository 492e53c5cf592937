//! Crawls sites politely.
//!
//! A [`Crawler`] is shared by all crawls of a node, because manners are owed by all of them
//! together: connections to a host, the time between requests, what its robots.txt says. A
//! [`Crawl`] is one of them. It knows no store and no scheduler: pages go to a [`PageArchive`], news
//! to a [`Listener`], and every request through an
//! [`Outbound`](evenkeel_outbound::Outbound), which keeps it away from inner addresses.
//!
//! What is new or has changed is decided by what people can read of a page: title, text and the
//! job's fields. A page that a server says has not changed is not fetched again, but its links are
//! followed; unless the job has begun to ask for other fields.

mod charset;
mod checkpoint;
mod clock;
mod config;
mod contents;
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
mod archive;
mod normal_url;
mod robots;
mod scope;
mod settings;
mod silence;
mod sitemap;
mod tally;
mod visit;

pub use config::{CONFIG_FIELDS, CrawlConfig, Fault};
pub use crawl::Crawl;
pub use crawler::{Crawler, Order};
pub use ending::{Ended, Ending};
pub use archive::{ArchiveError, Listener, PageArchive};
pub use scope::Reach;
pub use settings::CrawlerSettings;
pub use tally::Tally;
