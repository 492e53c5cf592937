//! What a job says of its crawl.

use std::time::Duration;

use evenkeel_outbound::reqwest::Url;
use evenkeel_outbound::reqwest::header::HeaderValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::fields::{FIELDS_MAX, Field};
use crate::normal_url::{URL_CHARS_MAX, normalise};
use crate::scope::{Pattern, Reach, Scope};
use crate::settings::CrawlerSettings;

const STARTS_MAX: usize = 100;
const PATTERNS_MAX: usize = 100;
const PATTERN_CHARS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 100;
const MIB: u64 = 1024 * 1024;

/// A configuration that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Fault {
    /// The field to blame; empty for the whole of it.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Fault {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// What a job says of its crawl.
///
/// | field | default | bounds |
/// |---|---|---|
/// | `url` or `start_urls` | required | http or https; at most 100 |
/// | `scope` | `"host"` | `host`, `site`, `prefix`; see [`Reach`] |
/// | `depth` | 2 | links from the start, 0 to 100 |
/// | `max_pages` | 100 | 1 to 50,000 |
/// | `include`, `exclude` | none | lists of patterns in which `*` stands for anything, of whole URLs or, if they start with `/`, of path and query; starts are crawled whatever they say |
/// | `user_agent` | the server's | a header's value |
/// | `obey_robots` | true | false only if the server allows it |
/// | `delay_ms` | 250 | between requests to a host, 0 to 60,000; a longer crawl-delay wins |
/// | `connections` | 2 | per host, 1 or 2 |
/// | `sitemaps` | true | those of robots.txt and `/sitemap.xml` |
/// | `max_page_bytes` | 2 MiB | unpacked, 1 KiB to 16 MiB; larger pages are left out |
/// | `page_timeout_ms` | 20,000 | for a whole page, 100 to 300,000 |
/// | `max_store_mb` | 50 | room for the job's pages, 1 to 10,000 |
/// | `fields` | none | name to selector, or to `{selector, attribute, all}`; at most 50 |
/// | `ndjson` | false | a file with the new and changed pages, if the server has a folder for it |
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
    /// Tells configurations apart: a checkpoint of another one is of no use.
    pub(crate) fingerprint: u64,
}

const KNOWN: [&str; 17] = [
    "url",
    "start_urls",
    "scope",
    "depth",
    "max_pages",
    "include",
    "exclude",
    "user_agent",
    "obey_robots",
    "delay_ms",
    "connections",
    "sitemaps",
    "max_page_bytes",
    "page_timeout_ms",
    "max_store_mb",
    "fields",
    "ndjson",
];

impl CrawlConfig {
    /// Reads a configuration, and refuses what makes no sense or is not allowed here.
    pub fn read(config: &Value, settings: &CrawlerSettings) -> Result<Self, Fault> {
        let fields = config.as_object().ok_or_else(|| Fault::new("", "must be an object"))?;
        if let Some(key) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(Fault::new(key, format!("is not one of {}", KNOWN.join(", "))));
        }
        let reader = Reader(fields);
        let starts = reader.starts()?;
        let reach = match reader.text("scope")? {
            None | Some("host") => Reach::Host,
            Some("site") => Reach::Site,
            Some("prefix") => Reach::Prefix,
            Some(_) => return Err(Fault::new("scope", "must be host, site or prefix")),
        };
        let scope =
            Scope::new(&starts, reach, reader.patterns("include")?, reader.patterns("exclude")?);
        let obey_robots = reader.flag("obey_robots", true)?;
        if !obey_robots && !settings.may_ignore_robots {
            let message = "must be true: this server does not let jobs ignore robots.txt";
            return Err(Fault::new("obey_robots", message));
        }
        let ndjson = reader.flag("ndjson", false)?;
        if ndjson && settings.export_dir.is_none() {
            let message = "must be false: this server has no folder for exports";
            return Err(Fault::new("ndjson", message));
        }
        let user_agent = reader.text("user_agent")?.map(|text| {
            HeaderValue::from_str(text)
                .ok()
                .filter(|_| !text.trim().is_empty() && text.len() <= 500)
                .ok_or_else(|| Fault::new("user_agent", "must be 1 to 500 printable characters"))
        });
        let delay = Duration::from_millis(reader.number("delay_ms", 250, 0, 60_000)?);
        let digest: [u8; 32] = Sha256::digest(config.to_string().as_bytes()).into();
        Ok(Self {
            starts,
            scope,
            depth: reader.number("depth", 2, 0, 100)? as u16,
            pages_max: reader.number("max_pages", 100, 1, 50_000)?,
            user_agent: user_agent.transpose()?,
            obey_robots,
            delay: delay.max(settings.delay_min),
            connections: reader.number("connections", 2, 1, 2)? as usize,
            sitemaps: reader.flag("sitemaps", true)?,
            page_bytes_max: reader.number("max_page_bytes", 2 * MIB, 1024, 16 * MIB)? as usize,
            page_timeout: Duration::from_millis(reader.number(
                "page_timeout_ms",
                20_000,
                100,
                300_000,
            )?),
            store_bytes_max: reader.number("max_store_mb", 50, 1, 10_000)? * MIB,
            fields: reader.fields()?,
            ndjson,
            fingerprint: crate::normal_url::first_eight(&digest),
        })
    }

    /// The room its pages may take.
    pub const fn store_bytes_max(&self) -> u64 {
        self.store_bytes_max
    }

    /// How far it goes.
    pub(crate) const fn queue_max(&self) -> usize {
        // Some of what is queued turns out to be forbidden, or the same as another page.
        let roomy = self.pages_max as usize * 20;
        if roomy < 1000 {
            1000
        } else if roomy > 100_000 {
            100_000
        } else {
            roomy
        }
    }
}

/// Reads fields, with the blame on the right one.
struct Reader<'a>(&'a Map<String, Value>);

impl<'a> Reader<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| Fault::new(name, "must be a string")))
            .transpose()
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_bool().ok_or_else(|| Fault::new(name, "must be true or false"))
        })
    }

    fn number(&self, name: &str, default: u64, min: u64, max: u64) -> Result<u64, Fault> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_u64().filter(|number| (min..=max).contains(number)).ok_or_else(|| {
                Fault::new(name, format!("must be a whole number from {min} to {max}, not {value}"))
            })
        })
    }

    fn list(&self, name: &str, count_max: usize) -> Result<Vec<(String, &'a str)>, Fault> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let wrong = || Fault::new(name, format!("must be a list of at most {count_max} strings"));
        let list = value.as_array().filter(|list| list.len() <= count_max).ok_or_else(wrong)?;
        let item = |(at, item): (usize, &'a Value)| {
            let place = format!("{name}.{at}");
            match item.as_str() {
                Some(text) => Ok((place, text)),
                None => Err(Fault::new(place, "must be a string")),
            }
        };
        list.iter().enumerate().map(item).collect()
    }

    fn starts(&self) -> Result<Vec<Url>, Fault> {
        let mut texts = self.list("start_urls", STARTS_MAX)?;
        match self.text("url")? {
            Some(url) => texts.insert(0, ("url".into(), url)),
            None if texts.is_empty() => {
                return Err(Fault::new(
                    "url",
                    "is missing: say where to start, here or in start_urls",
                ));
            }
            None => {}
        }
        let mut starts: Vec<Url> = Vec::new();
        for (place, text) in texts {
            let start = Url::parse(text.trim())
                .map_err(|error| Fault::new(&place, format!("{text:?} is not a URL: {error}")))?;
            let start = normalise(start).ok_or_else(|| {
                let bound = format!("must be http or https, at most {URL_CHARS_MAX} characters");
                Fault::new(&place, bound)
            })?;
            if !starts.contains(&start) {
                starts.push(start);
            }
        }
        Ok(starts)
    }

    fn patterns(&self, name: &str) -> Result<Vec<Pattern>, Fault> {
        let pattern = |(place, text): (String, &str)| {
            if text.is_empty() || text.len() > PATTERN_CHARS_MAX {
                let bound = format!("must have 1 to {PATTERN_CHARS_MAX} characters");
                return Err(Fault::new(place, bound));
            }
            Ok(Pattern::new(text))
        };
        self.list(name, PATTERNS_MAX)?.into_iter().map(pattern).collect()
    }

    fn fields(&self) -> Result<Vec<Field>, Fault> {
        let Some(value) = self.get("fields") else { return Ok(Vec::new()) };
        let wrong = || Fault::new("fields", format!("must be an object of at most {FIELDS_MAX}"));
        let map = value.as_object().filter(|map| map.len() <= FIELDS_MAX).ok_or_else(wrong)?;
        map.iter().map(|(name, value)| read_field(name, value)).collect()
    }
}

fn read_field(name: &str, value: &Value) -> Result<Field, Fault> {
    let place = format!("fields.{name}");
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        let bound = format!("a field's name must have 1 to {NAME_CHARS_MAX} characters");
        return Err(Fault::new("fields", bound));
    }
    let (selector, attribute, all) = match value {
        Value::String(selector) => (selector.as_str(), None, false),
        Value::Object(map) => {
            let known = ["selector", "attribute", "all"];
            if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
                let message = "is not one of selector, attribute, all";
                return Err(Fault::new(format!("{place}.{key}"), message));
            }
            let reader = Reader(map);
            let inner =
                |fault: Fault| Fault::new(format!("{place}.{}", fault.field), fault.message);
            let selector = reader
                .text("selector")
                .map_err(inner)?
                .ok_or_else(|| Fault::new(format!("{place}.selector"), "is missing"))?;
            let attribute = reader.text("attribute").map_err(inner)?;
            (selector, attribute, reader.flag("all", false).map_err(inner)?)
        }
        _ => return Err(Fault::new(place, "must be a selector or an object with one")),
    };
    Field::new(name, selector, attribute, all).map_err(|message| Fault::new(place, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: Value) -> Result<CrawlConfig, Fault> {
        CrawlConfig::read(&config, &CrawlerSettings::default())
    }

    #[test]
    fn a_url_is_enough() {
        let config = read(json!({"url": "https://Example.com"})).unwrap();
        assert_eq!(config.starts[0].as_str(), "https://example.com/");
        assert_eq!((config.depth, config.pages_max, config.connections), (2, 100, 2));
        assert_eq!(config.delay, Duration::from_millis(250));
        assert!(config.obey_robots && config.sitemaps && !config.ndjson);
    }

    #[test]
    fn bad_fields_are_named() {
        let url = "http://a/";
        for (config, field) in [
            (json!(null), ""),
            (json!([]), ""),
            (json!({}), "url"),
            (json!({"url": 1}), "url"),
            (json!({"url": "nonsense"}), "url"),
            (json!({"url": "ftp://a/"}), "url"),
            (json!({"start_urls": "http://a/"}), "start_urls"),
            (json!({"start_urls": [url, "x"]}), "start_urls.1"),
            (json!({"start_urls": [url, 7]}), "start_urls.1"),
            (json!({"url": url, "scope": "world"}), "scope"),
            (json!({"url": url, "depth": -1}), "depth"),
            (json!({"url": url, "depth": 101}), "depth"),
            (json!({"url": url, "max_pages": 0}), "max_pages"),
            (json!({"url": url, "max_pages": 50_001}), "max_pages"),
            (json!({"url": url, "max_pages": 1.5}), "max_pages"),
            (json!({"url": url, "include": ["a", ""]}), "include.1"),
            (json!({"url": url, "exclude": ["x".repeat(501)]}), "exclude.0"),
            (json!({"url": url, "user_agent": "a\nb"}), "user_agent"),
            (json!({"url": url, "user_agent": " "}), "user_agent"),
            (json!({"url": url, "obey_robots": false}), "obey_robots"),
            (json!({"url": url, "obey_robots": "no"}), "obey_robots"),
            (json!({"url": url, "delay_ms": 60_001}), "delay_ms"),
            (json!({"url": url, "connections": 3}), "connections"),
            (json!({"url": url, "sitemaps": 1}), "sitemaps"),
            (json!({"url": url, "max_page_bytes": 1}), "max_page_bytes"),
            (json!({"url": url, "page_timeout_ms": 1}), "page_timeout_ms"),
            (json!({"url": url, "max_store_mb": 0}), "max_store_mb"),
            (json!({"url": url, "fields": []}), "fields"),
            (json!({"url": url, "fields": {"": "p"}}), "fields"),
            (json!({"url": url, "fields": {"x": "p["}}), "fields.x"),
            (json!({"url": url, "fields": {"x": {}}}), "fields.x.selector"),
            (json!({"url": url, "fields": {"x": {"selector": "p", "al": 1}}}), "fields.x.al"),
            (json!({"url": url, "fields": {"x": {"selector": "p", "all": 1}}}), "fields.x.all"),
            (json!({"url": url, "ndjson": true}), "ndjson"),
            (json!({"url": url, "dept": 1}), "dept"),
        ] {
            assert_eq!(read(config.clone()).unwrap_err().field, field, "{config}");
        }
    }

    #[test]
    fn the_server_decides_what_jobs_may() {
        let settings = CrawlerSettings {
            may_ignore_robots: true,
            delay_min: Duration::from_secs(1),
            export_dir: Some("/tmp".into()),
            ..CrawlerSettings::default()
        };
        let config =
            json!({"url": "http://a/", "obey_robots": false, "ndjson": true, "delay_ms": 0});
        let config = CrawlConfig::read(&config, &settings).unwrap();
        assert!(!config.obey_robots && config.ndjson);
        assert_eq!(config.delay, Duration::from_secs(1));
    }
}
