//! What a body writes, sorted while it comes.

use evenkeel_core::Progress;

use super::lines::{Lines, Piece};
use crate::Wire;
use crate::tail::Tail;

/// What a body has written so far. All of it goes to the log as it comes.
pub(super) struct Output {
    wire: Wire,
    lines: Lines,
    sorted: Sorted,
    stderr: Tail,
}

#[derive(Default)]
struct Sorted {
    stdout: Tail,
    items: Progress,
    has_complained: bool,
}

impl Output {
    pub(super) fn new(wire: Wire) -> Self {
        let (lines, sorted, stderr) = (Lines::default(), Sorted::default(), Tail::default());
        Self { wire, lines, sorted, stderr }
    }

    /// Takes in standard output.
    pub(super) fn out(&mut self, bytes: &[u8]) {
        let Self { wire, lines, sorted, .. } = self;
        lines.push(bytes, &mut |piece| sorted.hear(piece, wire));
    }

    /// Takes in standard error.
    pub(super) fn err(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
        self.wire.log(bytes);
    }

    /// Nothing more comes. Returns the ends of both streams, and the items it spoke of.
    pub(super) fn finish(mut self) -> (Option<String>, Option<String>, Progress) {
        let Self { wire, lines, sorted, .. } = &mut self;
        lines.finish(&mut |piece| sorted.hear(piece, wire));
        (self.sorted.stdout.into_text(), self.stderr.into_text(), self.sorted.items)
    }
}

impl Sorted {
    fn hear(&mut self, piece: Piece<'_>, wire: &Wire) {
        match piece {
            Piece::Output(bytes) => {
                self.stdout.push(bytes);
                wire.log(bytes);
            }
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
                    wire.log(note.as_bytes());
                }
            }
        }
    }
}
