//! Chooses the part of a text that a search result shows.

use std::ops::Range;

use super::TEXT_INDEXED_MAX;
use super::needles::{Needle, Needles};
use super::words::{Word, first_words};
use crate::{MARK_END, MARK_START};

/// Length of a snippet, about 30 words.
const SHOWN_CHARS: usize = 200;
/// Number of characters shown before the first match.
const BEFORE_CHARS: usize = 50;
/// Maximum number of matches that are considered for a snippet.
const HITS_MAX: usize = 1000;

/// Maximum number of characters that [`beginning`] reads.
pub const BEGINNING_CHARS_MAX: usize = 1000;

/// Maximum number of characters that [`snippet`] reads. Nearly all indexed words of a text are
/// within this number of characters.
pub const SNIPPET_CHARS_MAX: usize = TEXT_INDEXED_MAX;

/// Position of a match in the text, and the index of its search term.
struct Hit {
    range: Range<usize>,
    needle: usize,
}

/// Returns the beginning of a text, about 200 characters, cut between words.
pub fn beginning(text: &str) -> String {
    let looked_at = &text[..forward(text, 0, BEGINNING_CHARS_MAX)];
    show(looked_at.trim_start(), 0, &[])
}

/// Returns the part of a text that contains most of the search terms, about 200 characters, with
/// each match between [`MARK_START`] and [`MARK_END`]. The text must be [clean](super::clean()).
/// Without a match, returns the beginning of the text.
pub fn snippet(text: &str, needles: &Needles) -> String {
    let text = &text[..forward(text, 0, SNIPPET_CHARS_MAX)];
    let hits = find(text, &needles.wanted);
    let Some(first) = best(text, &hits) else { return beginning(text) };
    show(text, back(text, hits[first].range.start), &hits[first..])
}

fn find(text: &str, wanted: &[Needle]) -> Vec<Hit> {
    let searched: Vec<Word<'_>> = first_words(text, TEXT_INDEXED_MAX).collect();
    let folded: Vec<&str> = searched.iter().map(|word| &*word.folded).collect();
    let mut hits = Vec::new();
    for at in 0..searched.len() {
        for (needle, wanted) in wanted.iter().enumerate() {
            if hits.len() < HITS_MAX && wanted.begins(&folded[at..]) {
                let end = searched[at + wanted.words.len() - 1].range.end;
                hits.push(Hit { range: searched[at].range.start..end, needle });
            }
        }
    }
    hits
}

/// Returns the index of the match at which a snippet with the most different search terms starts.
fn best(text: &str, hits: &[Hit]) -> Option<usize> {
    let in_sight = |first: usize| {
        let start = hits[first].range.start;
        let end = forward(text, start, SHOWN_CHARS - BEFORE_CHARS);
        let mut seen: Vec<usize> = hits[first..]
            .iter()
            .take_while(|hit| hit.range.end <= end)
            .map(|hit| hit.needle)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    };
    // `rev` selects the first of several equally good matches, because `max_by_key` returns the
    // last maximum.
    (0..hits.len()).rev().max_by_key(|first| in_sight(*first))
}

/// Returns the position `chars` characters after `start`.
fn forward(text: &str, start: usize, chars: usize) -> usize {
    text[start..].char_indices().nth(chars).map_or(text.len(), |(at, _)| start + at)
}

/// Returns a position between two words, up to [`BEFORE_CHARS`] characters before the match at
/// `hit`.
fn back(text: &str, hit: usize) -> usize {
    let before = text[..hit].char_indices().rev().take(BEFORE_CHARS).last();
    let Some((start, _)) = before.filter(|(start, _)| *start > 0) else { return 0 };
    let near = &text[start..hit];
    near.find(char::is_whitespace).map_or(start, |space| start + space)
}

/// Returns the snippet from `start` on, with white space collapsed to single spaces and matches
/// marked.
fn show(text: &str, start: usize, hits: &[Hit]) -> String {
    let mut shown = String::new();
    if start > 0 {
        shown.push('…');
    }
    let end = end_of(text, start);
    let mut at = start;
    for hit in hits {
        // Matches can overlap, so text that is already marked is not marked again.
        let range = hit.range.start.max(at)..hit.range.end;
        if range.end > end {
            break;
        }
        if range.is_empty() {
            continue;
        }
        squeeze(&mut shown, &text[at..range.start]);
        shown.push(MARK_START);
        squeeze(&mut shown, &text[range.clone()]);
        shown.push(MARK_END);
        at = range.end;
    }
    squeeze(&mut shown, &text[at..end]);
    shown.truncate(shown.trim_end().len());
    if end < text.trim_end().len() {
        shown.push('…');
    }
    shown
}

/// Returns the end of the snippet that begins at `start`: between two words, or within a word that
/// is too long.
fn end_of(text: &str, start: usize) -> usize {
    let end = forward(text, start, SHOWN_CHARS);
    if end == text.len() {
        return end;
    }
    // Only the second half of the snippet is searched for a space, so that a text without spaces is
    // not cut to nothing.
    let middle = forward(text, start, SHOWN_CHARS / 2);
    text[middle..end].rfind(char::is_whitespace).map_or(end, |space| middle + space)
}

fn squeeze(shown: &mut String, text: &str) {
    for c in text.chars() {
        if !c.is_whitespace() {
            shown.push(c);
        } else if !shown.is_empty() && !shown.ends_with(' ') {
            shown.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::SearchQuery;

    use super::*;

    fn snip(text: &str, query: &str) -> String {
        let needles = Needles::of(&SearchQuery::parse(query).unwrap());
        snippet(text, &needles).replace(MARK_START, "[").replace(MARK_END, "]")
    }

    #[test]
    fn all_shown_matches_are_marked() {
        assert_eq!(snip("A Job\n\n  scheduler, a job.", "job"), "A [Job] scheduler, a [job].");
        assert_eq!(snip("a job  scheduler job", "\"job scheduler\""), "a [job scheduler] job");
        assert_eq!(snip("Scheduling schedules", "sched*"), "[Scheduling] [schedules]");
        assert_eq!(snip("日本語の本", "本"), "日[本]語の[本]");
        assert_eq!(snip("un café", "cafe"), "un [café]");
    }

    #[test]
    fn overlapping_matches_are_marked_once() {
        assert_eq!(snip("a a a b", "\"a a\" b"), "[a a][ a] [b]");
        assert_eq!(snip("½ cup", "1 2"), "[½] cup");
    }

    #[test]
    fn a_far_match_is_shown_with_its_context() {
        let text = format!("{} needle {}", "before ".repeat(500), "after ".repeat(500));
        let shown = snip(&text, "needle");
        assert!(shown.starts_with("… before ") && shown.ends_with("after…"), "{shown}");
        assert!(shown.contains("before [needle] after"), "{shown}");
        assert!(shown.chars().count() <= SHOWN_CHARS + 6, "{shown}");
    }

    #[test]
    fn a_match_beyond_the_limit_is_not_shown() {
        let text = |before: usize| format!("First {}needle", "é.".repeat(before));
        assert!(snip(&text(SNIPPET_CHARS_MAX / 2 - 10), "needle").contains("[needle]"));
        assert!(snip(&text(SNIPPET_CHARS_MAX / 2), "needle").starts_with("First é"));
    }

    #[test]
    fn the_part_with_most_terms_is_shown() {
        let text = format!("one {} one two {} two", "x ".repeat(500), "x ".repeat(500));
        assert!(snip(&text, "one two").contains("[one] [two]"));
    }

    #[test]
    fn without_a_match_the_beginning_is_shown() {
        assert_eq!(snip("Only the title has it.", "other"), "Only the title has it.");
        assert_eq!(beginning("  a\n\tb  "), "a b");
        assert_eq!(beginning(""), "");
        let long = beginning(&"word ".repeat(400));
        assert!(long.ends_with("word…") && long.chars().count() <= SHOWN_CHARS + 1, "{long}");
    }

    #[test]
    fn a_text_without_spaces_is_cut() {
        let shown = beginning(&"字".repeat(5000));
        assert_eq!(shown.chars().count(), SHOWN_CHARS + 1);
        let shown = snip(&format!("{}x{}", "字".repeat(5000), "字".repeat(500)), "x");
        assert!(shown.contains("字[x]字") && shown.chars().count() <= SHOWN_CHARS + 4, "{shown}");
    }

    #[test]
    fn leading_white_space_is_skipped() {
        assert_eq!(beginning(&format!("{}word", " ".repeat(300))), "word");
    }
}
