//! What is wrong with an expression.

/// What is wrong with an expression, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CronFault {
    /// The character it begins at, counted from 0.
    pub position: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// A part of an expression that knows where it stands.
#[derive(Copy, Clone, Debug)]
pub(super) struct Piece<'a> {
    pub text: &'a str,
    /// In bytes, from the beginning of the expression.
    at: usize,
}

impl<'a> Piece<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// From byte `from` on, which is on the border of a character.
    pub fn skip(self, from: usize) -> Self {
        Self { text: &self.text[from..], at: self.at + from }
    }

    /// The first `length` bytes.
    pub fn take(self, length: usize) -> Self {
        Self { text: &self.text[..length], at: self.at }
    }

    /// What lies before and after the first `separator`, if there is one.
    pub fn cut(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.take(at), self.skip(at + separator.len_utf8())))
    }

    /// Without the letter that it ends with, of any case.
    pub fn strip_end(self, letter: char) -> Option<Self> {
        let rest = self.text.strip_suffix([letter, letter.to_ascii_lowercase()])?;
        Some(self.take(rest.len()))
    }

    pub fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// Does it begin with `letter`, of any case?
    pub fn begins(self, letter: char) -> bool {
        self.text.starts_with([letter, letter.to_ascii_lowercase()])
    }

    /// Its parts between `separator`s; one of them may be empty.
    pub fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let whole = rest?;
            let (part, after) = whole.cut(separator).map_or((whole, None), |(a, b)| (a, Some(b)));
            rest = after;
            Some(part)
        })
    }

    /// Its parts between white space; none of them is empty.
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

    /// A fault that begins here.
    pub fn fault(self, message: impl Into<String>) -> Misread {
        Misread { at: self.at, message: message.into() }
    }
}

/// A fault whose place is still counted in bytes.
#[derive(Debug)]
pub(super) struct Misread {
    at: usize,
    message: String,
}

impl Misread {
    /// The fault, in an expression.
    pub fn of(self, expression: &str) -> CronFault {
        let before = expression.get(..self.at).unwrap_or(expression);
        CronFault { position: before.chars().count(), message: self.message }
    }
}
