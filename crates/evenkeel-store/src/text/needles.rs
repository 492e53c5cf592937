//! Search terms, converted to lower case without accents.

use evenkeel_core::SearchQuery;
use evenkeel_core::search::Term;

use super::words::words;

/// The terms of a search, in lower case and without accents like the indexed texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needles {
    /// Terms that must each occur in the title or the text of a page. An empty list finds nothing.
    pub wanted: Vec<Needle>,
    /// Terms that may occur neither in the title nor in the text of a page.
    pub unwanted: Vec<Needle>,
}

/// One search term: consecutive words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needle {
    /// Never empty.
    pub words: Vec<String>,
    /// True if the last word may be only the beginning of a word in the text.
    pub prefix: bool,
}

impl Needles {
    /// Converts a search query. Terms that contain no letter or digit after the removal of accents
    /// are skipped.
    pub fn of(query: &SearchQuery) -> Self {
        let fold = |terms: &[Term]| terms.iter().filter_map(Needle::of).collect();
        Self { wanted: fold(&query.wanted), unwanted: fold(&query.unwanted) }
    }
}

impl Needle {
    fn of(term: &Term) -> Option<Self> {
        let folded = term.words.iter().flat_map(|word| words(word));
        let words: Vec<String> = folded.map(|word| word.folded.into_owned()).collect();
        (!words.is_empty()).then_some(Self { words, prefix: term.prefix })
    }

    /// Returns true if `text` starts with the words of this search term.
    pub fn begins<T: AsRef<str>>(&self, text: &[T]) -> bool {
        let last = self.words.len() - 1;
        text.len() > last
            && self.words.iter().zip(text).enumerate().all(|(n, (wanted, found))| {
                let found = found.as_ref();
                if self.prefix && n == last { found.starts_with(wanted) } else { found == wanted }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needle(text: &str) -> Needle {
        Needles::of(&SearchQuery::parse(text).unwrap()).wanted.remove(0)
    }

    #[test]
    fn a_search_is_folded_like_the_texts() {
        let needles = Needles::of(&SearchQuery::parse("CAFÉ 日本* -\"Größe X\"").unwrap());
        assert_eq!(needles.wanted[0].words, ["cafe"]);
        assert_eq!(
            needles.wanted[1],
            Needle { words: vec!["日".into(), "本".into()], prefix: true }
        );
        assert_eq!(needles.unwanted[0].words, ["große", "x"]);
    }

    #[test]
    fn a_needle_matches_consecutive_words() {
        let text = ["job", "scheduler", "x"];
        assert!(needle("\"job scheduler\"").begins(&text));
        assert!(needle("\"job sched*\"").begins(&text));
        assert!(!needle("\"job sched\"").begins(&text));
        assert!(!needle("\"jo scheduler*\"").begins(&text));
        assert!(!needle("\"scheduler x\"").begins(&text));
        assert!(!needle("\"job scheduler\"").begins(&text[..1]));
    }

    #[test]
    fn a_term_that_folds_to_nothing_is_skipped() {
        // Unicode classifies U+037A as a letter, but it decomposes into a space and an accent.
        let query = SearchQuery::parse("\u{37a} rust").unwrap();
        assert_eq!(Needles::of(&query).wanted, [needle("rust")]);
    }
}
