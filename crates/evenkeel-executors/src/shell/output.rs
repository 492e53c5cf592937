//! What a body writes, sorted while it comes.

use evenkeel_core::{LogStream, Progress, RunLog};

use super::lines::{Lines, Piece};
use crate::Wire;

/// Sorts what a body writes. Everything but lines for Evenkeel goes to the log as it comes.
pub(super) struct Output {
    wire: Wire,
    lines: Lines,
    sorted: Sorted,
}

#[derive(Default)]
struct Sorted {
    items: Progress,
    has_complained: bool,
}

impl Output {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, lines: Lines::default(), sorted: Sorted::default() }
    }

    /// Takes in standard output.
    pub(super) fn out(&mut self, bytes: &[u8]) {
        let Self { wire, lines, sorted, .. } = self;
        lines.push(bytes, &mut |piece| sorted.hear(piece, wire));
    }

    /// Takes in standard error.
    pub(super) fn err(&mut self, bytes: &[u8]) {
        self.wire.log(LogStream::Stderr, bytes);
    }

    /// Nothing more comes. Returns the log of both streams, and the items it spoke of.
    pub(super) fn finish(mut self) -> (Option<RunLog>, Progress) {
        let Self { wire, lines, sorted, .. } = &mut self;
        lines.finish(&mut |piece| sorted.hear(piece, wire));
        (self.wire.log_so_far(), self.sorted.items)
    }
}

impl Sorted {
    fn hear(&mut self, piece: Piece<'_>, wire: &Wire) {
        match piece {
            Piece::Output(bytes) => wire.log(LogStream::Stdout, bytes),
            Piece::Said(said) => {
                if let Some(progress) = said.progress() {
                    self.items.update(progress.clone());
                    wire.progress(progress);
                }
                if let Some(text) = said.checkpoint() {
                    // A line has room for far less than a checkpoint may have.
                    let _ = wire.checkpoint(text.into_bytes());
                }
            }
            Piece::Garbled(message) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    let note = format!(
                        "evenkeel: a line with @evenkeel is taken for output, as all like it: \
                         {message}\n"
                    );
                    wire.log(LogStream::Stderr, note.as_bytes());
                }
            }
        }
    }
}
