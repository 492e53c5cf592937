//! What is wrong with a text, and where.

use crate::Fault;
use crate::fault::shown;

/// What is wrong with a schedule on one line, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Misread {
    /// The character it begins at, counted from 0.
    pub position: usize,
    /// What is wrong, and what would be right.
    pub message: String,
    /// A text of the same form that can be read.
    pub example: &'static str,
}

impl Misread {
    pub(super) fn new(position: usize, message: impl Into<String>, example: &'static str) -> Self {
        Self { position, message: message.into(), example }
    }

    /// The same in a text in which `skipped` characters stand before this one.
    #[must_use]
    pub(super) fn after(self, skipped: usize) -> Self {
        Self { position: self.position + skipped, ..self }
    }

    /// As the fault of `field`, whose text is `text`.
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
