//! Finds the lines for Evenkeel (`@evenkeel {…}`) in the standard output of a program.
//! `docs/executors.md` describes these lines.

use evenkeel_core::Progress;
use serde::Deserialize;
use serde_json::Value;

/// The beginning of every line for Evenkeel.
const MARK: &[u8] = b"@evenkeel ";

/// Maximum number of bytes of a checkpoint as JSON, because the next attempt gets the checkpoint in
/// an environment variable.
pub(super) const CHECKPOINT_TEXT_MAX: usize = 64 * 1024;

/// Maximum number of bytes of a line for Evenkeel (`@evenkeel {…}`). A longer line counts as
/// output, even if it begins with `@evenkeel`.
const LINE_BYTES_MAX: usize = 2 * CHECKPOINT_TEXT_MAX;

/// Separates lines for Evenkeel from other output, no matter how the output is split into chunks.
#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of an incomplete line of output that is or may be a line for Evenkeel.
    held: Vec<u8>,
    /// True if the current line is not a line for Evenkeel.
    is_output: bool,
}

/// A piece of the standard output.
#[derive(PartialEq, Debug)]
pub(super) enum Piece<'a> {
    Output(&'a [u8]),
    Message(Message),
    /// The error message about a line for Evenkeel that cannot be parsed. An invalid line for
    /// Evenkeel is also passed on as output.
    Invalid(String),
}

/// The content of one line for Evenkeel.
#[derive(PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    progress: Option<MessageProgress>,
    items: Option<MessageItems>,
    /// A checkpoint of at most [`CHECKPOINT_TEXT_MAX`] bytes as text.
    checkpoint: Option<Value>,
}

#[derive(PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageProgress {
    done: Option<u64>,
    total: Option<u64>,
    message: Option<String>,
}

#[derive(PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageItems {
    crawled: Option<u32>,
    indexed: Option<u32>,
}

impl Message {
    fn parse(json: &[u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if message == Self::default() {
            return Err("it is empty".into());
        }
        match message.checkpoint() {
            Some(text) if text.len() > CHECKPOINT_TEXT_MAX => {
                Err(format!("a checkpoint of {} bytes is too large", text.len()))
            }
            _ => Ok(message),
        }
    }

    /// Returns the progress and the item counts in this line, or `None` if the line has neither.
    pub(super) fn progress(&self) -> Option<Progress> {
        if self.progress.is_none() && self.items.is_none() {
            return None;
        }
        let (progress, items) = (self.progress.as_ref(), self.items.as_ref());
        Some(Progress {
            done: progress.and_then(|progress| progress.done),
            total: progress.and_then(|progress| progress.total),
            message: progress.and_then(|progress| progress.message.clone()),
            items_processed: items.and_then(|items| items.crawled).map(i64::from),
            items_saved: items.and_then(|items| items.indexed).map(i64::from),
        })
    }

    pub(super) fn checkpoint(&self) -> Option<String> {
        self.checkpoint.as_ref().map(Value::to_string)
    }
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8], emit: &mut impl FnMut(Piece<'_>)) {
        // Consecutive lines that are not for Evenkeel are emitted together.
        let mut output_from = 0;
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes[at..].iter().position(|byte| *byte == b'\n');
            let (part, ends) = match end {
                Some(n) => (&bytes[at..=at + n], true),
                None => (&bytes[at..], false),
            };
            let from = at;
            at += part.len();
            if self.held.is_empty() && (self.is_output || !may_be_marked(part)) {
                self.is_output = !ends;
                continue;
            }
            if output_from < from {
                emit(Piece::Output(&bytes[output_from..from]));
            }
            output_from = at;
            self.held.extend_from_slice(part);
            let is_too_long = self.held.len() > LINE_BYTES_MAX;
            if is_too_long || !may_be_marked(&self.held) {
                if is_too_long {
                    emit(Piece::Invalid(format!("it is longer than {LINE_BYTES_MAX} bytes")));
                }
                emit(Piece::Output(&self.held));
                self.held = Vec::new();
                self.is_output = !ends;
            } else if ends {
                self.end_line(emit);
            }
        }
        if output_from < bytes.len() {
            emit(Piece::Output(&bytes[output_from..]));
        }
    }

    /// Emits the last line of output, which has no line break.
    pub(super) fn finish(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        if !self.held.is_empty() {
            self.end_line(emit);
        }
    }

    fn end_line(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        let line = std::mem::take(&mut self.held);
        match line.strip_prefix(MARK).map(Message::parse) {
            Some(Ok(message)) => emit(Piece::Message(message)),
            Some(Err(error)) => {
                emit(Piece::Invalid(error));
                emit(Piece::Output(&line));
            }
            None => emit(Piece::Output(&line)),
        }
    }
}

/// True if a line that begins with `line` can still become a line for Evenkeel.
fn may_be_marked(line: &[u8]) -> bool {
    line.iter().zip(MARK).all(|(byte, mark)| byte == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output, the messages for Evenkeel, and the number of invalid lines for Evenkeel.
    fn read(chunks: &[&[u8]]) -> (String, Vec<Message>, usize) {
        let (mut output, mut messages, mut invalid) = (Vec::new(), Vec::new(), 0);
        let mut emit = |piece: Piece<'_>| match piece {
            Piece::Output(bytes) => output.extend_from_slice(bytes),
            Piece::Message(message) => messages.push(message),
            Piece::Invalid(_) => invalid += 1,
        };
        let mut lines = Lines::default();
        chunks.iter().for_each(|chunk| lines.push(chunk, &mut emit));
        lines.finish(&mut emit);
        (String::from_utf8(output).unwrap(), messages, invalid)
    }

    const TEXT: &str = "one\n@evenkeel {\"progress\": {\"done\": 5, \"message\": \"é\"}}\n\n\
        x @evenkeel {\"items\": {}}\n@even\n@evenkeel\n@evenkeel {\"checkpoint\": [1, {}]}\r\n\
        @evenkeel {\"items\": {\"crawled\": 3, \"indexed\": 2}}";

    #[test]
    fn messages_are_found_however_the_output_is_split() {
        let (output, messages, invalid) = read(&[TEXT.as_bytes()]);
        assert_eq!(output, "one\n\nx @evenkeel {\"items\": {}}\n@even\n@evenkeel\n");
        assert_eq!(messages.len(), 3);
        assert_eq!(invalid, 0);
        let progress = messages[0].progress().unwrap();
        assert_eq!((progress.done, progress.total), (Some(5), None));
        assert_eq!(progress.message.as_deref(), Some("é"));
        assert_eq!(messages[1].checkpoint().as_deref(), Some("[1,{}]"));
        assert_eq!(messages[1].progress(), None);
        let items = messages[2].progress().unwrap();
        assert_eq!((items.items_processed, items.items_saved), (Some(3), Some(2)));
        for size in 1..TEXT.len() {
            let chunks: Vec<&[u8]> = TEXT.as_bytes().chunks(size).collect();
            assert_eq!(read(&chunks), (output.clone(), read(&[TEXT.as_bytes()]).1, 0), "{size}");
        }
    }

    #[test]
    fn invalid_message_stays_in_the_output() {
        for line in [
            "@evenkeel progress\n",
            "@evenkeel {}\n",
            "@evenkeel {\"checkpoint\": null}\n",
            "@evenkeel {\"itms\": {\"crawled\": 3}}\n",
            "@evenkeel {\"items\": {\"crawled\": -3}}\n",
            "@evenkeel {\"progress\": {\"done\": \"5\"}}\n",
            "@evenkeel ",
        ] {
            assert_eq!(read(&[line.as_bytes()]), (line.to_owned(), Vec::new(), 1));
        }
    }

    #[test]
    fn checkpoints_and_lines_have_a_size_limit() {
        let fits = "x".repeat(CHECKPOINT_TEXT_MAX - 2);
        let line = |text: &str| format!("@evenkeel {{\"checkpoint\": \"{text}\"}}\n");
        assert_eq!(read(&[line(&fits).as_bytes()]).1[0].checkpoint().unwrap().len(), 64 * 1024);
        let larger = line(&format!("{fits}x"));
        assert_eq!(read(&[larger.as_bytes()]), (larger.clone(), Vec::new(), 1));
        // A line for Evenkeel above `LINE_BYTES_MAX` is not parsed, but counted as invalid.
        let endless = format!("{}after\n", line(&"x".repeat(LINE_BYTES_MAX)));
        let chunks: Vec<&[u8]> = endless.as_bytes().chunks(1000).collect();
        assert_eq!(read(&chunks), (endless.clone(), Vec::new(), 1));
    }
}
