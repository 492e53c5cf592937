//! The log of an attempt: the standard output and standard error of the attempt in order of
//! arrival, with timestamps.
//!
//! The offset of a piece of output is the number of bytes that the attempt printed before it,
//! including bytes that were not stored. A reader that remembers its last offset gets only new
//! text. The offset also shows whether bytes before the new text were not stored.

use serde::Serialize;

use crate::named_enum;
use crate::time::{Span, Timestamp};

/// The first characters of every stored log, which distinguish a log from plain text. A stored text
/// without `MARK` is the response to an HTTP call, or the output of an older version that stored
/// only standard output.
const MARK: &str = "\u{1e}log1 ";

/// Maximum number of characters of a log line that is used as an error message.
const CAUSE_CHARS_MAX: usize = 300;

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LogStream {
        /// Standard output, and all output that belongs to no stream.
        Stdout => "stdout",
        Stderr => "stderr",
    }
}

impl LogStream {
    const fn letter(self) -> char {
        match self {
            Self::Stdout => 'o',
            Self::Stderr => 'e',
        }
    }
}

/// A piece of an attempt's output that arrived at one time on one stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogChunk {
    pub stream: LogStream,
    /// Time at which the first byte of the piece arrived; `None` for plain text.
    pub at: Option<Timestamp>,
    /// Number of bytes that the attempt printed on both streams before this piece.
    pub offset: u64,
    pub text: String,
}

impl LogChunk {
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.text.len() as u64)
    }
}

/// The stored part of an attempt's output.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunLog {
    /// Pieces of output in order of arrival. If a piece begins after the end of the previous piece,
    /// the text between the two pieces was not stored.
    pub chunks: Vec<LogChunk>,
    /// Total number of bytes that the attempt printed.
    pub total: u64,
}

/// A line of a log, or a part of a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LogLine {
    pub stream: LogStream,
    /// Time at which the first byte of the line arrived; `None` if the time was not recorded.
    pub at: Option<Timestamp>,
    /// Number of bytes that the attempt printed on both streams before this line.
    pub offset: u64,
    /// Number of bytes of output directly before this line that were not stored.
    pub left_out_before: u64,
    /// Without the newline.
    pub text: String,
    /// True if the end of the log line has not arrived or was not stored.
    pub is_partial: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogLines {
    /// Log lines in the order in which their first bytes arrived.
    pub lines: Vec<LogLine>,
    /// Number of bytes of output after the last line that were not stored.
    pub left_out_after: u64,
}

impl RunLog {
    /// Returns the stored form.
    pub fn encode(&self) -> String {
        let base =
            self.chunks.iter().find_map(|chunk| chunk.at).unwrap_or(Timestamp::from_micros(0));
        let texts: usize = self.chunks.iter().map(|chunk| chunk.text.len() + 24).sum();
        let mut encoded = String::with_capacity(texts + 64);
        encoded.push_str(&format!("{MARK}{} {}\n", self.total, base.as_micros()));
        let mut expected = 0;
        for chunk in &self.chunks {
            let after = chunk.at.unwrap_or(base).since(base).as_millis();
            let (letter, bytes) = (chunk.stream.letter(), chunk.text.len());
            encoded.push_str(&format!("{letter} {after} {bytes}"));
            if chunk.offset != expected {
                encoded.push_str(&format!(" {}", chunk.offset));
            }
            encoded.push('\n');
            encoded.push_str(&chunk.text);
            expected = chunk.end();
        }
        encoded
    }

    /// Reads the stored form of a log. A text that is not a valid log counts as plain text. From a
    /// truncated log, everything before the cut is kept.
    pub fn decode(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|| Self::plain(text))
    }

    fn read(text: &str) -> Option<Self> {
        let (header, mut rest) = text.strip_prefix(MARK)?.split_once('\n')?;
        let (total, base) = header.split_once(' ')?;
        let base = Timestamp::from_micros(base.parse().ok()?);
        let mut log = Self { chunks: Vec::new(), total: total.parse().ok()? };
        let mut expected = 0;
        while let Some((header, after)) = rest.split_once('\n') {
            let Some((stream, millis, bytes, offset)) = read_header(header) else { break };
            let kept = after.get(..bytes).unwrap_or(after);
            let chunk = LogChunk {
                stream,
                at: Some(base.saturating_add(Span::from_millis(millis))),
                offset: offset.unwrap_or(expected),
                text: kept.to_owned(),
            };
            rest = &after[kept.len()..];
            if chunk.offset < expected || chunk.end() > log.total {
                break;
            }
            expected = chunk.end();
            log.chunks.push(chunk);
        }
        Some(log)
    }

    fn plain(text: &str) -> Self {
        let cut = text.strip_prefix("… ").and_then(|rest| {
            let (bytes, rest) = rest.split_once(" bytes left out\n")?;
            Some((bytes.parse::<u32>().ok()?.into(), rest))
        });
        let (offset, text) = cut.unwrap_or((0, text));
        let chunk = LogChunk { stream: LogStream::Stdout, at: None, offset, text: text.to_owned() };
        let total = chunk.end();
        Self { chunks: if text.is_empty() { Vec::new() } else { vec![chunk] }, total }
    }

    /// Returns the lines of one or both streams, without the first `from` bytes of output.
    pub fn lines(&self, from: u64, only: Option<LogStream>) -> LogLines {
        let mut all: Vec<LogLine> = Vec::new();
        // The index of the unfinished line of each stream. The other stream may print before the
        // unfinished line ends.
        let mut open: [Option<usize>; 2] = [None; 2];
        let (mut expected, mut left_out) = (from, 0);
        for chunk in self.chunks.iter().filter(|chunk| chunk.end() > from) {
            let known = from.saturating_sub(chunk.offset) as usize;
            let (mut offset, Some(text)) = (chunk.offset + known as u64, chunk.text.get(known..))
            else {
                continue;
            };
            if offset > expected {
                left_out += offset - expected;
                open = [None; 2];
            }
            expected = chunk.end();
            if only.is_some_and(|only| only != chunk.stream) {
                continue;
            }
            for piece in text.split_inclusive('\n') {
                let content = piece.strip_suffix('\n');
                let open = &mut open[chunk.stream as usize];
                let at = *open.get_or_insert(all.len());
                if at == all.len() {
                    all.push(LogLine {
                        stream: chunk.stream,
                        at: chunk.at,
                        offset,
                        left_out_before: std::mem::take(&mut left_out),
                        text: String::new(),
                        is_partial: true,
                    });
                }
                all[at].text.push_str(content.unwrap_or(piece));
                if content.is_some() {
                    all[at].is_partial = false;
                    *open = None;
                }
                offset += piece.len() as u64;
            }
        }
        let left_out_after = left_out + self.total.saturating_sub(expected);
        LogLines { lines: all, left_out_after }
    }

    /// Returns the output of one stream or of both streams as text.
    pub fn text(&self, only: Option<LogStream>) -> String {
        self.lines(0, only).text()
    }

    /// Returns the last non-blank line of a stream, which is used as an error message.
    pub fn last_line(&self, stream: LogStream) -> Option<String> {
        let lines = self.lines(0, Some(stream)).lines;
        lines.iter().rev().map(|line| printable(&line.text)).find(|line| !line.is_empty())
    }
}

fn read_header(header: &str) -> Option<(LogStream, u64, usize, Option<u64>)> {
    let mut words = header.split(' ');
    let letter = words.next()?;
    let stream = LogStream::ALL.into_iter().find(|stream| letter == stream.letter().to_string())?;
    let (millis, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let offset = words.next().map(str::parse).transpose().ok()?;
    Some((stream, millis, bytes, offset))
}

/// Removes control characters and escape sequences from a line, and shortens a long line.
fn printable(line: &str) -> String {
    let mut shown = String::new();
    let mut chars = line.trim().chars().peekable();
    let mut count = 0;
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // An escape sequence for a colour or a cursor movement consists of parameters and one
            // final letter.
            let _ = chars.by_ref().find(|c| ('@'..='~').contains(c));
        } else if count == CAUSE_CHARS_MAX {
            shown.push('…');
            break;
        } else if !c.is_control() {
            shown.push(c);
            count += 1;
        }
    }
    shown.trim().to_owned()
}

impl LogLines {
    #[must_use]
    pub fn tail(mut self, count: usize) -> Self {
        let first = self.lines.len().saturating_sub(count);
        self.lines.drain(..first);
        self
    }

    /// Returns all lines as one text, with a note wherever bytes were not stored.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            begin_line(&mut text, line.left_out_before);
            text.push_str(&line.text);
            if !line.is_partial {
                text.push('\n');
            }
        }
        if self.left_out_after > 0 {
            begin_line(&mut text, self.left_out_after);
        }
        text
    }

    pub fn has_gap(&self) -> bool {
        self.left_out_after > 0 || self.lines.iter().any(|line| line.left_out_before > 0)
    }
}

fn begin_line(text: &mut String, left_out: u64) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if left_out > 0 {
        text.push_str(&format!("… {left_out} bytes left out\n"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use LogStream::{Stderr, Stdout};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(1_790_000_000_000_000 + millis * 1000)
    }

    fn log(pieces: &[(LogStream, &str)]) -> RunLog {
        let mut log = RunLog::default();
        for (n, (stream, text)) in pieces.iter().enumerate() {
            let (at, offset) = (Some(at(n as i64)), log.total);
            log.total += text.len() as u64;
            log.chunks.push(LogChunk { stream: *stream, at, offset, text: (*text).into() });
        }
        log
    }

    fn shown(lines: &LogLines) -> Vec<(LogStream, &str, bool)> {
        lines.lines.iter().map(|line| (line.stream, line.text.as_str(), line.is_partial)).collect()
    }

    #[test]
    fn lines_are_whole_although_the_other_stream_prints_in_between() {
        let log = log(&[(Stdout, "a\nb"), (Stderr, "x\ny"), (Stdout, "b\nc"), (Stderr, "y\n")]);
        let lines = log.lines(0, None);
        let expected = [
            (Stdout, "a", false),
            (Stdout, "bb", false),
            (Stderr, "x", false),
            (Stderr, "yy", false),
            (Stdout, "c", true),
        ];
        assert_eq!(shown(&lines), expected);
        assert_eq!((lines.lines[3].at, lines.lines[3].offset), (Some(at(1)), 5));
        assert_eq!(lines.text(), "a\nbb\nx\nyy\nc");
        assert_eq!(log.text(Some(Stdout)), "a\nbb\nc");
        assert_eq!(log.text(Some(Stderr)), "x\nyy\n");
    }

    #[test]
    fn gap_is_shown_once_with_its_size_and_ends_lines() {
        let mut log = log(&[(Stdout, "head\nhal"), (Stderr, "f\n"), (Stdout, "tail\n")]);
        log.chunks[1].offset += 1000;
        log.chunks[2].offset += 1000;
        log.total += 1000;
        assert_eq!(log.text(None), "head\nhal\n… 1000 bytes left out\nf\ntail\n");
        assert_eq!(log.text(Some(Stdout)), "head\nhal\n… 1000 bytes left out\ntail\n");
        assert!(log.lines(0, None).has_gap() && !log.lines(1008, None).has_gap());
        log.total += 5;
        assert!(log.text(None).ends_with("tail\n… 5 bytes left out\n"));
    }

    #[test]
    fn reading_continues_in_the_middle_of_a_chunk() {
        let log = log(&[(Stdout, "one\ntwo\nthr"), (Stderr, "x\n")]);
        assert_eq!(log.lines(4, None).text(), "two\nthr\nx\n");
        assert_eq!(shown(&log.lines(9, None)), [(Stdout, "hr", true), (Stderr, "x", false)]);
        assert_eq!(log.lines(13, None), LogLines::default());
    }

    #[test]
    fn plain_text_is_a_log_without_times() {
        let log = RunLog::decode("… 100 bytes left out\nrest\n");
        assert_eq!((log.total, log.chunks[0].at), (105, None));
        assert_eq!(log.text(None), "… 100 bytes left out\nrest\n");
        assert_eq!(RunLog::decode("… few bytes left out\n").text(None), "… few bytes left out\n");
        assert_eq!(RunLog::decode(""), RunLog::default());
    }

    #[test]
    fn truncated_log_keeps_everything_before_the_cut() {
        let whole = log(&[(Stdout, "één\n"), (Stderr, "ü\n")]);
        let encoded = whole.encode();
        let header = encoded.find('\n').unwrap() + 1;
        for cut in (header..encoded.len()).filter(|cut| encoded.is_char_boundary(*cut)) {
            let read = RunLog::decode(&encoded[..cut]);
            assert_eq!(read.total, whole.total);
            for (kept, chunk) in read.chunks.iter().zip(&whole.chunks) {
                assert!(chunk.text.starts_with(&kept.text), "{read:?}");
            }
        }
        assert_eq!(RunLog::decode("\u{1e}log1 9 0\no 0 99\nfive\n").total, 9);
    }

    #[test]
    fn last_line_is_cleaned_for_an_error_message() {
        let printed = log(&[(Stdout, "no\n"), (Stderr, "a\n\u{1b}[31mboom\u{1b}[0m\t!\n \n\n")]);
        assert_eq!(printed.last_line(Stderr).as_deref(), Some("boom!"));
        assert_eq!(log(&[(Stderr, "\n \n")]).last_line(Stderr), None);
        let long = log(&[(Stderr, &"x".repeat(5000))]).last_line(Stderr).unwrap();
        assert_eq!(long.chars().count(), CAUSE_CHARS_MAX + 1);
    }

    proptest! {
        #[test]
        fn every_log_reads_back_as_stored(
            pieces in prop::collection::vec((any::<bool>(), "[a-zé\n\u{1e} 0-9]{0,12}", 0_u64..50), 0..20)
        ) {
            let mut log = RunLog::default();
            for (n, (is_error, text, gap)) in pieces.into_iter().enumerate() {
                if text.is_empty() { continue }
                let stream = if is_error { Stderr } else { Stdout };
                let (at, offset) = (Some(at(n as i64)), log.total + gap);
                log.total = offset + text.len() as u64;
                log.chunks.push(LogChunk { stream, at, offset, text });
            }
            prop_assert_eq!(RunLog::decode(&log.encode()), log);
        }

        #[test]
        fn every_text_is_a_log(text in "(\u{1e}log1 )?[oe0-9 \nx]{0,40}") {
            let log = RunLog::decode(&text);
            let _ = (log.text(None), log.last_line(Stderr));
        }

        /// A reader that continues from its last offset gets every byte exactly once.
        #[test]
        fn no_byte_is_read_twice(
            pieces in prop::collection::vec((any::<bool>(), "[a-b\n]{1,6}"), 1..12),
            cuts in prop::collection::vec(1_usize..6, 0..6),
        ) {
            let pieces: Vec<_> = pieces
                .iter()
                .map(|(is_error, text)| (if *is_error { Stderr } else { Stdout }, text.as_str()))
                .collect();
            let whole = log(&pieces);
            let (mut read, mut from, mut upto) = (0, 0, 0);
            for cut in cuts.into_iter().chain([99]) {
                upto = (upto + cut).min(pieces.len());
                let so_far = log(&pieces[..upto]);
                let new = so_far.lines(from, None);
                prop_assert!(!new.has_gap());
                read += new.lines.iter().map(|l| l.text.len() + usize::from(!l.is_partial)).sum::<usize>();
                from = so_far.total;
            }
            prop_assert_eq!(read as u64, whole.total);
        }
    }
}
