//! The end of a long output, fit for the store.

use std::collections::VecDeque;

/// At most so many bytes of an answer or an error are kept, not counting the mark of what was cut.
pub const TAIL_BYTES_MAX: usize = 64 * 1024;

/// The last bytes of a stream, however long it is.
#[derive(Default)]
pub(crate) struct Tail {
    kept: VecDeque<u8>,
    left_out: u64,
}

impl Tail {
    /// Takes in the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let useful = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
        let excess = (self.kept.len() + useful.len()).saturating_sub(TAIL_BYTES_MAX);
        self.kept.drain(..excess);
        self.kept.extend(useful);
        self.left_out += (bytes.len() - useful.len() + excess) as u64;
    }

    /// What was kept, as text; `None` if there was nothing.
    pub(crate) fn into_text(mut self) -> Option<String> {
        let bytes = self.kept.make_contiguous();
        (!bytes.is_empty()).then(|| text(bytes, self.left_out))
    }
}

/// A text fit for the store.
pub(crate) fn clean(text: String) -> String {
    let fits = text.len() <= TAIL_BYTES_MAX && !text.contains('\0');
    if fits { text } else { self::text(text.as_bytes(), 0) }
}

/// PostgreSQL takes neither NUL nor invalid UTF-8 in a text: both become U+FFFD. That makes a text
/// longer, so it is cut once more.
fn text(bytes: &[u8], mut left_out: u64) -> String {
    let mut start = 0;
    if left_out > 0 {
        // The cut may have gone through a character; its rest means nothing.
        start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    }
    let mut excess = pieces(&bytes[start..])
        .map(|(_, shown)| shown.len_utf8())
        .sum::<usize>()
        .saturating_sub(TAIL_BYTES_MAX);
    for (raw, shown) in pieces(&bytes[start..]) {
        if excess == 0 {
            break;
        }
        excess = excess.saturating_sub(shown.len_utf8());
        start += raw;
    }
    left_out += start as u64;
    let mut text = String::with_capacity(bytes.len() - start + 32);
    if left_out > 0 {
        text = format!("… {left_out} bytes left out\n");
    }
    text.extend(pieces(&bytes[start..]).map(|(_, shown)| shown));
    text
}

/// The characters to show, each with the number of bytes it stands for.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = (usize, char)> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|c| match c {
            '\0' => (1, char::REPLACEMENT_CHARACTER),
            c => (c.len_utf8(), c),
        });
        let invalid = (!chunk.invalid().is_empty())
            .then(|| (chunk.invalid().len(), char::REPLACEMENT_CHARACTER));
        valid.chain(invalid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(chunks: &[&[u8]]) -> Option<String> {
        let mut tail = Tail::default();
        chunks.iter().for_each(|chunk| tail.push(chunk));
        tail.into_text()
    }

    #[test]
    fn a_short_output_is_kept_as_it_is() {
        assert_eq!(tail_of(&[b"one ", "zwei ü".as_bytes()]).as_deref(), Some("one zwei ü"));
        assert_eq!(tail_of(&[]), None);
    }

    #[test]
    fn a_long_output_keeps_its_end_and_says_what_is_missing() {
        let text = tail_of(&[&[b'a'; 1000], &[b'b'; TAIL_BYTES_MAX - 1], b"c"]).unwrap();
        let rest = text.strip_prefix("… 1000 bytes left out\n").unwrap();
        assert_eq!(rest.len(), TAIL_BYTES_MAX);
        assert!(rest.ends_with("bc") && !rest.contains('a'));
    }

    #[test]
    fn one_huge_chunk_is_cut_too() {
        let text = tail_of(&[b"x", &vec![b'y'; 10 * TAIL_BYTES_MAX]]).unwrap();
        let missing = 9 * TAIL_BYTES_MAX + 1;
        assert!(text.starts_with(&format!("… {missing} bytes left out\n")));
    }

    #[test]
    fn nul_and_broken_characters_are_replaced() {
        assert_eq!(tail_of(&[b"a\0b\xffc"]).as_deref(), Some("a\u{fffd}b\u{fffd}c"));
    }

    #[test]
    fn a_cut_character_leaves_no_trace() {
        let text = tail_of(&["ü".repeat(TAIL_BYTES_MAX / 2).as_bytes(), b"!"]).unwrap();
        assert!(text.starts_with("… 2 bytes left out\nü"), "{}", &text[..40]);
    }

    #[test]
    fn replacements_do_not_make_it_longer_than_allowed() {
        let text = tail_of(&[&[0; TAIL_BYTES_MAX]]).unwrap();
        assert!(text.len() <= TAIL_BYTES_MAX + 40, "{}", text.len());
        let kept = TAIL_BYTES_MAX / 3;
        assert!(text.starts_with(&format!("… {} bytes left out", TAIL_BYTES_MAX - kept)));
    }
}
