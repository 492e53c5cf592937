//! What people and programs get to see on standard output.

mod json;
mod table;
mod words;

use std::io::{IsTerminal as _, Write as _};

use crate::Failure;

pub use table::{Table, Tone, tone_of};
pub use words::{ago, clean, clean_lines, duration_ms, quoted, wrapped};

/// Writes answers, for people or for programs.
#[derive(Copy, Clone, Debug)]
pub struct Output {
    as_json: bool,
    colour: bool,
    columns: Option<usize>,
}

impl Output {
    /// For people, or for programs if `as_json`.
    pub fn new(as_json: bool) -> Self {
        // The custom of https://no-color.org, which all programs follow alike.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = std::io::stdout().is_terminal();
        let columns = comfy_table::Table::new().width().map(usize::from);
        // A terminal that does not know its width says 0.
        let columns = columns.filter(|columns| is_terminal && *columns > 0);
        Self { as_json, colour: is_terminal && !plain, columns }
    }

    /// For people with a terminal of this width, or with none, without colours.
    #[cfg(test)]
    pub fn for_width(columns: Option<usize>) -> Self {
        Self { as_json: false, colour: false, columns }
    }

    /// Does a program listen?
    pub const fn is_json(self) -> bool {
        self.as_json
    }

    /// May there be colours?
    pub const fn has_colour(self) -> bool {
        self.colour
    }

    /// How many characters fit on a line of the terminal, if there is one.
    pub const fn columns(self) -> Option<usize> {
        self.columns
    }

    /// The same, or 80 where there is no terminal.
    pub fn width(self) -> usize {
        self.columns.unwrap_or(80)
    }

    /// Text that stands out, where there may be colours.
    pub fn warned(self, text: &str) -> String {
        if self.colour { format!("\u{1b}[33m{text}\u{1b}[0m") } else { text.into() }
    }

    /// Text that matters little, where there may be colours.
    pub fn dimmed(self, text: &str) -> String {
        if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.into() }
    }

    /// Writes text and a line's end, if it has none.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.piece(&format!("{text}{end}"))
    }

    /// Writes text as it is.
    pub fn piece(self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            // Whoever listened has heard enough, like `head`.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
