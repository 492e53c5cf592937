//! Taking the fields of an object one by one, noting what is wrong with each.

use std::ops::RangeInclusive;

use evenkeel_core::{Span, Timestamp};
use serde_json::{Map, Value};

use super::length;
use super::misread::Misread;
use crate::fault::{Faults, shown};

/// The fields of an object. What is absent and what is null are the same.
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// What goes before a field's name in messages, with its dot.
    prefix: &'static str,
    /// Those that were asked for, some of them twice: there are dozens in each of very many documents,
    /// so they are put in order only when somebody must be told of them.
    asked: Vec<&'static str>,
    pub(crate) faults: Faults,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        object: &'a Map<String, Value>,
        prefix: &'static str,
        faults: Faults,
    ) -> Self {
        Self { object, prefix, asked: Vec::with_capacity(64), faults }
    }

    /// Notes a fault of a field.
    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.add(format!("{}{name}", self.prefix), message);
    }

    /// Notes what could not be read in the text of a field.
    pub(crate) fn misread(&mut self, name: &str, text: &str, misread: Misread) {
        self.faults.push(misread.of(format!("{}{name}", self.prefix), text));
    }

    /// A field as it is.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.asked.push(name);
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        let value = self.value(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.fault(name, format!("{} is not a text; put it in quotes", shown(value)));
        }
        text
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.fault(name, format!("{} is neither true nor false", shown(value)));
        }
        flag
    }

    /// A whole number in a range.
    pub(crate) fn number(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(name)?;
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = range.into_inner();
            let message = format!("{} is not a whole number from {low} to {high}", shown(value));
            self.fault(name, message);
        }
        number
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&mut self, name: &'static str) -> Option<f64> {
        let value = self.value(name)?;
        let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        if number.is_none() {
            self.fault(name, format!("{} is not a number from 0 to 1", shown(value)));
        }
        number
    }

    /// The text of a length of time.
    pub(crate) fn length(&mut self, name: &'static str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Number(number) => {
                self.fault(name, format!("{number} needs a unit: write \"{number}m\""));
                None
            }
            _ => self.text(name),
        }
    }

    /// A length of time in a range.
    pub(crate) fn span(&mut self, name: &'static str, range: RangeInclusive<Span>) -> Option<Span> {
        let text = self.length(name)?;
        match length::span(text) {
            Ok(span) if range.contains(&span) => Some(span),
            Ok(_) => {
                let (low, high) = range.into_inner();
                let shown = shown(&text.into());
                self.fault(name, format!("{shown} is not between {low} and {high}"));
                None
            }
            Err(misread) => {
                self.misread(name, text, misread);
                None
            }
        }
    }

    /// A moment.
    pub(crate) fn moment(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        match text.parse() {
            Ok(moment) => Some(moment),
            Err(error) => {
                self.fault(name, format!("{} is {error}", shown(&text.into())));
                None
            }
        }
    }

    /// The items of a list, at most `most`.
    pub(crate) fn items(&mut self, name: &'static str, most: usize) -> &'a [Value] {
        let Some(value) = self.value(name) else { return &[] };
        match value.as_array() {
            Some(items) if items.len() <= most => items,
            Some(items) => {
                let message = format!("has {} items; at most {most} are kept", items.len());
                self.fault(name, message);
                &[]
            }
            None => {
                self.fault(name, format!("{} is not a list", shown(value)));
                &[]
            }
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let message = format!("{} is not one of {}", shown(&text.into()), known.join(", "));
            self.fault(name, message);
        }
        found
    }

    /// Every field must have been asked for: a misspelt one that is silently ignored is found out
    /// in production. `reasons` knows why some that exist elsewhere are not taken here.
    pub(crate) fn finish(mut self, reasons: impl Fn(&str) -> Option<String>) -> Faults {
        let strangers = self.object.keys().filter(|key| !self.asked.contains(&key.as_str()));
        // A document can have a hundred thousand of them.
        let strangers: Vec<_> = strangers.take(Faults::MAX).collect();
        for key in strangers {
            let message = reasons(key).unwrap_or_else(|| self.not_known(key));
            let name = shown(&key.as_str().into());
            self.fault(name.trim_matches('"'), message);
        }
        self.faults
    }

    fn not_known(&self, key: &str) -> String {
        let near = self
            .asked
            .iter()
            .map(|known| (distance(key, known), *known))
            .min()
            .filter(|(steps, known)| *steps <= 2 && *steps < known.len());
        match near {
            Some((_, known)) => format!("is not known here; did you mean {known}?"),
            None => {
                let mut known = self.asked.clone();
                known.sort_unstable();
                known.dedup();
                format!("is not known here; the fields are {}", known.join(", "))
            }
        }
    }
}

/// How many letters must be put in, left out or exchanged to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_letters() {
        assert_eq!(distance("name", "name"), 0);
        assert_eq!(distance("nmae", "name"), 2);
        assert_eq!(distance("names", "name"), 1);
        assert_eq!(distance("", "ab"), 2);
    }
}
