//! Patterns with `*`.

/// A pattern in which `*` stands for any characters, also none and also `/`. Everything else stands
/// for itself: `?` is common in URLs. Matching takes time in proportion to the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Glob {
    parts: Vec<String>,
    /// Must the text end where the pattern ends?
    to_the_end: bool,
}

impl Glob {
    /// A pattern for whole texts.
    pub(crate) fn whole(pattern: &str) -> Self {
        Self { parts: pattern.split('*').map(String::from).collect(), to_the_end: true }
    }

    /// A pattern for beginnings of texts.
    pub(crate) fn beginning(pattern: &str) -> Self {
        Self { to_the_end: false, ..Self::whole(pattern) }
    }

    /// Does the text fit?
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, others)) = self.parts.split_first() else { return text.is_empty() };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = others.split_last() else {
            return !self.to_the_end || rest.is_empty();
        };
        // The leftmost place of each part leaves the most room for those after it.
        for part in middle {
            match rest.find(part.as_str()) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        if self.to_the_end { rest.ends_with(last.as_str()) } else { rest.contains(last.as_str()) }
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
    fn a_nasty_pattern_takes_no_time() {
        let pattern = "*a".repeat(250) + "*b";
        assert!(!Glob::whole(&pattern).matches(&"a".repeat(100_000)));
    }
}
