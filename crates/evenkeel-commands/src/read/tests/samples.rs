//! Valid values for each reader method that the table of simple job fields uses.

use std::ops::RangeInclusive;

use evenkeel_core::Span;
use serde_json::{Value, json};

pub fn label() -> Value {
    json!("news")
}

pub fn multiline(_chars_max: usize) -> Value {
    json!("two\nlines")
}

pub fn url() -> Value {
    json!("https://example.com/")
}

pub fn pool() -> Value {
    json!("eu.west-1")
}

pub fn names(_items_max: usize) -> Value {
    json!(["crawler-3"])
}

pub fn object(_bytes_max: usize) -> Value {
    json!({"a": {"b": [1, 2.5, null]}})
}

pub fn flag() -> Value {
    json!(true)
}

pub fn number(range: RangeInclusive<u64>) -> Value {
    json!(7.clamp(*range.start(), *range.end()))
}

#[expect(clippy::extra_unused_type_parameters, reason = "it has the signature of the reader")]
pub fn whole<T>(range: RangeInclusive<u64>) -> Value {
    number(range)
}

pub fn seconds(range: RangeInclusive<u64>) -> Value {
    number(range)
}

pub fn priority() -> Value {
    json!(9)
}

pub fn span(range: RangeInclusive<Span>) -> Value {
    json!(Span::from_secs(300).clamp(*range.start(), *range.end()))
}

pub fn moment() -> Value {
    json!("2026-04-01T00:00:00.000000Z")
}

pub fn word<T>(words: &[(&'static str, T)]) -> Value {
    json!(words.last().map(|(word, _)| *word))
}
