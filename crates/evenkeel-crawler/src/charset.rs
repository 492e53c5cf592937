//! Decodes the bytes of a page.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes at the beginning of a page that are searched for a declared charset.
const CLAIM_BYTES: usize = 1024;

/// Decodes a page by the first of these that applies: its byte order mark, the charset that the
/// server declares, the charset that the page declares, UTF-8 if the page is valid UTF-8,
/// windows-1252. Undecodable bytes become U+FFFD.
///
/// Servers often declare the charset windows-1252 for pages in UTF-8. A page that is valid UTF-8 is
/// decoded as UTF-8 even if windows-1252 is declared.
pub(crate) fn decode(bytes: &[u8], server_charset: Option<&str>) -> String {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding.decode(bytes).0.into_owned();
    }
    let label = |label: &str| Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes());
    let claimed = server_charset.and_then(label).or_else(|| claim(bytes).and_then(label));
    match claimed {
        Some(encoding) if encoding != WINDOWS_1252 => encoding.decode(bytes).0.into_owned(),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                // A page in UTF-8 may contain a broken character. If no charset is declared, one
                // valid UTF-8 sequence is enough to decode the page as UTF-8.
                let wide = bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii());
                let encoding = if wide && claimed.is_none() { UTF_8 } else { WINDOWS_1252 };
                encoding.decode_without_bom_handling(bytes).0.into_owned()
            }
        },
    }
}

/// Returns the charset that a `<meta>` tag near the beginning of the page declares.
fn claim(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(CLAIM_BYTES)];
    let lower = head.to_ascii_lowercase();
    let meta = find(&lower, b"<meta")?;
    let at = meta + find(&lower[meta..], b"charset")? + b"charset".len();
    let ascii = head[at..].iter().take_while(|byte| byte.is_ascii()).count();
    let rest = std::str::from_utf8(&head[at..at + ascii]).ok()?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
    Some(&rest[..end.unwrap_or(rest.len())])
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_mark_wins_over_the_server_and_the_server_over_the_page() {
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xbc", Some("koi8-r")), "ü");
        assert_eq!(decode(b"\xff\xfea\0", None), "a");
        let page = b"<meta charset=\"koi8-r\">\xc1";
        assert!(decode(page, Some("iso-8859-5")).ends_with('С'));
        assert!(decode(page, None).ends_with('а'));
        let old = b"<META http-equiv=x content='text/html; CharSet = shift_jis'>\x82\xa0";
        assert!(decode(old, None).ends_with('あ'));
    }

    #[test]
    fn page_without_a_charset_is_utf_8_or_western() {
        assert_eq!(decode("grün".as_bytes(), None), "grün");
        assert_eq!(decode(b"gr\xfcn \x80", None), "grün €");
        assert_eq!(decode(b"\xc3\xbc\xff", None), "ü\u{fffd}");
        assert_eq!(decode(b"", None), "");
    }

    #[test]
    fn wrong_charsets_do_not_break_a_page() {
        assert_eq!(decode("grün".as_bytes(), Some("iso-8859-1")), "grün");
        assert_eq!(decode(b"gr\xfcn", Some("utf-8")), "gr\u{fffd}n");
        assert_eq!(decode("grün".as_bytes(), Some("no-such-charset")), "grün");
        assert_eq!(decode(b"<meta charset=nonsense>gr\xfcn", None), "<meta charset=nonsense>grün");
        assert_eq!(decode(b"<meta charset", None), "<meta charset");
    }
}
