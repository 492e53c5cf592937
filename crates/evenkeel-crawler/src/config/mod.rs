//! The configuration of a crawl.

mod reader;
#[cfg(test)]
mod tests;

use std::time::Duration;

use evenkeel_core::executor::{ConfigFault, ConfigField, FieldKind, Fields};
use evenkeel_outbound::reqwest::Url;
use evenkeel_outbound::reqwest::header::HeaderValue;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::fields::Field;
use crate::scope::{Reach, Scope};
use crate::settings::CrawlerSettings;
use reader::Reader;

/// The version of the page parser. Increase this version when the parser changes, so that all
/// stored pages count as changed.
const PARSE_VERSION: u32 = 1;
const MIB: u64 = 1024 * 1024;

/// The configuration of a crawl. `docs/crawler.md` describes the fields.
#[derive(Clone, Debug)]
pub struct CrawlConfig {
    pub(crate) starts: Vec<Url>,
    pub(crate) scope: Scope,
    pub(crate) depth: u16,
    pub(crate) pages_max: u64,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) obey_robots: bool,
    pub(crate) delay: Duration,
    pub(crate) connections: usize,
    pub(crate) sitemaps: bool,
    pub(crate) page_bytes_max: usize,
    pub(crate) page_timeout: Duration,
    pub(crate) store_bytes_max: u64,
    pub(crate) fields: Vec<Field>,
    pub(crate) ndjson: bool,
    /// Identifies the version of the parser and the job's fields. The content hash of each page
    /// ends with `parse_version`.
    pub(crate) parse_version: [u8; 4],
    /// Identifies the crawl configuration. A checkpoint with another fingerprint is not used.
    pub(crate) fingerprint: u64,
}

pub const CONFIG_FIELDS: [ConfigField; 17] = [
    ConfigField::new("url", FieldKind::Url),
    ConfigField::new("start_urls", FieldKind::UrlList),
    ConfigField::public("scope"),
    ConfigField::public("depth"),
    ConfigField::public("max_pages"),
    ConfigField::public("include"),
    ConfigField::public("exclude"),
    ConfigField::public("user_agent"),
    ConfigField::public("obey_robots"),
    ConfigField::public("delay_ms"),
    ConfigField::public("connections"),
    ConfigField::public("sitemaps"),
    ConfigField::public("max_page_bytes"),
    ConfigField::public("page_timeout_ms"),
    ConfigField::public("max_store_mb"),
    ConfigField::public("fields"),
    ConfigField::public("ndjson"),
];

impl CrawlConfig {
    /// Reads a crawl configuration, and refuses values that are invalid or that the server's
    /// settings do not allow.
    pub fn read(config: &Value, settings: &CrawlerSettings) -> Result<Self, ConfigFault> {
        if config.is_null() {
            return Err(ConfigFault::new("", "must be an object"));
        }
        let reader = Reader(Fields::read(config, &CONFIG_FIELDS)?);
        let starts = reader.starts()?;
        let reach = match reader.0.text("scope")? {
            None | Some("host") => Reach::Host,
            Some("site") => Reach::Site,
            Some("prefix") => Reach::Prefix,
            Some(_) => return Err(ConfigFault::new("scope", "must be host, site or prefix")),
        };
        let scope =
            Scope::new(&starts, reach, reader.patterns("include")?, reader.patterns("exclude")?);
        let obey_robots = reader.0.flag("obey_robots")?.unwrap_or(true);
        if !obey_robots && !settings.may_ignore_robots {
            let message = "must be true: this server does not let jobs ignore robots.txt";
            return Err(ConfigFault::new("obey_robots", message));
        }
        let ndjson = reader.0.flag("ndjson")?.unwrap_or(false);
        if ndjson && settings.export_dir.is_none() {
            let message = "must be false: this server has no folder for exports";
            return Err(ConfigFault::new("ndjson", message));
        }
        let user_agent = reader.0.text("user_agent")?.map(|text| {
            HeaderValue::from_str(text)
                .ok()
                .filter(|_| !text.trim().is_empty() && text.len() <= 500)
                .ok_or_else(|| {
                    ConfigFault::new("user_agent", "must be 1 to 500 printable characters")
                })
        });
        let delay = Duration::from_millis(reader.number("delay_ms", 250, 0, 60_000)?);
        let digest: [u8; 32] = Sha256::digest(config.to_string().as_bytes()).into();
        let how = format!("{PARSE_VERSION} {}", config.get("fields").unwrap_or(&Value::Null));
        let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(how.as_bytes()).into();
        Ok(Self {
            starts,
            scope,
            depth: reader.number("depth", 2, 0, 100)? as u16,
            pages_max: reader.number("max_pages", 100, 1, 50_000)?,
            user_agent: user_agent.transpose()?,
            obey_robots,
            delay: delay.max(settings.delay_min),
            connections: reader.number("connections", 2, 1, 2)? as usize,
            sitemaps: reader.0.flag("sitemaps")?.unwrap_or(true),
            page_bytes_max: reader.number("max_page_bytes", 2 * MIB, 1024, 16 * MIB)? as usize,
            page_timeout: Duration::from_millis(
                reader.number("page_timeout_ms", 20_000, 100, 300_000)?,
            ),
            store_bytes_max: reader.number("max_store_mb", 50, 1, 10_000)? * MIB,
            fields: reader.fields()?,
            ndjson,
            parse_version: [a, b, c, d],
            fingerprint: crate::normal_url::first_eight(&digest),
        })
    }

    /// Returns the maximum number of bytes that the job's pages may use in the store.
    pub const fn store_bytes_max(&self) -> u64 {
        self.store_bytes_max
    }

    /// Returns the maximum number of requests of a crawl. Redirects and retries do not count as
    /// pages, so they need this separate limit.
    pub(crate) const fn requests_max(&self) -> u64 {
        3 * self.pages_max + 100
    }

    /// Returns the maximum number of queued URLs. The queue may hold more URLs than `max_pages`,
    /// because some queued pages turn out to be forbidden or copies.
    pub(crate) fn queue_max(&self) -> usize {
        (self.pages_max as usize * 20).clamp(1000, 100_000)
    }
}
