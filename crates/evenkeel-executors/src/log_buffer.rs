//! Keeps the beginning and the end of an attempt's log, within a limit in bytes.

use std::collections::VecDeque;

use evenkeel_core::secret::Masks;
use evenkeel_core::{LogChunk, LogStream, RunLog, Span, Timestamp};

pub const LOG_BYTES_DEFAULT: usize = 256 * 1024;

/// Output of one stream that arrives within this time becomes one chunk of the log.
const TOGETHER: Span = Span::from_millis(10);

/// Maximum size in bytes of a chunk of the log. Chunks are small, so that dropping the oldest chunk
/// drops little text.
const CHUNK_BYTES_MAX: usize = 8 * 1024;

/// Memory in bytes that a chunk of the log needs in addition to its text. If only the text counted
/// towards the limit, a program that prints single bytes could fill the memory.
const CHUNK_COST: usize = 32;

#[derive(Default)]
pub(crate) struct LogBuffer {
    limit: usize,
    head: VecDeque<LogChunk>,
    head_cost: usize,
    is_head_full: bool,
    tail: VecDeque<LogChunk>,
    tail_cost: usize,
    total: u64,
    decoders: [Decoder; 2],
    /// Text of each output stream that is held back because it may be the beginning of a secret.
    held: [String; 2],
}

impl LogBuffer {
    /// Returns an empty log that keeps about `limit` bytes: a quarter for the beginning of the
    /// output, the rest for its end.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Appends output that arrived at the time `at`. Secrets are masked before the log is cut, so
    /// that no part of a secret is kept, even if the secret arrives in pieces.
    pub(crate) fn push(&mut self, stream: LogStream, at: Timestamp, bytes: &[u8], masks: &Masks) {
        let mut text = self.decoders[stream as usize].decode(bytes);
        if !masks.is_empty() {
            let held = &mut self.held[stream as usize];
            held.push_str(&text);
            text = masks.drain(held);
        }
        self.push_text(stream, at, &text);
    }

    /// Appends text that was held back because it could be the beginning of a secret. An incomplete
    /// character at the end of the output becomes U+FFFD.
    pub(crate) fn finish(&mut self, at: Timestamp, masks: &Masks) {
        for stream in LogStream::ALL {
            let mut text = std::mem::take(&mut self.held[stream as usize]);
            text.push_str(self.decoders[stream as usize].finish());
            masks.mask(&mut text);
            self.push_text(stream, at, &text);
        }
    }

    fn push_text(&mut self, stream: LogStream, at: Timestamp, mut text: &str) {
        while !text.is_empty() {
            let (piece, rest) = text.split_at(boundary(text, self.chunk_max()));
            text = rest;
            self.push_piece(stream, at, piece);
        }
    }

    fn push_piece(&mut self, stream: LogStream, at: Timestamp, mut piece: &str) {
        if !self.is_head_full {
            let available = (self.limit / 4).saturating_sub(self.head_cost + CHUNK_COST);
            let (fits, rest) = piece.split_at(boundary(piece, available));
            self.is_head_full = !rest.is_empty();
            self.head_cost += self.append(true, stream, at, fits);
            piece = rest;
        }
        self.tail_cost += self.append(false, stream, at, piece);
        let most = self.limit - self.limit / 4;
        while self.tail_cost > most {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_cost -= cost(&oldest);
        }
    }

    /// Appends text to the beginning or the end of the log, and returns how many bytes this used.
    fn append(&mut self, is_head: bool, stream: LogStream, at: Timestamp, text: &str) -> usize {
        if text.is_empty() {
            return 0;
        }
        let (offset, most) = (self.total, self.chunk_max());
        self.total += text.len() as u64;
        let end = if is_head { &mut self.head } else { &mut self.tail };
        if let Some(last) = end.back_mut()
            && last.stream == stream
            && last.text.len() + text.len() <= most
            && (!last.text.ends_with('\n') || last.at.is_some_and(|then| at.since(then) < TOGETHER))
        {
            last.text.push_str(text);
            return text.len();
        }
        end.push_back(LogChunk { stream, at: Some(at), offset, text: text.to_owned() });
        text.len() + CHUNK_COST
    }

    /// Returns the maximum size of a chunk, such that several chunks fit into the beginning and the
    /// end of a small log.
    fn chunk_max(&self) -> usize {
        (self.limit / 8).clamp(4, CHUNK_BYTES_MAX)
    }

    /// True if nothing was printed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the log so far in about `limit` bytes.
    pub(crate) fn snapshot(&self, limit: usize) -> RunLog {
        let all = || self.head.iter().chain(&self.tail);
        if limit >= self.limit || self.head_cost + self.tail_cost <= limit {
            return RunLog { chunks: all().cloned().collect(), total: self.total };
        }
        let mut chunks: Vec<LogChunk> = Vec::new();
        let mut available = limit / 4;
        for chunk in all() {
            let keep = boundary(&chunk.text, available.saturating_sub(CHUNK_COST));
            if keep > 0 {
                chunks.push(LogChunk { text: chunk.text[..keep].to_owned(), ..chunk.clone() });
            }
            if keep < chunk.text.len() {
                break;
            }
            available -= cost(chunk);
        }
        let shown = chunks.last().map_or(0, LogChunk::end);
        let mut end = Vec::new();
        let mut available = limit - limit / 4;
        for chunk in all().rev() {
            let keep = chunk.text.len().min(available.saturating_sub(CHUNK_COST));
            let known = shown.saturating_sub(chunk.offset) as usize;
            let from = ceiling(&chunk.text, (chunk.text.len() - keep).max(known));
            if from < chunk.text.len() {
                let (offset, text) = (chunk.offset + from as u64, chunk.text[from..].to_owned());
                end.push(LogChunk { offset, text, ..chunk.clone() });
            }
            if from > 0 {
                break;
            }
            available -= cost(chunk);
        }
        chunks.extend(end.into_iter().rev());
        RunLog { chunks, total: self.total }
    }
}

fn cost(chunk: &LogChunk) -> usize {
    chunk.text.len() + CHUNK_COST
}

/// Returns the last boundary between characters of `text` that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the first boundary between characters of `text` that is not before `at`.
fn ceiling(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Decodes output that arrives in pieces, which may be cut inside a character. NUL and invalid
/// UTF-8 become U+FFFD, because PostgreSQL refuses them.
#[derive(Default)]
struct Decoder {
    /// The first bytes of a character whose other bytes have not arrived yet.
    incomplete: Vec<u8>,
}

impl Decoder {
    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.incomplete);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.extend(chunk.valid().chars().map(|c| match c {
                '\0' => char::REPLACEMENT_CHARACTER,
                c => c,
            }));
            let invalid = chunk.invalid();
            let is_incomplete = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_incomplete {
                self.incomplete = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.incomplete).is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use LogStream::{Stderr, Stdout};
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn buffer(limit: usize, pieces: &[(LogStream, i64, &[u8])]) -> LogBuffer {
        let mut buffer = LogBuffer::new(limit);
        pieces.iter().for_each(|(stream, millis, bytes)| {
            buffer.push(*stream, at(*millis), bytes, &Masks::default());
        });
        buffer
    }

    #[test]
    fn log_keeps_both_streams_in_order_with_times() {
        let pieces: [(_, _, &[u8]); 5] = [
            (Stdout, 0, b"a\n"),
            (Stdout, 5, b"b\n"),
            (Stderr, 6, b"x\n"),
            (Stdout, 30, b"c"),
            (Stdout, 900, b"c\n"),
        ];
        let log = buffer(LOG_BYTES_DEFAULT, &pieces).snapshot(LOG_BYTES_DEFAULT);
        let chunks: Vec<_> =
            log.chunks.iter().map(|c| (c.stream, c.at.unwrap(), c.text.as_str())).collect();
        // Output of a stream at the same moment, or of the same line, is one chunk of the log.
        let expected =
            [(Stdout, at(0), "a\nb\n"), (Stderr, at(6), "x\n"), (Stdout, at(30), "cc\n")];
        assert_eq!(chunks, expected);
    }

    #[test]
    fn long_log_keeps_its_beginning_and_end() {
        let mut long = LogBuffer::new(4000);
        (0..1000).for_each(|n| {
            long.push(Stdout, at(0), format!("line {n}\n").as_bytes(), &Masks::default());
        });
        long.push(Stderr, at(0), b"the end\n", &Masks::default());
        for limit in [4000, 1000] {
            let text = long.snapshot(limit).text(None);
            assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 999\nthe end\n"));
            assert!(text.contains(" bytes left out\n"), "{text}");
            assert!(text.len() <= limit + 40, "{} bytes", text.len());
        }
    }

    #[test]
    fn log_joins_a_character_that_arrives_in_two_pieces() {
        let whole = buffer(1000, &[(Stdout, 0, &[0xc3]), (Stderr, 0, b"x"), (Stdout, 0, &[0xbc])]);
        assert_eq!(whole.snapshot(1000).text(Some(Stdout)), "ü");
        let mut broken = buffer(1000, &[(Stdout, 0, b"a\0b\xff\xc3"), (Stdout, 0, b"c\xe2\x82")]);
        broken.finish(at(0), &Masks::default());
        assert_eq!(broken.snapshot(1000).text(None), "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}");
    }

    #[test]
    fn log_masks_secrets_before_it_is_cut() {
        let masks = Masks::new(["hunter22"]);
        let mut cut = LogBuffer::new(400);
        for n in 0..200 {
            cut.push(Stdout, at(n), b"hun", &masks);
            cut.push(Stderr, at(n), b"x", &masks);
            cut.push(Stdout, at(n), b"ter22", &masks);
        }
        cut.push(Stdout, at(200), b"hunter", &masks);
        assert!(!cut.snapshot(300).text(None).contains("hun"));
        cut.finish(at(200), &masks);
        let text = cut.snapshot(300).text(Some(Stdout));
        assert!(text.ends_with("***hunter") && !text.contains("hunter22"), "{text}");
    }

    #[test]
    fn log_of_single_bytes_does_not_fill_the_memory() {
        let mut buffer = LogBuffer::new(10_000);
        (0..100_000).for_each(|n| {
            buffer.push(
                if n % 2 == 0 { Stdout } else { Stderr },
                at(n * 20),
                b"\n",
                &Masks::default(),
            );
        });
        assert!(buffer.head.len() + buffer.tail.len() <= 10_000 / CHUNK_COST);
        assert!(buffer.snapshot(10_000).encode().len() < 10_000);
    }

    proptest! {
        /// Checks that each chunk of the log is in the printed text at the chunk's offset.
        #[test]
        fn log_keeps_what_was_printed(
            pieces in prop::collection::vec((any::<bool>(), "[a-cü\n]{1,40}", 0_i64..30), 0..40),
            limit in 200_usize..2000,
            smaller in 150_usize..2000,
        ) {
            let (mut buffer, mut printed, mut now) = (LogBuffer::new(limit), String::new(), 0);
            for (is_error, text, later) in &pieces {
                now += later;
                buffer.push(if *is_error { Stderr } else { Stdout }, at(now), text.as_bytes(), &Masks::default());
                printed.push_str(text);
            }
            for log in [buffer.snapshot(limit), buffer.snapshot(smaller)] {
                prop_assert_eq!(log.total, printed.len() as u64);
                let mut expected = 0;
                for chunk in &log.chunks {
                    prop_assert!(chunk.offset >= expected);
                    let from = chunk.offset as usize;
                    prop_assert_eq!(&printed[from..from + chunk.text.len()], &chunk.text);
                    expected = chunk.end();
                }
                prop_assert_eq!(expected, log.total, "the end is always kept");
                prop_assert_eq!(&RunLog::decode(&log.encode()).text(None), &log.text(None));
            }
            if printed.len() + pieces.len() * CHUNK_COST <= limit / 4 {
                prop_assert!(!buffer.snapshot(limit).lines(0, None).has_gap());
            }
        }
    }
}
