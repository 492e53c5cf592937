//! Splits texts into words.

use std::borrow::Cow;
use std::ops::Range;

use evenkeel_core::search::is_unseen;
use unicode_normalization::UnicodeNormalization;

/// Maximum number of bytes of a word in the index. Longer words are cut, because PostgreSQL accepts
/// no word over 2 KiB.
const WORD_BYTES_MAX: usize = 128;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word<'t> {
    /// The indexed form of the word: letters and digits in lower case, without accents, at most 128
    /// bytes.
    pub folded: Cow<'t, str>,
    /// Byte range of the word in the text.
    pub range: Range<usize>,
}

/// Returns the words of a text in their order.
///
/// A word consists of letters, digits and their accents. Invisible characters such as a soft hyphen
/// are ignored. Each Chinese character and each kana is a word, because these scripts do not
/// separate words with spaces. Several Chinese characters or kana in a search term match as a
/// phrase.
pub fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    Runs { text, at: 0 }.flat_map(|range| fold(text, range))
}

/// Returns as many words from the beginning of a text as fit into `bytes`, with one space after
/// each word.
pub(super) fn first_words(text: &str, bytes: usize) -> impl Iterator<Item = Word<'_>> {
    let mut taken = 0;
    words(text).take_while(move |word| {
        taken += word.folded.len() + 1;
        taken <= bytes
    })
}

/// Returns the indexed forms of the words from the beginning of a text, separated by spaces, at
/// most `bytes` bytes.
pub fn indexed(text: &str, bytes: usize) -> String {
    let mut found = String::new();
    for word in first_words(text, bytes) {
        if !found.is_empty() {
            found.push(' ');
        }
        found.push_str(&word.folded);
    }
    found
}

/// Iterates over sequences of letters, digits and accents.
struct Runs<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        let skipped = rest.find(char::is_alphanumeric)?;
        let start = self.at + skipped;
        let run = &self.text[start..];
        let first = run.chars().next().map_or(0, char::len_utf8);
        let is_alone = run.chars().next().is_some_and(stands_alone);
        let belongs =
            |c: char| is_left_out(c) || (!is_alone && c.is_alphanumeric() && !stands_alone(c));
        let length = run[first..].find(|c| !belongs(c)).map_or(run.len(), |more| first + more);
        self.at = start + length;
        Some(start..self.at)
    }
}

fn fold(text: &str, range: Range<usize>) -> Vec<Word<'_>> {
    let raw = &text[range.clone()];
    if raw.is_ascii() {
        let cut = &raw[..raw.len().min(WORD_BYTES_MAX)];
        let is_folded = !cut.bytes().any(|byte| byte.is_ascii_uppercase());
        let folded =
            if is_folded { Cow::Borrowed(cut) } else { Cow::Owned(cut.to_ascii_lowercase()) };
        return vec![Word { folded, range }];
    }
    // Lower case is applied before and after decomposition. Some capital letters decompose only in
    // lower case, and some capital letters appear only after decomposition.
    let bare: String = raw.to_lowercase().nfkd().filter(|c| !is_left_out(*c)).nfc().collect();
    let bare = bare.to_lowercase();
    bare.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| Word { folded: Cow::Owned(cut(word).to_owned()), range: range.clone() })
        .collect()
}

fn cut(word: &str) -> &str {
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
    &word[..ends.take_while(|end| *end <= WORD_BYTES_MAX).last().unwrap_or(0)]
}

/// Returns true for a character inside a word that is ignored when words are compared.
fn is_left_out(c: char) -> bool {
    is_accent(c) || is_unseen(c)
}

/// Returns true for accents of Latin, Greek and Cyrillic letters. In other scripts, marks on
/// letters change the meaning and are kept.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns true for kana and Chinese characters, whose scripts do not separate words with spaces.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{3041}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<String> {
        words(text).map(|word| word.folded.into_owned()).collect()
    }

    #[test]
    fn words_consist_of_letters_and_digits() {
        assert_eq!(
            folded("see https://example.com/a_b?q=C3-po, 3.14"),
            ["see", "https", "example", "com", "a", "b", "q", "c3", "po", "3", "14"]
        );
        assert_eq!(folded(" -- \u{1f600} "), Vec::<String>::new());
    }

    #[test]
    fn case_and_accents_make_no_difference() {
        for text in ["Größe GRÖßE", "gro\u{308}ße GRO\u{308}ẞE"] {
            assert_eq!(folded(text), ["große", "große"], "{text}");
        }
        assert_eq!(
            folded("Été ÉTÉ École Ёлка ﬁne Ｆｕｌｌ"),
            ["ete", "ete", "ecole", "елка", "fine", "full"]
        );
        assert_eq!(folded("İstanbul ISTANBUL"), ["istanbul", "istanbul"]);
    }

    #[test]
    fn invisible_characters_do_not_split_a_word() {
        let text =
            "soft\u{ad}ware zero\u{200b}width\u{200c}join\u{200d}er \u{ad} gro\u{308}\u{ad}ße";
        assert_eq!(folded(text), ["software", "zerowidthjoiner", "große"]);
        assert_eq!(folded("日\u{200b}本"), ["日", "本"]);
    }

    #[test]
    fn chinese_characters_and_kana_are_single_words() {
        assert_eq!(folded("日本語とrust2"), ["日", "本", "語", "と", "rust2"]);
        assert_eq!(folded("한국어 문서"), ["한국어", "문서"]);
    }

    #[test]
    fn a_word_has_its_position() {
        let text = "Ein Café, 日本 ½";
        let found: Vec<_> =
            words(text).map(|word| (word.folded.into_owned(), &text[word.range])).collect();
        let expected =
            [("ein", "Ein"), ("cafe", "Café"), ("日", "日"), ("本", "本"), ("1", "½"), ("2", "½")];
        assert_eq!(found, expected.map(|(folded, raw)| (folded.to_owned(), raw)));
    }

    #[test]
    fn long_words_and_texts_are_cut_between_characters() {
        let long = "ж".repeat(500);
        assert_eq!(folded(&long), ["ж".repeat(64)]);
        assert_eq!(folded(&"a".repeat(500)), ["a".repeat(128)]);
        assert_eq!(indexed("One two three", 8), "one two");
        assert_eq!(indexed("One two three", 7), "one");
    }

    #[test]
    fn a_character_that_unfolds_to_many_does_not_break_the_bound() {
        let text = "\u{fdfa} ".repeat(100_000);
        assert!(indexed(&text, 1000).len() <= 1000);
    }
}
