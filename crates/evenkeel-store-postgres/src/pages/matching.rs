//! Translates a search query into a PostgreSQL `tsquery`.

use evenkeel_store::text::{Needle, Needles};

use super::search::SearchScope;

pub(super) struct Matching {
    pub(super) found: String,
    /// Matches pages that have all wanted words in their title.
    pub(super) in_title: String,
    /// The words from which the rank of a page is computed.
    pub(super) ranked: String,
}

impl Matching {
    /// `needles` must contain at least one wanted word. Search words consist of letters and digits,
    /// so no word can end the quotes around it.
    pub(super) fn new(scope: SearchScope, needles: &Needles) -> Self {
        let ranked = join(&needles.wanted, " & ", "");
        let mut found = format!("'{}' & {ranked}", scope.lexeme());
        for needle in &needles.unwanted {
            found.push_str(" & !");
            found.push_str(&phrase(needle, ""));
        }
        Self { found, in_title: join(&needles.wanted, " & ", "A"), ranked }
    }
}

fn join(needles: &[Needle], by: &str, weight: &str) -> String {
    needles.iter().map(|needle| phrase(needle, weight)).collect::<Vec<_>>().join(by)
}

fn phrase(needle: &Needle, weight: &str) -> String {
    let last = needle.words.len() - 1;
    let word = |(n, word): (usize, &String)| match (needle.prefix && n == last, weight) {
        (true, weight) => format!("'{word}':*{weight}"),
        (false, "") => format!("'{word}'"),
        (false, weight) => format!("'{word}':{weight}"),
    };
    let words: Vec<String> = needle.words.iter().enumerate().map(word).collect();
    format!("({})", words.join(" <-> "))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{JobNo, SearchQuery};

    use super::*;

    #[test]
    fn words_phrases_prefixes_and_exclusions_are_translated() {
        let query = SearchQuery::parse("rust \"job sched*\" -python -\"a b\"").unwrap();
        let matching = Matching::new(SearchScope::Job(JobNo(7)), &Needles::of(&query));
        assert_eq!(
            matching.found,
            "'_j7' & ('rust') & ('job' <-> 'sched':*) & !('python') & !('a' <-> 'b')"
        );
        assert_eq!(matching.in_title, "('rust':A) & ('job':A <-> 'sched':*A)");
        assert_eq!(matching.ranked, "('rust') & ('job' <-> 'sched':*)");
    }
}
