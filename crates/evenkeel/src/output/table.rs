//! Tables that fit the width of the terminal.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, LineStyle, TableStyle};

use super::{Output, clean, wrapped};

/// The colour of a cell.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
    Quiet,
}

pub fn tone_of(status: &str) -> Tone {
    match status {
        "completed" => Tone::Good,
        "running" => Tone::Busy,
        "failed" | "timed_out" | "partly_failed" => Tone::Bad,
        "cancelled" | "skipped" | "paused" => Tone::Quiet,
        _ => Tone::Plain,
    }
}

const NOTE: &str = "NOTE";
/// Indentation of a note that is printed below its table row.
const INDENT: &str = "    ";
/// Maximum number of lines of a note in a table. `run show` prints the whole note.
const NOTE_LINES_MAX: usize = 5;
/// Spaces between columns.
const GAP: usize = 2;
/// Character between rows in the text of `comfy_table`. No cell contains this character, because
/// control characters in cells are replaced.
const BETWEEN_ROWS: char = '\u{1}';

struct Row {
    cells: Vec<(String, Tone)>,
    note: String,
}

pub struct Table {
    output: Output,
    headings: Vec<String>,
    rows: Vec<Row>,
}

impl Table {
    pub fn new(output: Output, headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { output, headings, rows: Vec::new() }
    }

    /// Returns a table with the rows of an iterator.
    pub fn of<const N: usize>(
        output: Output,
        headings: [&str; N],
        rows: impl IntoIterator<Item = [(String, Tone); N]>,
    ) -> Self {
        let mut table = Self::new(output, &headings);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>) {
        self.noted_row(cells, "");
    }

    /// Adds a row with a note of any length. Notes are the last column of the table. If the table
    /// is wider than the terminal, each note is printed below its row instead, so that the terminal
    /// does not cut the note off.
    pub fn noted_row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>, note: &str) {
        let cells = cells.into_iter().map(|(text, tone)| (clean(&text), tone)).collect();
        self.rows.push(Row { cells, note: clean(note.trim_end()) });
    }

    /// Returns the text of the table, without trailing spaces.
    pub fn render(mut self) -> String {
        let has_notes = self.rows.iter().any(|row| !row.note.is_empty());
        let fits = self.output.columns.is_none_or(|columns| self.natural_width() <= columns);
        if !has_notes || fits {
            if has_notes {
                self.headings.push(NOTE.into());
                for row in &mut self.rows {
                    row.cells.push((std::mem::take(&mut row.note), Tone::Quiet));
                }
            }
            return self.laid_out().concat();
        }
        let mut lines = self.laid_out().into_iter();
        let mut text = lines.next().unwrap_or_default();
        for (row, lines) in self.rows.iter().zip(lines) {
            text.push_str(&lines);
            text.push_str(&self.below(&row.note));
        }
        text
    }

    /// Returns the width of the table, including notes, without line breaks in cells.
    fn natural_width(&self) -> usize {
        let mut widths: Vec<usize> = self.headings.iter().map(|it| it.chars().count()).collect();
        let mut notes = NOTE.len();
        for row in &self.rows {
            for (width, (text, _)) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(text.chars().count());
            }
            notes = notes.max(row.note.chars().count());
        }
        widths.iter().sum::<usize>() + GAP * widths.len() + notes
    }

    fn below(&self, note: &str) -> String {
        if note.is_empty() {
            return String::new();
        }
        let width = self.output.width().saturating_sub(INDENT.len()).max(1);
        let wrapped = wrapped(note, width);
        let mut text = String::new();
        for (number, line) in wrapped.lines().enumerate() {
            let line = if number == NOTE_LINES_MAX { "…" } else { line };
            text.push_str(&format!("{INDENT}{}\n", self.output.dimmed(line)));
            if number == NOTE_LINES_MAX {
                break;
            }
        }
        text
    }

    /// Returns the text of the heading and of each row. A text may have several lines.
    fn laid_out(&self) -> Vec<String> {
        let between = LineStyle::none().fill(BETWEEN_ROWS);
        let style = TableStyle::new().header_separator(between).row_separator(between);
        let mut table = comfy_table::Table::new();
        // `output` knows the terminal.
        table.load_style(style).force_no_tty();
        match self.output.columns.and_then(|columns| u16::try_from(columns).ok()) {
            Some(columns) => {
                table.set_width(columns).set_content_arrangement(ContentArrangement::Dynamic)
            }
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if self.output.colour {
            table.enforce_styling();
        }
        table.set_header(
            self.headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Dim)),
        );
        for row in &self.rows {
            table.add_row(row.cells.iter().map(|(text, tone)| cell(text, *tone)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP as u16));
        }
        let mut parts = vec![String::new()];
        for line in table.lines() {
            if line.starts_with(BETWEEN_ROWS) {
                parts.push(String::new());
            } else if let Some(part) = parts.last_mut() {
                part.push_str(line.trim_end());
                part.push('\n');
            }
        }
        parts
    }
}

fn cell(text: &str, tone: Tone) -> Cell {
    let cell = Cell::new(text);
    match tone {
        Tone::Plain => cell,
        Tone::Good => cell.fg(Color::Green),
        Tone::Busy => cell.fg(Color::Cyan),
        Tone::Bad => cell.fg(Color::Red),
        Tone::Quiet => cell.add_attribute(Attribute::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: &str = "dispatch failed: connection to 10.0.0.7:5432 refused by the remote host: \
                         no route, after three tries in 5 s";

    fn runs(columns: Option<usize>) -> String {
        let mut table = Table::new(Output::for_width(columns), &["RUN", "STATUS"]);
        let row =
            |id: &str, status: &str| [(id.to_owned(), Tone::Quiet), (status.to_owned(), Tone::Bad)];
        table.noted_row(row("0006442d", "failed"), CAUSE);
        table.noted_row(row("0006442e", "completed"), "");
        table.noted_row(row("0006442f", "failed"), "two\nlines\n");
        table.render()
    }

    #[test]
    fn notes_are_complete_without_a_terminal() {
        let expected = format!(
            "RUN       STATUS     NOTE\n0006442d  failed     {CAUSE}\n0006442e  completed\n\
             0006442f  failed     two\\nlines\n"
        );
        assert_eq!(runs(None), expected);
        assert_eq!(runs(Some(150)), expected, "and where they fit");
    }

    #[test]
    fn long_notes_are_below_their_rows() {
        assert_eq!(
            runs(Some(60)),
            "RUN       STATUS\n\
             0006442d  failed\n    \
             dispatch failed: connection to 10.0.0.7:5432 refused by\n    \
             the remote host: no route, after three tries in 5 s\n\
             0006442e  completed\n\
             0006442f  failed\n    \
             two\\nlines\n"
        );
        for columns in [20, 33, 47, 80, 100] {
            let text = runs(Some(columns));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            let has_all = columns < 47 || CAUSE.split(' ').all(|word| words.contains(&word));
            assert!(has_all, "{columns}: {text}");
        }
    }

    #[test]
    fn very_long_note_is_cut_with_an_ellipsis() {
        let mut table = Table::new(Output::for_width(Some(30)), &["RUN"]);
        table.noted_row([("0006442d".to_owned(), Tone::Plain)], &"word ".repeat(200));
        let text = table.render();
        assert_eq!(text.lines().count(), 2 + NOTE_LINES_MAX + 1, "{text}");
        assert!(text.ends_with("    …\n"), "{text}");
    }
}
