//! The text of a job that a search reads.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::job::About;
use crate::redact;
use crate::search::is_unseen;

/// Maximum length in bytes of the text of a job. A search does not find what comes after it.
pub const TEXT_BYTES_MAX: usize = 4096;

/// The folded texts of a job, one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobText(String);

impl JobText {
    /// Collects the name, source, target, URL, description and metadata of a job, in this order, so
    /// that a job with long metadata is still found by its name.
    ///
    /// The text contains only what viewers see: the URL without credentials and query values, and
    /// nothing of the executor's configuration and the payload. Otherwise a viewer could find out a
    /// redacted value by searching for its parts.
    pub fn of(about: &About, target_name: Option<&str>) -> Self {
        let About { name, configuration, description, source_id, source_name, url, .. } = about;
        let url = url.as_deref().map(redact::url);
        let mut text = String::new();
        let fields =
            [name, configuration, source_id, source_name].map(|field| field.as_deref()).into_iter();
        for field in fields.chain([target_name, url.as_deref(), description.as_deref()]).flatten() {
            push(&mut text, field);
        }
        push_value(&mut text, &about.metadata);
        // Folding can make a text longer.
        Self(cut(&fold(cut(&text))).to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Adds a line, unless the text is already long enough.
fn push(text: &mut String, line: &str) {
    if text.len() < TEXT_BYTES_MAX {
        text.push_str(cut(line));
        text.push('\n');
    }
}

/// Returns the beginning of a text that has at most [`TEXT_BYTES_MAX`] bytes.
fn cut(text: &str) -> &str {
    let mut ends = (0..=TEXT_BYTES_MAX.min(text.len())).rev();
    ends.find(|end| text.is_char_boundary(*end)).map_or("", |end| &text[..end])
}

/// Adds the keys, strings, numbers and booleans of metadata.
fn push_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => push(text, &value.to_string()),
        Value::String(line) => push(text, line),
        Value::Array(values) => values.iter().for_each(|value| push_value(text, value)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            push(text, key);
            push_value(text, value);
        }),
    }
}

/// Makes texts equal that differ only in upper and lower case, in the composition of characters, or
/// in invisible characters.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // Characters are folded one by one, because `str::to_lowercase` writes a sigma differently at
    // the end of a word, and a search may contain only the beginning of that word.
    let lower = text.nfc().filter(|c| !is_unseen(*c)).flat_map(char::to_lowercase);
    lower.map(|c| if c == 'ς' { 'σ' } else { c }).nfc().collect()
}

/// Returns where the words of a text begin.
pub(super) fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let mut before = None;
    text.char_indices()
        .filter(move |(_, c)| is_word_start(before.replace(*c), *c))
        .map(|(start, _)| start)
}

/// Returns true if a word begins with `c`, which follows the character `before`.
pub(super) fn is_word_start(before: Option<char>, c: char) -> bool {
    let continues = |before: char| {
        (before.is_alphanumeric() || is_combining_mark(before)) && !is_word_of_its_own(before)
    };
    c.is_alphanumeric() && (is_word_of_its_own(c) || !before.is_some_and(continues))
}

/// True for characters of scripts that write words without spaces, or whose words often have only
/// two characters: kana, Chinese characters and Hangul.
const fn is_word_of_its_own(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}
