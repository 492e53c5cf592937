//! A syntax error in a schedule or a duration, with its position.

use crate::Fault;
use crate::fault::shown;

/// A syntax error in the text of a schedule or a duration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Position of the first wrong character in the text, counted from 0.
    pub position: usize,
    /// What is wrong with the text, and how to correct it.
    pub message: String,
    /// An example of a correct text.
    pub example: &'static str,
}

impl SyntaxError {
    pub(super) fn new(position: usize, message: impl Into<String>, example: &'static str) -> Self {
        Self { position, message: message.into(), example }
    }

    /// Adds `skipped`, the number of characters before the parsed text, to the position of the
    /// error.
    #[must_use]
    pub(super) fn after(self, skipped: usize) -> Self {
        Self { position: self.position + skipped, ..self }
    }

    /// Converts the error into a fault of the field `field`, whose value is `text`.
    pub fn of(self, field: impl Into<String>, text: &str) -> Fault {
        let Self { position, message, example } = self;
        let text = shown(&text.into());
        let place = position + 1;
        let message = match example {
            _ if message.contains(example) => format!("{text}, character {place}: {message}"),
            example => format!("{text}, character {place}: {message}; for example {example}"),
        };
        Fault::new(field, message).at(position)
    }
}

/// Parses a text without the white space around it. The position of an error counts from the start
/// of the whole text.
pub(super) fn without_spaces<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, SyntaxError>,
) -> Result<T, SyntaxError> {
    let skipped = text.chars().take_while(|c| c.is_whitespace()).count();
    parse(text.trim()).map_err(|error| error.after(skipped))
}
