//! Reads fields of a crawl configuration; each error names the invalid field.

use evenkeel_core::executor::{ConfigFault, Fields};
use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use crate::fields::{FIELDS_MAX, Field};
use crate::normal_url::{URL_CHARS_MAX, normalise};
use crate::scope::Pattern;

const STARTS_MAX: usize = 100;
const PATTERNS_MAX: usize = 100;
const PATTERN_CHARS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 100;

pub(super) struct Reader<'a>(pub(super) Fields<'a>);

impl<'a> Reader<'a> {
    pub(super) fn number(
        &self,
        name: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, ConfigFault> {
        Ok(self.0.number(name, min..=max)?.unwrap_or(default))
    }

    fn list(&self, name: &str, count_max: usize) -> Result<Vec<(String, &'a str)>, ConfigFault> {
        let Some(value) = self.0.get(name) else { return Ok(Vec::new()) };
        let wrong =
            || ConfigFault::new(name, format!("must be a list of at most {count_max} strings"));
        let list = value.as_array().filter(|list| list.len() <= count_max).ok_or_else(wrong)?;
        let item = |(at, item): (usize, &'a Value)| {
            let place = format!("{name}.{at}");
            match item.as_str() {
                Some(text) => Ok((place, text)),
                None => Err(ConfigFault::new(&place, "must be a string")),
            }
        };
        list.iter().enumerate().map(item).collect()
    }

    pub(super) fn starts(&self) -> Result<Vec<Url>, ConfigFault> {
        let mut texts = self.list("start_urls", STARTS_MAX)?;
        match self.0.text("url")? {
            Some(url) => texts.insert(0, ("url".into(), url)),
            None if texts.is_empty() => {
                return Err(ConfigFault::new(
                    "url",
                    "is missing: set the start URL here or in start_urls",
                ));
            }
            None => {}
        }
        let mut starts: Vec<Url> = Vec::new();
        for (place, text) in texts {
            let start = Url::parse(text.trim()).map_err(|error| {
                ConfigFault::new(&place, format!("{text:?} is not a URL: {error}"))
            })?;
            let start = normalise(start).ok_or_else(|| {
                let bound = format!("must be http or https, at most {URL_CHARS_MAX} characters");
                ConfigFault::new(&place, bound)
            })?;
            if !starts.contains(&start) {
                starts.push(start);
            }
        }
        Ok(starts)
    }

    pub(super) fn patterns(&self, name: &str) -> Result<Vec<Pattern>, ConfigFault> {
        let pattern = |(place, text): (String, &str)| {
            if text.is_empty() || text.len() > PATTERN_CHARS_MAX {
                let bound = format!("must have 1 to {PATTERN_CHARS_MAX} characters");
                return Err(ConfigFault::new(&place, bound));
            }
            Ok(Pattern::new(text))
        };
        self.list(name, PATTERNS_MAX)?.into_iter().map(pattern).collect()
    }

    pub(super) fn fields(&self) -> Result<Vec<Field>, ConfigFault> {
        let Some(value) = self.0.get("fields") else { return Ok(Vec::new()) };
        let wrong =
            || ConfigFault::new("fields", format!("must be an object of at most {FIELDS_MAX}"));
        let map = value.as_object().filter(|map| map.len() <= FIELDS_MAX).ok_or_else(wrong)?;
        map.iter().map(|(name, value)| read_field(name, value)).collect()
    }
}

fn read_field(name: &str, value: &Value) -> Result<Field, ConfigFault> {
    let place = format!("fields.{name}");
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        let bound = format!("a field's name must have 1 to {NAME_CHARS_MAX} characters");
        return Err(ConfigFault::new("fields", bound));
    }
    let (selector, attribute, all) = match value {
        Value::String(selector) => (selector.as_str(), None, false),
        Value::Object(map) => {
            let fields = Fields::nested(&place, map, &["selector", "attribute", "all"])?;
            let selector = fields.text("selector")?;
            let selector = selector.ok_or_else(|| fields.fault("selector", "is missing"))?;
            (selector, fields.text("attribute")?, fields.flag("all")?.unwrap_or(false))
        }
        _ => return Err(ConfigFault::new(&place, "must be a selector or an object with one")),
    };
    Field::new(name, selector, attribute, all).map_err(|message| ConfigFault::new(&place, message))
}
