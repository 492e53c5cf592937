//! Reads the fields of a JSON object one by one, and collects all faults.

use std::fmt::Display;
use std::ops::RangeInclusive;

use evenkeel_core::order::Priority;
use evenkeel_core::{Span, Timestamp};
use serde_json::Value;

use super::length;
use super::syntax_error::SyntaxError;
use crate::fault::{Faults, object_of, shown};
use crate::{Fault, Object};

/// The fields of a JSON object. An absent field and null have the same meaning.
pub(crate) struct Fields<'a> {
    object: &'a Object,
    /// Text before a field's name in error messages, ending with a dot.
    prefix: &'static str,
    /// Names of the fields that were read so far, unsorted and with repetitions. The names are
    /// sorted only for an error message, because bulk requests read dozens of fields for each of
    /// thousands of jobs.
    known: Vec<&'static str>,
    pub(crate) faults: Faults,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Object, prefix: &'static str, faults: Faults) -> Self {
        Self { object, prefix, known: Vec::with_capacity(64), faults }
    }

    /// Reads a JSON object with `read`, and refuses unknown fields. `what` begins the error message
    /// for a document that is not a JSON object.
    pub(crate) fn read_object<T>(
        document: &'a Value,
        what: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<T, Vec<Fault>> {
        let mut fields = Self::new(object_of(document, what)?, "", Faults::default());
        let value = read(&mut fields);
        fields.finish(|_| None).or(value)
    }

    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.add(format!("{}{name}", self.prefix), message);
    }

    /// Reports a fault of a field, and returns `None` instead of the value of the field.
    pub(crate) fn refuse<T>(&mut self, name: &str, message: impl Into<String>) -> Option<T> {
        self.fault(name, message);
        None
    }

    /// Returns the value in `value`, or reports its error as a fault of the field `name`.
    pub(super) fn valid<T>(&mut self, name: &str, value: Result<T, impl ToString>) -> Option<T> {
        value.map_err(|error| self.fault(name, error.to_string())).ok()
    }

    /// Parses the schedule or duration in a field, or reports its syntax error as a fault of the
    /// field.
    pub(super) fn parse<T>(
        &mut self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, SyntaxError>,
    ) -> Option<T> {
        let error = |error: SyntaxError| error.of(format!("{}{name}", self.prefix), text);
        parse(text).map_err(error).map_err(|fault| self.faults.push(fault)).ok()
    }

    /// Reports a fault if a required field is missing; `way_out` tells the client what to write.
    pub(crate) fn require(&mut self, name: &'static str, way_out: &str) {
        if self.value(name).is_none() {
            self.fault(name, format!("is missing; {way_out}"));
        }
    }

    /// Converts the value of a field. If the conversion fails, reports a fault with the value and
    /// with `wrong`, which says what is wrong with the value.
    pub(super) fn convert<T>(
        &mut self,
        name: &'static str,
        wrong: impl Display,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        convert(value).or_else(|| self.refuse(name, format!("{} {wrong}", shown(value))))
    }

    /// Returns the value of a field unless it is absent or null, and marks the field as known.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.object.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.convert(name, "is not a text; put it in quotes", Value::as_str)
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.convert(name, "is neither true nor false", Value::as_bool)
    }

    pub(crate) fn number(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let wrong = format_args!("is not a whole number from {} to {}", range.start(), range.end());
        self.convert(name, wrong, |value| value.as_u64().filter(|number| range.contains(number)))
    }

    /// Reads an integer within a range that `T` can represent.
    pub(crate) fn whole<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<T> {
        self.number(name, range).and_then(|number| T::try_from(number).ok())
    }

    /// Reads a duration that is given as an integer number of seconds.
    pub(crate) fn seconds(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<Span> {
        self.number(name, range).map(Span::from_secs)
    }

    pub(crate) fn priority(&mut self, name: &'static str) -> Option<Priority> {
        let number: u8 = self.whole(name, 0..=u64::from(Priority::MAX.get()))?;
        Priority::try_from(number).ok()
    }

    /// Reads a number from 0 to 1.
    pub(crate) fn fraction(&mut self, name: &'static str) -> Option<f64> {
        let read = |value: &Value| value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        self.convert(name, "is not a number from 0 to 1", read)
    }

    /// Returns the text of a field that contains a duration. Refuses a number, because its unit
    /// would be unclear.
    pub(crate) fn length(&mut self, name: &'static str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Number(number) => {
                self.refuse(name, format!("{number} needs a unit: write \"{number}m\""))
            }
            _ => self.text(name),
        }
    }

    pub(crate) fn span(&mut self, name: &'static str, range: RangeInclusive<Span>) -> Option<Span> {
        let text = self.length(name)?;
        let span = self.parse(name, text, length::span)?;
        if range.contains(&span) {
            return Some(span);
        }
        let (low, high) = range.into_inner();
        self.refuse(name, format!("{} is not between {low} and {high}", shown(&text.into())))
    }

    pub(crate) fn moment(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        let wrong = |error| format!("{} is {error}", shown(&text.into()));
        self.valid(name, text.parse::<Timestamp>().map_err(wrong))
    }

    /// Returns the items of a list in a field, or no items if the list is longer than `items_max`.
    pub(crate) fn items(&mut self, name: &'static str, items_max: usize) -> &'a [Value] {
        let items = self.convert(name, "is not a list", Value::as_array);
        let items = items.map_or(&[][..], Vec::as_slice);
        if items.len() > items_max {
            let message = format!("has {} items; at most {items_max} are allowed", items.len());
            self.fault(name, message);
            return &[];
        }
        items
    }

    /// Reads each item of a list with `read`, and reports each error as a fault of the item.
    pub(crate) fn each<T>(
        &mut self,
        name: &'static str,
        items_max: usize,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Vec<T> {
        let mut each = Vec::new();
        for (index, item) in self.items(name, items_max).iter().enumerate() {
            match read(item) {
                Ok(value) => each.push(value),
                Err(message) => self.fault(&format!("{name}[{index}]"), message),
            }
        }
        each
    }

    /// Reads a text that must be one of `words`, and returns the value of that word.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let text = shown(&text.into());
            self.refuse(name, format!("{text} is not one of {}", known.join(", ")))
        })
    }

    /// Refuses every field that was not read, because a misspelt field that is silently ignored is
    /// noticed only in production. `reason` returns a special error message for some refused
    /// fields, such as fields that only the server sets.
    pub(crate) fn finish(mut self, reason: impl Fn(&str) -> Option<String>) -> Faults {
        let unknown = self.object.keys().filter(|key| !self.known.contains(&key.as_str()));
        // The number of reported unknown fields is limited, because a document can have a hundred
        // thousand unknown fields.
        let unknown: Vec<_> = unknown.take(Faults::MAX).collect();
        for key in unknown {
            let message = reason(key).unwrap_or_else(|| self.not_known(key));
            let name = shown(&key.as_str().into());
            self.fault(name.trim_matches('"'), message);
        }
        self.faults
    }

    /// Returns the names of the fields that were read, sorted.
    pub(crate) fn known_names(&self) -> Vec<&'static str> {
        let mut known = self.known.clone();
        known.sort_unstable();
        known.dedup();
        known
    }

    fn not_known(&self, key: &str) -> String {
        let near = self
            .known
            .iter()
            .map(|known| (edit_distance(key, known), *known))
            .min()
            .filter(|(edits, known)| *edits <= 2 && *edits < known.len());
        match near {
            Some((_, known)) => format!("is not known here; did you mean {known}?"),
            None => {
                format!("is not known here; the fields are {}", self.known_names().join(", "))
            }
        }
    }
}

/// Returns the number of characters to insert, delete or replace to turn `a` into `b`, or
/// `usize::MAX` if the lengths of `a` and `b` differ by more than 2.
fn edit_distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, char) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(char != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_changed_characters() {
        assert_eq!(edit_distance("name", "name"), 0);
        assert_eq!(edit_distance("nmae", "name"), 2);
        assert_eq!(edit_distance("names", "name"), 1);
        assert_eq!(edit_distance("", "ab"), 2);
    }
}
