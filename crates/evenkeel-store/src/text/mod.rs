//! What all stores do alike with the texts of pages, so that a search finds the same everywhere.
//!
//! Words are taken apart here and not by the databases: their own readers differ (PostgreSQL takes
//! `example.com` or `/usr/lib` for one word and folds case by the locale it was set up with), and
//! [`SearchQuery`](evenkeel_core::SearchQuery) has settled what a word is. A database gets folded
//! words between spaces, and looks for folded words.

mod clean;
mod needles;
mod snippet;
mod words;

pub use clean::clean;
pub use needles::{Needle, Needles};
pub use snippet::{BEGINNING_CHARS_MAX, SNIPPET_CHARS_MAX, beginning, snippet};
pub use words::{Word, indexed, words};

/// So many bytes of folded words of a page's text can be found; what follows cannot. PostgreSQL
/// holds at most 1 MiB of words and their places, and this much text never makes more.
pub const TEXT_INDEXED_MAX: usize = 256 << 10;

/// The same for its title.
pub const TITLE_INDEXED_MAX: usize = 4 << 10;
