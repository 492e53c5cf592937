//! Output on standard output, as text or JSON.

mod table;
mod text;

use std::io::{IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::Result;
use crate::failure::Because as _;

pub use table::{Table, Tone, tone_of};
pub use text::{ago, clean, clean_lines, duration_ms, quoted, wrapped};

#[derive(Copy, Clone, Debug)]
pub struct Output {
    as_json: bool,
    colour: bool,
    /// Width of the terminal in characters, or `None` without a terminal.
    columns: Option<usize>,
}

impl Output {
    pub fn new(as_json: bool) -> Self {
        // The convention of https://no-color.org.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = std::io::stdout().is_terminal();
        let columns = comfy_table::Table::new().width().map(usize::from);
        // A terminal that does not know its width reports a width of 0.
        let columns = columns.filter(|columns| is_terminal && *columns > 0);
        Self { as_json, colour: is_terminal && !plain, columns }
    }

    /// Returns an output without colours, for a terminal with lines of `columns` characters.
    #[cfg(test)]
    pub fn for_width(columns: Option<usize>) -> Self {
        Self { as_json: false, colour: false, columns }
    }

    pub const fn is_json(self) -> bool {
        self.as_json
    }

    /// Returns the width of the terminal, or 80 without a terminal.
    pub fn width(self) -> usize {
        self.columns.unwrap_or(80)
    }

    pub fn warned(self, text: &str) -> String {
        if self.colour { format!("\u{1b}[33m{text}\u{1b}[0m") } else { text.into() }
    }

    pub fn dimmed(self, text: &str) -> String {
        if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.into() }
    }

    /// Writes `value` as JSON on one line with `--json`, and `text` without it.
    pub fn json_or_text(self, value: &impl Serialize, text: &str) -> Result {
        if !self.as_json {
            return self.line(text);
        }
        self.line(&serde_json::to_string(value).because("the answer could not be written")?)
    }

    /// Returns a progress bar on standard error, which is hidden with `--json` and without a
    /// terminal.
    pub fn progress(self, length: Option<u64>, template: &str) -> ProgressBar {
        let target = match self.as_json {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(length, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }

    /// Writes the text, and adds a final newline if it is missing.
    pub fn line(self, text: &str) -> Result {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.piece(&format!("{text}{end}"))
    }

    pub fn piece(self, text: &str) -> Result {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            // A reader of the output, such as `head`, has closed the pipe.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
