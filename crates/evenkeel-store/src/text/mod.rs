//! Splits the texts of web pages into words in the same way for all stores, so that a search finds
//! the same pages everywhere.
//!
//! The databases do not split texts because their parsers differ: PostgreSQL treats `example.com`
//! or `/usr/lib` as one word and ignores case according to its locale.
//! [`SearchQuery`](evenkeel_core::SearchQuery) defines what a word is. Databases index folded words
//! (lower case, without accents), separated by spaces, and search for folded words.

mod clean;
mod needles;
mod snippet;
mod words;

pub use clean::clean;
pub use needles::{Needle, Needles};
pub use snippet::{BEGINNING_CHARS_MAX, SNIPPET_CHARS_MAX, beginning, snippet};
pub use words::{Word, indexed, words};

/// Maximum number of bytes of words that are indexed for one text. The limit keeps each text below
/// PostgreSQL's maximum of 1 MiB of words and positions.
pub const TEXT_INDEXED_MAX: usize = 256 << 10;

/// Maximum number of bytes of words that are indexed for one title.
pub const TITLE_INDEXED_MAX: usize = 4 << 10;
