//! Text patterns with the wildcard `*`.

/// A pattern in which `*` matches any characters, including none and `/`. All other characters
/// match themselves, even `?`, which is common in URLs. Matching a pattern takes linear time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Glob {
    /// The pattern is one string without repeated stars, to save memory, because a robots.txt file
    /// may contain thousands of patterns.
    pattern: Box<str>,
    /// True if the pattern must match to the end of the text.
    to_the_end: bool,
}

impl Glob {
    pub(crate) fn whole(pattern: &str) -> Self {
        let mut tidy = String::with_capacity(pattern.len());
        for c in pattern.chars() {
            if c != '*' || !tidy.ends_with('*') {
                tidy.push(c);
            }
        }
        Self { pattern: tidy.into(), to_the_end: true }
    }

    /// Returns a pattern that needs to match only the beginning of a text.
    pub(crate) fn beginning(pattern: &str) -> Self {
        Self { to_the_end: false, ..Self::whole(pattern) }
    }

    /// Returns the length of the pattern without repeated stars, plus one if the pattern must match
    /// to the end of the text.
    pub(crate) fn len(&self) -> usize {
        self.pattern.len() + usize::from(self.to_the_end)
    }

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
        // The leftmost match of each part of the pattern leaves the most text for the following
        // parts.
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
    fn star_matches_anything_and_other_characters_themselves() {
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
    fn repeated_stars_count_as_one() {
        assert_eq!(Glob::whole("a****b**"), Glob::whole("a*b*"));
        assert_eq!(Glob::beginning(&"*".repeat(1000)).len(), 1);
    }

    #[test]
    fn malicious_pattern_takes_linear_time() {
        let pattern = "*a".repeat(250) + "*b";
        assert!(!Glob::whole(&pattern).matches(&"a".repeat(100_000)));
    }
}
