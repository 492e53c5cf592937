//! A syntax error in a schedule or a length of time, with its position.

use crate::Fault;
use crate::fault::shown;

/// What is wrong with a schedule on one line, and at which character.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The first wrong character, counted from 0.
    pub position: usize,
    /// What is wrong, and how to correct it.
    pub message: String,
    /// A correct text of the same form.
    pub example: &'static str,
}

impl SyntaxError {
    pub(super) fn new(position: usize, message: impl Into<String>, example: &'static str) -> Self {
        Self { position, message: message.into(), example }
    }

    /// Moves the position by `skipped` characters that precede the parsed text.
    #[must_use]
    pub(super) fn after(self, skipped: usize) -> Self {
        Self { position: self.position + skipped, ..self }
    }

    /// Converts the error into a fault of `field`, whose text is `text`.
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
