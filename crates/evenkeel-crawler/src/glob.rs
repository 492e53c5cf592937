//! Patterns with `*`.

/// A pattern in which `*` stands for any characters, also none and also `/`. Everything else stands
/// for itself: `?` is common in URLs. Matching takes time in proportion to the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Glob {
    /// In one piece and without two stars in a row: hosts send us thousands of patterns.
    pattern: Box<str>,
    /// Must the text end where the pattern ends?
    to_the_end: bool,
}

impl Glob {
    /// A pattern for whole texts.
    pub(crate) fn whole(pattern: &str) -> Self {
        let mut tidy = String::with_capacity(pattern.len());
        for c in pattern.chars() {
            if c != '*' || !tidy.ends_with('*') {
                tidy.push(c);
            }
        }
        Self { pattern: tidy.into(), to_the_end: true }
    }

    /// A pattern for beginnings of texts.
    pub(crate) fn beginning(pattern: &str) -> Self {
        Self { to_the_end: false, ..Self::whole(pattern) }
    }

    /// Its length without needless stars; an end that has to fit counts as one more.
    pub(crate) fn len(&self) -> usize {
        self.pattern.len() + usize::from(self.to_the_end)
    }

    /// Does the text fit?
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, others)) = self.pattern.split_once('*') else {
            return if self.to_the_end {
                *text == *self.pattern
            } else {
                text.starts_with(&*self.pattern)
            };
        };
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
        // The leftmost place of each part leaves the most room for those after it.
        for part in middle.split('*') {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        if self.to_the_end { rest.ends_with(last) } else { rest.contains(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_anything_and_the_rest_itself() {
        let whole = |pattern: &str, text: &str| Glob::whole(pattern).matches(text);
        assert!(whole("http://a/*", "http://a/b/c?d") && whole("*", "") && whole("a", "a"));
        assert!(whole("*/tag/*/page*", "http://a/tag/x/page7") && whole("a*a", "aa"));
        assert!(whole("*?page=*", "http://a/?page=2") && whole("a**b", "ab"));
        assert!(!whole("a*a", "a") && !whole("a", "ab") && !whole("*.pdf", "a.pdf?x"));
        assert!(!whole("a*b*c", "acb"));
        let beginning = |pattern: &str, text: &str| Glob::beginning(pattern).matches(text);
        assert!(beginning("/a", "/ab") && beginning("/a*c", "/abcd") && beginning("", "x"));
        assert!(!beginning("/a*c", "/abd") && !beginning("/b", "/ab"));
    }

    #[test]
    fn a_run_of_stars_is_one() {
        assert_eq!(Glob::whole("a****b**"), Glob::whole("a*b*"));
        assert_eq!(Glob::beginning(&"*".repeat(1000)).len(), 1);
    }

    #[test]
    fn a_nasty_pattern_takes_no_time() {
        let pattern = "*a".repeat(250) + "*b";
        assert!(!Glob::whole(&pattern).matches(&"a".repeat(100_000)));
    }
}
