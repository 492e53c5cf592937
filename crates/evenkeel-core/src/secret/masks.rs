//! Replaces the values of secrets in texts with `***`.

use std::borrow::Cow;
use std::fmt;

const MASK: &str = "***";

/// Minimum length in bytes of a line of a multi-line secret that is masked on its own. Shorter
/// lines, such as the `}` of a JSON document, are not masked, because they occur in any text.
const LINE_BYTES_MIN: usize = 8;

/// Replaces secret values with `***`. A secret value is found in several forms: unchanged, escaped
/// as in JSON or in a URL, and each line of a multi-line value. If a secret value is a URL, its
/// confidential parts are masked as well.
#[derive(Clone, Default)]
pub struct Masks(Vec<String>);

impl Masks {
    /// Ignores empty values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut needles = Vec::new();
        for value in values {
            needles.extend(forms(value));
            needles.extend(url_parts(value).into_iter().flat_map(forms));
            if value.contains('\n') {
                let lines = value.lines().filter(|line| line.len() >= LINE_BYTES_MIN);
                needles.extend(lines.flat_map(forms));
            }
        }
        needles.retain(|needle| !needle.is_empty());
        // Longer secret values are replaced first, because a shorter one may be part of a longer
        // one.
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self(needles)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.0.iter().any(|needle| text.contains(needle.as_str())) {
            return Cow::Borrowed(text);
        }
        let (masked, rest) = self.mask_until(text, str::len);
        Cow::Owned(masked + rest)
    }

    pub fn mask(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.apply(text) {
            *text = masked;
        }
    }

    /// Masks secret values in bytes that are UTF-8 text; other bytes stay unchanged.
    pub fn mask_bytes(&self, bytes: &mut Vec<u8>) {
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Cow::Owned(masked) = self.apply(text)
        {
            *bytes = masked.into_bytes();
        }
    }

    /// Removes from `held`, the buffer of an output stream, all text except an end that may be the
    /// beginning of a secret value. Returns the removed text with secret values masked.
    pub fn drain(&self, held: &mut String) -> String {
        let (masked, rest) = self.mask_until(held, |rest| self.open_in(rest));
        let (over, open) = rest.split_at(self.open_in(rest));
        let masked = masked + over;
        *held = open.to_owned();
        masked
    }

    /// Masks the secret values that start before `end`, a position in the text after the last
    /// masked value. Returns the masked text and the rest of the text. The text is searched in one
    /// pass, so that the search ignores the inserted `***`.
    fn mask_until<'t>(&self, text: &'t str, end: impl Fn(&str) -> usize) -> (String, &'t str) {
        let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((at, needle)) = self.first_in(rest).filter(|(at, _)| *at < end(rest)) {
            masked.push_str(&rest[..at]);
            masked.push_str(MASK);
            rest = &rest[at + needle.len()..];
        }
        (masked, rest)
    }

    /// Returns the position at which an incomplete secret value at the end of the text may begin.
    fn open_in(&self, text: &str) -> usize {
        let longest = self.0.first().map_or(0, String::len);
        let from = text.len().saturating_sub(longest.saturating_sub(1));
        let mut places = (from..text.len()).filter(|at| text.is_char_boundary(*at));
        let is_open = |at: &usize| {
            let end = &text[*at..];
            self.0.iter().any(|needle| needle.len() > end.len() && needle.starts_with(end))
        };
        places.find(is_open).unwrap_or(text.len())
    }

    /// Returns the position of the first secret value in the text. If two secret values start at
    /// the same position, the longer value is returned.
    fn first_in(&self, text: &str) -> Option<(usize, &str)> {
        let found = self.0.iter().filter_map(|needle| Some((text.find(needle)?, needle.as_str())));
        found.min_by_key(|(at, needle)| (*at, usize::MAX - needle.len()))
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.0.len())
    }
}

/// Returns the password of a URL and everything after its host, because receivers may log these
/// parts without the host.
fn url_parts(value: &str) -> Vec<&str> {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let Some(rest) = rest else { return Vec::new() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let parts = [password.map(|(_, password)| password), Some(path.trim_start_matches('/'))];
    parts.into_iter().flatten().filter(|part| part.len() >= LINE_BYTES_MIN).collect()
}

fn forms(value: &str) -> [String; 3] {
    let json = serde_json::Value::from(value).to_string();
    let inner = json[1..json.len() - 1].to_owned();
    [value.to_owned(), inner, super::places::url_escaped(value)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn value_is_masked_in_each_of_its_forms() {
        let masks = Masks::new(["pa\"ss w", "longer pa\"ss w"]);
        assert_eq!(masks.apply("x pa\"ss w y"), "x *** y");
        assert_eq!(masks.apply(r#"{"a":"pa\"ss w"}"#), r#"{"a":"***"}"#);
        assert_eq!(masks.apply("/?q=pa%22ss%20w"), "/?q=***");
        assert_eq!(masks.apply("longer pa\"ss w"), "***");
        assert!(matches!(masks.apply("nothing"), Cow::Borrowed(_)));
        assert_eq!(Masks::new([""]).apply("abc"), "abc");
    }

    #[test]
    fn parts_of_a_url_are_masked_apart_from_its_host() {
        let masks = Masks::new(["https://ann:0123456789@e.com/hooks/T0/B0/abc?x=1"]);
        let masked = masks.apply("POST /hooks/T0/B0/abc?x=1 as ann:0123456789 at e.com");
        assert_eq!(masked, "POST /*** as ann:*** at e.com");
        assert_eq!(Masks::new(["https://e.com/a"]).apply("/a"), "/a");
    }

    #[test]
    fn long_line_of_a_value_is_masked_and_a_short_one_is_not() {
        let masks = Masks::new(["{\n\"key\": \"0123456789\"\n}"]);
        assert_eq!(masks.apply("got \"key\": \"0123456789\" in {"), "got *** in {");
    }

    proptest! {
        #[test]
        fn stream_is_masked_like_the_whole_text(
            values in prop::collection::vec("[a-cü]{1,5}", 1..4),
            pieces in prop::collection::vec("[a-dü]{0,5}", 0..8),
        ) {
            let masks = Masks::new(values.iter().map(String::as_str));
            let (mut held, mut masked) = (String::new(), String::new());
            for piece in &pieces {
                held.push_str(piece);
                masked.push_str(&masks.drain(&mut held));
            }
            masked.push_str(&masks.apply(&held));
            let whole = pieces.concat();
            prop_assert_eq!(masked, masks.apply(&whole));
        }

        #[test]
        fn masked_text_holds_no_value(
            values in prop::collection::vec("[a-c\"%/]{1,4}", 1..4),
            parts in prop::collection::vec("[a-e\"%/ ]{0,5}", 0..6),
        ) {
            let masks = Masks::new(values.iter().map(String::as_str));
            let text = parts.join(&values[0]);
            let masked = masks.apply(&text);
            // The text between two inserted `***` contains no secret value.
            for part in masked.split(MASK) {
                for value in &values {
                    prop_assert!(!part.contains(value.as_str()), "{text:?} -> {masked:?}");
                }
            }
        }
    }
}
