//! Passes the output of a program to the live report of the attempt.

use evenkeel_core::{LogStream, Progress, RunLog};

use super::lines::{Lines, Piece};
use crate::LiveReport;

/// Passes a program's output to the log, and its lines for Evenkeel to the live report.
pub(super) struct Output {
    live: LiveReport,
    lines: Lines,
    messages: Messages,
}

#[derive(Default)]
struct Messages {
    items: Progress,
    has_warned: bool,
}

impl Output {
    pub(super) fn new(live: LiveReport) -> Self {
        Self { live, lines: Lines::default(), messages: Messages::default() }
    }

    pub(super) fn push(&mut self, stream: LogStream, bytes: &[u8]) {
        let Self { live, lines, messages } = self;
        match stream {
            LogStream::Stdout => lines.push(bytes, &mut |piece| messages.take(piece, live)),
            LogStream::Stderr => live.log(stream, bytes),
        }
    }

    /// Appends the last line. Returns the log of both output streams, and the item counts.
    pub(super) fn finish(mut self) -> (Option<RunLog>, Progress) {
        let Self { live, lines, messages } = &mut self;
        lines.finish(&mut |piece| messages.take(piece, live));
        (self.live.log_so_far(), self.messages.items)
    }
}

impl Messages {
    fn take(&mut self, piece: Piece<'_>, live: &LiveReport) {
        match piece {
            Piece::Output(bytes) => live.log(LogStream::Stdout, bytes),
            Piece::Message(message) => {
                if let Some(progress) = message.progress() {
                    self.items.update(progress.clone());
                    live.progress(progress);
                }
                if let Some(text) = message.checkpoint() {
                    // A checkpoint in a line for Evenkeel is smaller than `CHECKPOINT_BYTES_MAX`,
                    // so this call cannot fail.
                    let _ = live.checkpoint(text.into_bytes());
                }
            }
            Piece::Invalid(error) => {
                if !std::mem::replace(&mut self.has_warned, true) {
                    let note = format!(
                        "evenkeel: a line that begins with @evenkeel is invalid and stays in the output \
                         (reported once): {error}\n"
                    );
                    live.log(LogStream::Stderr, note.as_bytes());
                }
            }
        }
    }
}
