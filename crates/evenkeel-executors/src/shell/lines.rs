//! What a body says on its standard output besides its output.
//!
//! What the lines look like is told to users at [`ShellExecutor`](super::ShellExecutor). Here they
//! are told from output, whatever pieces the pipe delivers.

use evenkeel_core::Progress;
use serde::Deserialize;
use serde_json::Value;

/// How a line for Evenkeel begins.
const MARK: &[u8] = b"@evenkeel ";

/// At most so many bytes of JSON in a checkpoint of a body: it has to fit into a variable.
pub(super) const CHECKPOINT_TEXT_MAX: usize = 64 * 1024;

/// A longer line is output, whatever it begins with. There is room for a checkpoint whose JSON is
/// not written in the shortest way.
const LINE_BYTES_MAX: usize = 2 * CHECKPOINT_TEXT_MAX;

/// Tells lines for Evenkeel from output, however they are cut into pieces.
#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of a line that is for Evenkeel or may turn out to be.
    held: Vec<u8>,
    /// Is this line output?
    is_output: bool,
}

/// A piece of what a body has written.
#[derive(PartialEq, Debug)]
pub(super) enum Piece<'a> {
    /// Output.
    Output(&'a [u8]),
    /// A line for Evenkeel.
    Said(Said),
    /// A line that looks like one, and what is wrong with it. It comes as output, too.
    Garbled(String),
}

/// What one line says.
#[derive(PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    progress: Option<SaidProgress>,
    items: Option<SaidItems>,
    /// JSON, not longer than [`CHECKPOINT_TEXT_MAX`] as text.
    checkpoint: Option<Value>,
}

#[derive(PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidProgress {
    done: Option<u64>,
    total: Option<u64>,
    message: Option<String>,
}

#[derive(PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidItems {
    crawled: Option<u32>,
    indexed: Option<u32>,
}

impl Said {
    fn parse(json: &[u8]) -> Result<Self, String> {
        let said: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if said == Self::default() {
            return Err("it says nothing".into());
        }
        match said.checkpoint() {
            Some(text) if text.len() > CHECKPOINT_TEXT_MAX => {
                Err(format!("a checkpoint of {} bytes is too large", text.len()))
            }
            _ => Ok(said),
        }
    }

    /// How far it has come, with its items; `None` if it does not say.
    pub(super) fn progress(&self) -> Option<Progress> {
        if self.progress.is_none() && self.items.is_none() {
            return None;
        }
        let (progress, items) = (self.progress.as_ref(), self.items.as_ref());
        Some(Progress {
            done: progress.and_then(|progress| progress.done),
            total: progress.and_then(|progress| progress.total),
            message: progress.and_then(|progress| progress.message.clone()),
            items_crawled: items.and_then(|items| items.crawled).map(i64::from),
            items_indexed: items.and_then(|items| items.indexed).map(i64::from),
        })
    }

    /// What the next attempt is to be given.
    pub(super) fn checkpoint(&self) -> Option<String> {
        self.checkpoint.as_ref().map(Value::to_string)
    }
}

impl Lines {
    /// Takes in what comes next.
    pub(super) fn push(&mut self, bytes: &[u8], hear: &mut impl FnMut(Piece<'_>)) {
        // Lines of plain output in a row are passed on together.
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
                hear(Piece::Output(&bytes[output_from..from]));
            }
            output_from = at;
            self.held.extend_from_slice(part);
            let is_too_long = self.held.len() > LINE_BYTES_MAX;
            if is_too_long || !may_be_marked(&self.held) {
                if is_too_long {
                    hear(Piece::Garbled(format!("it is longer than {LINE_BYTES_MAX} bytes")));
                }
                hear(Piece::Output(&self.held));
                self.held = Vec::new();
                self.is_output = !ends;
            } else if ends {
                self.end_line(hear);
            }
        }
        if output_from < bytes.len() {
            hear(Piece::Output(&bytes[output_from..]));
        }
    }

    /// Nothing more comes: the last line may lack its end.
    pub(super) fn finish(&mut self, hear: &mut impl FnMut(Piece<'_>)) {
        if !self.held.is_empty() {
            self.end_line(hear);
        }
    }

    fn end_line(&mut self, hear: &mut impl FnMut(Piece<'_>)) {
        let line = std::mem::take(&mut self.held);
        match line.strip_prefix(MARK).map(Said::parse) {
            Some(Ok(said)) => hear(Piece::Said(said)),
            Some(Err(message)) => {
                hear(Piece::Garbled(message));
                hear(Piece::Output(&line));
            }
            None => hear(Piece::Output(&line)),
        }
    }
}

/// Does a line that begins like this begin with the mark, as far as it goes?
fn may_be_marked(line: &[u8]) -> bool {
    line.iter().zip(MARK).all(|(byte, mark)| byte == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All output, all that was said, and the number of garbled lines.
    fn read(chunks: &[&[u8]]) -> (String, Vec<Said>, usize) {
        let (mut output, mut said, mut garbled) = (Vec::new(), Vec::new(), 0);
        let mut hear = |piece: Piece<'_>| match piece {
            Piece::Output(bytes) => output.extend_from_slice(bytes),
            Piece::Said(words) => said.push(words),
            Piece::Garbled(_) => garbled += 1,
        };
        let mut lines = Lines::default();
        chunks.iter().for_each(|chunk| lines.push(chunk, &mut hear));
        lines.finish(&mut hear);
        (String::from_utf8(output).unwrap(), said, garbled)
    }

    const TEXT: &str = "one\n@evenkeel {\"progress\": {\"done\": 5, \"message\": \"é\"}}\n\n\
        x @evenkeel {\"items\": {}}\n@even\n@evenkeel\n@evenkeel {\"checkpoint\": [1, {}]}\r\n\
        @evenkeel {\"items\": {\"crawled\": 3, \"indexed\": 2}}";

    #[test]
    fn lines_are_told_apart_however_they_are_cut() {
        let (output, said, garbled) = read(&[TEXT.as_bytes()]);
        assert_eq!(output, "one\n\nx @evenkeel {\"items\": {}}\n@even\n@evenkeel\n");
        assert_eq!(said.len(), 3);
        assert_eq!(garbled, 0);
        let progress = said[0].progress().unwrap();
        assert_eq!((progress.done, progress.total), (Some(5), None));
        assert_eq!(progress.message.as_deref(), Some("é"));
        assert_eq!(said[1].checkpoint().as_deref(), Some("[1,{}]"));
        assert_eq!(said[1].progress(), None);
        let items = said[2].progress().unwrap();
        assert_eq!((items.items_crawled, items.items_indexed), (Some(3), Some(2)));
        for size in 1..TEXT.len() {
            let chunks: Vec<&[u8]> = TEXT.as_bytes().chunks(size).collect();
            assert_eq!(read(&chunks), (output.clone(), read(&[TEXT.as_bytes()]).1, 0), "{size}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_stays_in_the_output() {
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
    fn a_checkpoint_has_a_bound_and_so_has_a_line() {
        let fits = "x".repeat(CHECKPOINT_TEXT_MAX - 2);
        let line = |text: &str| format!("@evenkeel {{\"checkpoint\": \"{text}\"}}\n");
        assert_eq!(read(&[line(&fits).as_bytes()]).1[0].checkpoint().unwrap().len(), 64 * 1024);
        let larger = line(&format!("{fits}x"));
        assert_eq!(read(&[larger.as_bytes()]), (larger.clone(), Vec::new(), 1));
        // Not even looked at, but noted.
        let endless = format!("{}after\n", line(&"x".repeat(LINE_BYTES_MAX)));
        let chunks: Vec<&[u8]> = endless.as_bytes().chunks(1000).collect();
        assert_eq!(read(&chunks), (endless.clone(), Vec::new(), 1));
    }
}
