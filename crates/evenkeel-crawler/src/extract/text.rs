//! Normalises texts of pages.

/// Maximum number of bytes of the text of a page; longer texts are cut.
pub(crate) const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Collects the text of a page, with one space between words and block elements on separate lines.
/// Control characters are removed, because search snippets use some of them as markers.
#[derive(Default)]
pub(super) struct Flow {
    text: String,
    /// The white space to insert before the next word.
    gap: Gap,
}

#[derive(Copy, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
}

impl Flow {
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.gap = self.gap.max(Gap::Space);
            } else if !c.is_control() && self.text.len() < TEXT_BYTES_MAX {
                match (self.gap, self.text.is_empty()) {
                    (Gap::Space, false) => self.text.push(' '),
                    (Gap::Line, false) => self.text.push('\n'),
                    _ => {}
                }
                self.gap = Gap::None;
                self.text.push(c);
            }
        }
    }

    /// Starts a new line.
    pub(super) fn break_line(&mut self) {
        self.gap = Gap::Line;
    }

    /// Starts a new word.
    pub(super) fn space(&mut self) {
        self.gap = self.gap.max(Gap::Space);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn into_text(self) -> String {
        cut(&self.text, TEXT_BYTES_MAX).to_owned()
    }
}

/// Returns the beginning of a text, at most `bytes_max` bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a text as one line without control characters, or `None` if this line is empty.
pub(crate) fn one_line(text: &str, bytes_max: usize) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > bytes_max {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    line.truncate(cut(&line, bytes_max).len());
    (!line.is_empty()).then_some(line)
}
