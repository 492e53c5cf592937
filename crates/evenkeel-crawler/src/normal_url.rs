//! Normalises URLs, so that different spellings of a URL count as one page.

use std::fmt::Write as _;

use evenkeel_outbound::reqwest::Url;
use sha2::{Digest, Sha256};

/// Longer URLs are ignored.
pub(crate) const URL_CHARS_MAX: usize = 2000;

/// Returns the normal form of a URL, or `None` if the URL cannot be crawled.
///
/// The URL parser has already converted scheme and host to lower case, dropped default ports and
/// resolved dot segments. This function removes the fragment, an empty query and credentials, and
/// normalises percent-encoding. Query parameters are not sorted, because their order may matter.
pub(crate) fn normalise(mut url: Url) -> Option<Url> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    if url.query() == Some("") {
        url.set_query(None);
    }
    if !url.username().is_empty() || url.password().is_some() {
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
    }
    if url.as_str().contains('%') {
        let path = tidy_percent(url.path());
        if path != url.path() {
            url.set_path(&path);
        }
        if let Some(query) = url.query() {
            let tidy = tidy_percent(query);
            if tidy != query {
                url.set_query(Some(&tidy));
            }
        }
    }
    (url.as_str().len() <= URL_CHARS_MAX).then_some(url)
}

pub(crate) fn resolve(base: &Url, link: &str) -> Option<Url> {
    let link = link.trim();
    // These checks come first, because they are cheaper than resolving the link.
    if link.is_empty() || link.starts_with('#') || link.len() > 2 * URL_CHARS_MAX {
        return None;
    }
    normalise(base.join(link).ok()?)
}

/// Normalises percent-encoding: hexadecimal digits become upper case, and encoded characters that
/// need no encoding are decoded. Bytes outside ASCII are encoded.
pub(crate) fn tidy_percent(text: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = text.as_bytes();
    let mut tidy = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let decoded = match bytes.get(at..at + 3) {
            Some(&[b'%', high, low]) => digit(high).zip(digit(low)),
            _ => None,
        };
        let (byte, is_plain, length) = match decoded.map(|(high, low)| high << 4 | low) {
            Some(byte) => (byte, byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), 3),
            None => (byte, byte.is_ascii(), 1),
        };
        at += length;
        if is_plain {
            tidy.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(tidy, "%{byte:02X}");
        }
    }
    tidy
}

/// Returns a hash that identifies a text and is the same on every node.
pub(crate) fn key_of(text: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    first_eight(&digest)
}

pub(crate) fn first_eight(hash: &[u8; 32]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *hash;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the host and port of a URL as text; the limits per host apply to each host and port.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(url: &str) -> Option<String> {
        Url::parse(url).ok().and_then(normalise).map(String::from)
    }

    #[test]
    fn spellings_of_a_url_have_one_normal_form() {
        for (spelling, expected) in [
            ("HTTP://Example.COM", "http://example.com/"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/a", "https://example.com/a"),
            ("http://example.com:8080/", "http://example.com:8080/"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/a/%2e%2E/c", "http://example.com/c"),
            ("http://example.com/a#part", "http://example.com/a"),
            ("http://example.com/a?", "http://example.com/a"),
            ("http://example.com/%7euser/%c3%bc%2f", "http://example.com/~user/%C3%BC%2F"),
            ("http://example.com/ü", "http://example.com/%C3%BC"),
            ("http://example.com/?q=%e4&r=%41", "http://example.com/?q=%E4&r=A"),
            ("http://example.com/100%", "http://example.com/100%"),
            ("http://me:secret@example.com/", "http://example.com/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            ("http://example.com/?b=1&a=2", "http://example.com/?b=1&a=2"),
        ] {
            assert_eq!(normal(spelling).as_deref(), Some(expected), "{spelling}");
        }
    }

    #[test]
    fn urls_that_cannot_be_crawled_have_no_normal_form() {
        for url in ["mailto:me@example.com", "javascript:void(0)", "ftp://example.com/", "data:,x"]
        {
            assert_eq!(normal(url), None, "{url}");
        }
        assert_eq!(normal(&format!("http://example.com/{}", "x".repeat(URL_CHARS_MAX))), None);
    }

    #[test]
    fn links_are_resolved_against_their_page() {
        let base = Url::parse("https://example.com/dir/page?x=1").unwrap();
        let resolved = |link| resolve(&base, link).map(String::from);
        assert_eq!(resolved(" other\n").as_deref(), Some("https://example.com/dir/other"));
        assert_eq!(resolved("?y=2").as_deref(), Some("https://example.com/dir/page?y=2"));
        assert_eq!(resolved("//cdn.example/x").as_deref(), Some("https://cdn.example/x"));
        assert_eq!(resolved("#top"), None);
        assert_eq!(resolved("http://[bad"), None);
    }

    proptest! {
        #[test]
        fn normal_form_is_its_own_normal_form(path in ".{0,60}", query in ".{0,30}") {
            if let Some(once) = normal(&format!("http://example.com/{path}?{query}")) {
                prop_assert_eq!(normal(&once), Some(once));
            }
        }
    }
}
