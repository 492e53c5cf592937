//! Errors in cron expressions, with the position of the error.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CronFault {
    /// In characters, counted from 0.
    pub position: usize,
    /// The message says what is wrong in the cron expression and how to correct it.
    pub message: String,
}

/// A part of a cron expression, with its position in the expression.
#[derive(Copy, Clone, Debug)]
pub(super) struct Piece<'a> {
    pub text: &'a str,
    /// Position in bytes from the beginning of the cron expression.
    at: usize,
}

impl<'a> Piece<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Removes the first `from` bytes; `from` must be on a character boundary.
    pub fn skip(self, from: usize) -> Self {
        Self { text: &self.text[from..], at: self.at + from }
    }

    pub fn take(self, length: usize) -> Self {
        Self { text: &self.text[..length], at: self.at }
    }

    /// Returns the parts of the text before and after the first `separator`.
    pub fn cut(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.take(at), self.skip(at + separator.len_utf8())))
    }

    /// Removes `letter`, in upper or lower case, from the end of the part.
    pub fn strip_end(self, letter: char) -> Option<Self> {
        let rest = self.text.strip_suffix([letter, letter.to_ascii_lowercase()])?;
        Some(self.take(rest.len()))
    }

    pub fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// True if the part begins with `letter`, in upper or lower case.
    pub fn begins(self, letter: char) -> bool {
        self.text.starts_with([letter, letter.to_ascii_lowercase()])
    }

    /// Parts may be empty.
    pub fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let whole = rest?;
            let (part, after) = whole.cut(separator).map_or((whole, None), |(a, b)| (a, Some(b)));
            rest = after;
            Some(part)
        })
    }

    /// Splits the text at white space and leaves out empty parts.
    pub fn words(self) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            rest = rest.skip(rest.text.len() - rest.text.trim_start().len());
            let end = rest.text.find(char::is_whitespace).unwrap_or(rest.text.len());
            let word = rest.take(end);
            rest = rest.skip(end);
            (end > 0).then_some(word)
        })
    }

    pub fn fault(self, message: impl Into<String>) -> Misread {
        Misread { at: self.at, message: message.into() }
    }
}

/// An error in a cron expression, whose position is still counted in bytes, not in characters.
#[derive(Debug)]
pub(super) struct Misread {
    at: usize,
    message: String,
}

impl Misread {
    /// Converts the position of the error from bytes to characters of `expression`.
    pub fn of(self, expression: &str) -> CronFault {
        let before = expression.get(..self.at).unwrap_or(expression);
        CronFault { position: before.chars().count(), message: self.message }
    }
}
