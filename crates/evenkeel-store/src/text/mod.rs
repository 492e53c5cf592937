//! How all stores treat the texts of pages, so that a search finds the same pages everywhere.
//!
//! Texts are split into words here and not by the databases, whose parsers differ: PostgreSQL
//! treats `example.com` or `/usr/lib` as one word and folds case by its locale.
//! [`SearchQuery`](evenkeel_core::SearchQuery) defines what a word is. A database gets folded words
//! between spaces and searches for folded words.

mod clean;
mod needles;
mod snippet;
mod words;

pub use clean::clean;
pub use needles::{Needle, Needles};
pub use snippet::{BEGINNING_CHARS_MAX, SNIPPET_CHARS_MAX, beginning, snippet};
pub use words::{Word, indexed, words};

/// The number of bytes of folded words of a text that can be found. PostgreSQL stores at most 1 MiB
/// of words and positions, which this many bytes never exceed.
pub const TEXT_INDEXED_MAX: usize = 256 << 10;

/// The same for a title.
pub const TITLE_INDEXED_MAX: usize = 4 << 10;
