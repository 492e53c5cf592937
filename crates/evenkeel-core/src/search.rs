//! The search syntax for crawled pages.

use unicode_normalization::char::is_combining_mark;

/// A search query: a page matches if it contains every `wanted` term and no `unwanted` term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchQuery {
    pub wanted: Vec<Term>,
    pub unwanted: Vec<Term>,
}

/// A phrase of one or more consecutive words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// Words of letters, digits and diacritics, in lower case; a term has at least one word. Stores
    /// remove diacritics from the words of a search query, as they do from page texts.
    pub words: Vec<String>,
    /// True if the last word of the term matches all words that begin with it.
    pub prefix: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SearchError {
    #[error("has no word to search for; write words, \"a phrase\", prefix* or -without")]
    NothingWanted,
    #[error("has more than {WORDS_MAX} words; leave some out")]
    TooManyWords,
}

pub const WORDS_MAX: usize = 32;

impl SearchQuery {
    /// Parses a query such as `rust "job scheduler" sched* -python`.
    ///
    /// A parsed query can never contain database syntax, because terms consist only of words of
    /// letters, digits and diacritics. Characters other than letters, digits and diacritics
    /// separate words, so `foo-bar` is the phrase `foo bar`.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let mut query = Self { wanted: Vec::new(), unwanted: Vec::new() };
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let negated = rest.starts_with('-');
            let after = rest.strip_prefix('-').unwrap_or(rest);
            let (term, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
            };
            if let Some(term) = Term::read(term) {
                if negated { &mut query.unwanted } else { &mut query.wanted }.push(term);
            }
            rest = after.trim_start();
        }
        let words = |terms: &[Term]| terms.iter().map(|term| term.words.len()).sum::<usize>();
        if query.wanted.is_empty() {
            Err(SearchError::NothingWanted)
        } else if words(&query.wanted) + words(&query.unwanted) > WORDS_MAX {
            Err(SearchError::TooManyWords)
        } else {
            Ok(query)
        }
    }
}

impl Term {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<String> = text
            .split(|c: char| !(c.is_alphanumeric() || is_combining_mark(c) || is_unseen(c)))
            .map(|word| word.chars().filter(|c| !is_unseen(*c)).collect::<String>().to_lowercase())
            .filter(|word| word.contains(char::is_alphanumeric))
            .collect();
        (!words.is_empty()).then(|| Self { words, prefix: text.ends_with('*') })
    }
}

/// True for invisible characters inside a word: soft hyphens and zero-width characters.
pub fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(words: &[&str], prefix: bool) -> Term {
        Term { words: words.iter().map(ToString::to_string).collect(), prefix }
    }

    #[test]
    fn words_phrases_prefixes_and_exclusions_are_read() {
        let query =
            SearchQuery::parse("  Rust \"Job  scheduler\" sched* -python -\"a b\"").unwrap();
        assert_eq!(
            query.wanted,
            [term(&["rust"], false), term(&["job", "scheduler"], false), term(&["sched"], true)]
        );
        assert_eq!(query.unwanted, [term(&["python"], false), term(&["a", "b"], false)]);
    }

    #[test]
    fn diacritics_and_invisible_characters_do_not_split_a_word() {
        let query = SearchQuery::parse("Cafe\u{301}s soft\u{ad}ware हिन्दी \u{301} \u{ad}").unwrap();
        let expected = ["cafe\u{301}s", "software", "हिन्दी"].map(|word| term(&[word], false));
        assert_eq!(query.wanted, expected);
    }

    #[test]
    fn no_input_is_syntax_for_a_database() {
        let query = SearchQuery::parse("NEAR(a,b) title:x \"un'closed & | ! <-> ^").unwrap();
        let all = query.wanted.iter().flat_map(|term| &term.words);
        assert!(all.clone().all(|word| word.chars().all(char::is_alphanumeric)));
        assert_eq!(all.count(), 7);
    }

    #[test]
    fn empty_and_too_long_searches_are_refused() {
        for text in ["", "   ", "-only", "***", "\"\""] {
            assert_eq!(SearchQuery::parse(text), Err(SearchError::NothingWanted), "{text}");
        }
        let long = "w ".repeat(WORDS_MAX + 1);
        assert_eq!(SearchQuery::parse(&long), Err(SearchError::TooManyWords));
    }
}
