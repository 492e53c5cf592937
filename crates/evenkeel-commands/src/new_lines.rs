//! What is new in a text of which only the end is kept.

/// So much of what was told last is looked for in what comes next.
const ANCHOR: usize = 512;

/// Remembers what was told of a growing text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewLines {
    told: String,
}

/// What is new.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NewText<'a> {
    /// What was not told before.
    pub text: &'a str,
    /// Something before it was cut before it could be told.
    pub skipped: bool,
}

impl NewLines {
    /// What is new in the text as it is now, if anything is.
    pub fn take<'a>(&mut self, now: &'a str) -> Option<NewText<'a>> {
        let new = match now.strip_prefix(self.told.as_str()) {
            Some(text) => NewText { text, skipped: false },
            // Its beginning was cut: what follows the end of what was told is new.
            None => match now.rfind(self.anchor()).filter(|_| !self.told.is_empty()) {
                Some(at) => NewText { text: &now[at + self.anchor().len()..], skipped: false },
                None => NewText { text: now, skipped: !self.told.is_empty() },
            },
        };
        self.told = now.to_owned();
        (!new.text.is_empty()).then_some(new)
    }

    /// The end of what was told.
    fn anchor(&self) -> &str {
        let from = self.told.len().saturating_sub(ANCHOR);
        let from = (from..self.told.len()).find(|at| self.told.is_char_boundary(*at));
        from.map_or("", |from| &self.told[from..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(lines: &mut NewLines, now: &str) -> Option<(String, bool)> {
        lines.take(now).map(|new| (new.text.to_owned(), new.skipped))
    }

    #[test]
    fn what_grows_is_told_once() {
        let mut lines = NewLines::default();
        assert_eq!(take(&mut lines, ""), None);
        assert_eq!(take(&mut lines, "one\n"), Some(("one\n".into(), false)));
        assert_eq!(take(&mut lines, "one\n"), None);
        assert_eq!(take(&mut lines, "one\ntwo\n"), Some(("two\n".into(), false)));
    }

    #[test]
    fn what_is_cut_at_the_beginning_goes_on_where_it_was() {
        let all: String = (0..2000).map(|n| format!("line {n} \u{e9}\n")).collect();
        let end = |to: usize, kept: usize| {
            let to = all.match_indices('\n').nth(to).unwrap().0 + 1;
            let from = (to.saturating_sub(kept)..).find(|at| all.is_char_boundary(*at)).unwrap();
            format!("[cut]\n{}", &all[from..to])
        };
        let mut lines = NewLines::default();
        lines.take(&end(500, 4000));
        assert_eq!(
            take(&mut lines, &end(502, 4000)),
            Some(("line 501 \u{e9}\nline 502 \u{e9}\n".into(), false))
        );
        let (text, skipped) = take(&mut lines, &end(1900, 4000)).unwrap();
        assert!(skipped && text.ends_with("line 1900 \u{e9}\n"), "{text}");
    }
}
