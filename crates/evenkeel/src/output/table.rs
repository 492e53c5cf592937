//! Tables, as wide as the terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ContentArrangement};

use super::{Output, clean};

/// What a cell wants to say beside its words.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Nothing.
    Plain,
    /// All is well.
    Good,
    /// Something goes on.
    Busy,
    /// Something is wrong.
    Bad,
    /// It matters little.
    Quiet,
}

/// What a status word says.
pub fn tone_of(status: &str) -> Tone {
    match status {
        "completed" => Tone::Good,
        "running" => Tone::Busy,
        "failed" | "timed_out" | "partly_failed" => Tone::Bad,
        "cancelled" | "skipped" | "paused" => Tone::Quiet,
        _ => Tone::Plain,
    }
}

/// Rows under headings.
pub struct Table {
    table: comfy_table::Table,
    columns: usize,
}

impl Table {
    /// With these headings.
    pub fn new(output: Output, headings: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        // A terminal that does not know its width says 0.
        if table.width() == Some(0) {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        if output.has_colour() {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(
            headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Dim)),
        );
        Self { table, columns: headings.len() }
    }

    /// With another row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>) {
        let cells = cells.into_iter().map(|(text, tone)| {
            let cell = Cell::new(clean(&text));
            match tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Busy => cell.fg(Color::Cyan),
                Tone::Bad => cell.fg(Color::Red),
                Tone::Quiet => cell.add_attribute(Attribute::Dim),
            }
        });
        self.table.add_row(cells);
    }

    /// As text, without spaces at the ends of lines.
    pub fn render(mut self) -> String {
        for index in 0..self.columns {
            if let Some(column) = self.table.column_mut(index) {
                column.set_padding((0, 2));
            }
        }
        let mut text = String::new();
        for line in self.table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
