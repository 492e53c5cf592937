//! A search as PostgreSQL reads it.

use evenkeel_store::text::{Needle, Needles};

use super::search::Home;

/// The texts of three `tsquery`s.
pub(super) struct Matching {
    /// Finds the pages.
    pub(super) found: String,
    /// Fits those that have all that is wanted in their title.
    pub(super) in_title: String,
    /// What the rank is counted from.
    pub(super) ranked: String,
}

impl Matching {
    /// For a search that wants something.
    ///
    /// Needles are letters and digits alone, so that nothing in them can end its quotes.
    pub(super) fn new(home: Home, needles: &Needles) -> Self {
        let ranked = join(&needles.wanted, " & ", "");
        let mut found = format!("'{}' & {ranked}", home.lexeme());
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
    fn words_phrases_beginnings_and_exclusions_are_written() {
        let query = SearchQuery::parse("rust \"job sched*\" -python -\"a b\"").unwrap();
        let matching = Matching::new(Home::Job(JobNo(7)), &Needles::of(&query));
        assert_eq!(
            matching.found,
            "'_j7' & ('rust') & ('job' <-> 'sched':*) & !('python') & !('a' <-> 'b')"
        );
        assert_eq!(matching.in_title, "('rust':A) & ('job':A <-> 'sched':*A)");
        assert_eq!(matching.ranked, "('rust') & ('job' <-> 'sched':*)");
    }
}
