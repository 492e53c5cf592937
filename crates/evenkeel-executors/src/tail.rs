//! Keeps the last bytes of a long text, in a form that both stores accept.

use std::collections::VecDeque;

/// Maximum number of bytes of a response or an error that are kept, not counting the note about the
/// omitted part.
pub const TAIL_BYTES_MAX: usize = 64 * 1024;

/// Keeps the last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    kept: VecDeque<u8>,
    left_out: u64,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let useful = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
        let excess = (self.kept.len() + useful.len()).saturating_sub(TAIL_BYTES_MAX);
        self.kept.drain(..excess);
        self.kept.extend(useful);
        self.left_out += (bytes.len() - useful.len() + excess) as u64;
    }

    /// Returns the last bytes of the stream as text, or `None` if the stream was empty.
    pub(crate) fn into_text(mut self) -> Option<String> {
        let bytes = self.kept.make_contiguous();
        (!bytes.is_empty()).then(|| text(bytes, self.left_out))
    }
}

/// Returns `text` in a form that both stores accept.
pub(crate) fn clean(text: String) -> String {
    let fits = text.len() <= TAIL_BYTES_MAX && !text.contains('\0');
    if fits { text } else { self::text(text.as_bytes(), 0) }
}

/// Decodes the bytes. NUL and invalid UTF-8 become U+FFFD, because PostgreSQL refuses them. U+FFFD
/// may be longer than the bytes that it replaces, so the text is cut again.
fn text(bytes: &[u8], mut left_out: u64) -> String {
    let mut start = 0;
    if left_out > 0 {
        // Skips the last bytes of a character whose first bytes were dropped.
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

/// Returns the decoded characters, each with the number of bytes from which it was decoded.
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
    fn tail_keeps_a_short_output() {
        assert_eq!(tail_of(&[b"one ", "zwei ü".as_bytes()]).as_deref(), Some("one zwei ü"));
        assert_eq!(tail_of(&[]), None);
    }

    #[test]
    fn tail_of_a_long_output_notes_what_is_missing() {
        let text = tail_of(&[&[b'a'; 1000], &[b'b'; TAIL_BYTES_MAX - 1], b"c"]).unwrap();
        let rest = text.strip_prefix("… 1000 bytes left out\n").unwrap();
        assert_eq!(rest.len(), TAIL_BYTES_MAX);
        assert!(rest.ends_with("bc") && !rest.contains('a'));
    }

    #[test]
    fn tail_cuts_one_huge_chunk() {
        let text = tail_of(&[b"x", &vec![b'y'; 10 * TAIL_BYTES_MAX]]).unwrap();
        let missing = 9 * TAIL_BYTES_MAX + 1;
        assert!(text.starts_with(&format!("… {missing} bytes left out\n")));
    }

    #[test]
    fn tail_replaces_nul_and_broken_characters() {
        assert_eq!(tail_of(&[b"a\0b\xffc"]).as_deref(), Some("a\u{fffd}b\u{fffd}c"));
    }

    #[test]
    fn tail_skips_a_cut_character() {
        let text = tail_of(&["ü".repeat(TAIL_BYTES_MAX / 2).as_bytes(), b"!"]).unwrap();
        assert!(text.starts_with("… 2 bytes left out\nü"), "{}", &text[..40]);
    }

    #[test]
    fn tail_stays_within_its_limit_despite_replacements() {
        let text = tail_of(&[&[0; TAIL_BYTES_MAX]]).unwrap();
        assert!(text.len() <= TAIL_BYTES_MAX + 40, "{}", text.len());
        let kept = TAIL_BYTES_MAX / 3;
        assert!(text.starts_with(&format!("… {} bytes left out", TAIL_BYTES_MAX - kept)));
    }
}
