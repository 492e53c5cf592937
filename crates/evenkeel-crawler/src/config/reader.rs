//! Readers of the configuration's fields whose errors name the field.

use evenkeel_outbound::reqwest::Url;
use serde_json::{Map, Value};

use super::Fault;
use crate::fields::{FIELDS_MAX, Field};
use crate::normal_url::{URL_CHARS_MAX, normalise};
use crate::scope::Pattern;

const STARTS_MAX: usize = 100;
const PATTERNS_MAX: usize = 100;
const PATTERN_CHARS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 100;

pub(super) struct Reader<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Reader<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| Fault::new(name, "must be a string")))
            .transpose()
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_bool().ok_or_else(|| Fault::new(name, "must be true or false"))
        })
    }

    pub(super) fn number(
        &self,
        name: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, Fault> {
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

    pub(super) fn starts(&self) -> Result<Vec<Url>, Fault> {
        let mut texts = self.list("start_urls", STARTS_MAX)?;
        match self.text("url")? {
            Some(url) => texts.insert(0, ("url".into(), url)),
            None if texts.is_empty() => {
                return Err(Fault::new(
                    "url",
                    "is missing: set the start URL here or in start_urls",
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

    pub(super) fn patterns(&self, name: &str) -> Result<Vec<Pattern>, Fault> {
        let pattern = |(place, text): (String, &str)| {
            if text.is_empty() || text.len() > PATTERN_CHARS_MAX {
                let bound = format!("must have 1 to {PATTERN_CHARS_MAX} characters");
                return Err(Fault::new(place, bound));
            }
            Ok(Pattern::new(text))
        };
        self.list(name, PATTERNS_MAX)?.into_iter().map(pattern).collect()
    }

    pub(super) fn fields(&self) -> Result<Vec<Field>, Fault> {
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
