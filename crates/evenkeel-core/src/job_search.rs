//! Search of jobs: the text of a job, the words of a search, and the grams that an index holds.
//!
//! A word of three or more characters matches anywhere in the text of a job. A shorter word matches
//! only where a word of the text begins, because most texts contain most pairs of letters. Chinese,
//! Japanese and Korean characters each begin a word, so two of them match anywhere.

mod text;

use crate::TenantNo;
use crate::hash::mix;

pub use self::text::{JobText, TEXT_BYTES_MAX};
use self::text::{fold, is_word_start, word_starts};

/// Maximum number of characters of a search.
pub const SEARCH_CHARS_MAX: usize = 256;

/// Maximum number of words of a search.
pub const SEARCH_WORDS_MAX: usize = 16;

/// Number of characters in a gram that can be anywhere in a text.
const GRAM_CHARS: usize = 3;

/// Maximum number of grams that an index looks up for one search. More grams hardly ever exclude
/// further jobs, and every job that the index finds is checked anyway.
const LOOKED_UP_MAX: usize = 32;

/// A search for jobs: a job matches if its text contains every word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSearch {
    /// Folded like [`JobText`]. No word is empty or contains white space.
    words: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JobSearchError {
    #[error("has no word to search for; write one or more words, such as news or example.com")]
    NoWord,
    #[error("has more than {SEARCH_CHARS_MAX} characters; shorten it")]
    TooLong,
    #[error("has more than {SEARCH_WORDS_MAX} words; leave some out")]
    TooManyWords,
    #[error(
        "has the word {0:?}, which is shorter than {GRAM_CHARS} characters and does not begin with \
         a letter or digit; lengthen it or leave it out"
    )]
    NoLetter(String),
}

impl JobSearch {
    /// Parses the words of a search, which white space separates. No character has a special
    /// meaning.
    pub fn parse(text: &str) -> Result<Self, JobSearchError> {
        if text.chars().count() > SEARCH_CHARS_MAX {
            return Err(JobSearchError::TooLong);
        }
        let mut words = Vec::new();
        for word in fold(text).split_whitespace() {
            let is_short = word.chars().nth(GRAM_CHARS - 1).is_none();
            if is_short && !word.starts_with(char::is_alphanumeric) {
                return Err(JobSearchError::NoLetter(word.to_owned()));
            }
            words.push(word.to_owned());
        }
        match words.len() {
            0 => Err(JobSearchError::NoWord),
            count if count > SEARCH_WORDS_MAX => Err(JobSearchError::TooManyWords),
            _ => Ok(Self { words }),
        }
    }

    pub fn matches(&self, text: &JobText) -> bool {
        self.words.iter().all(|word| contains(text.as_str(), word))
    }

    /// Returns grams that the text of every matching job of the tenant has.
    pub fn grams(&self, tenant: TenantNo) -> Vec<i32> {
        let mut grams = Vec::new();
        for word in &self.words {
            let chars: Vec<char> = word.chars().collect();
            if chars.len() < GRAM_CHARS {
                grams.push(gram(tenant, &chars));
            } else {
                grams.extend(chars.windows(GRAM_CHARS).map(|chars| gram(tenant, chars)));
            }
        }
        grams.sort_unstable();
        grams.dedup();
        grams.truncate(LOOKED_UP_MAX);
        grams
    }
}

impl JobText {
    /// Returns the grams of the text that an index holds, in rising order: each three consecutive
    /// characters without white space, and the first one and two characters of each word.
    pub fn grams(&self, tenant: TenantNo) -> Vec<i32> {
        let mut grams = Vec::new();
        let mut chars: Vec<char> = Vec::new();
        for part in self.as_str().split_whitespace() {
            chars.clear();
            chars.extend(part.chars());
            grams.extend(chars.windows(GRAM_CHARS).map(|chars| gram(tenant, chars)));
            for start in (0..chars.len()).filter(|at| {
                is_word_start(at.checked_sub(1).map(|before| chars[before]), chars[*at])
            }) {
                let short = (start + 1)..chars.len().min(start + GRAM_CHARS - 1) + 1;
                grams.extend(short.map(|end| gram(tenant, &chars[start..end])));
            }
        }
        grams.sort_unstable();
        grams.dedup();
        grams
    }
}

fn contains(text: &str, word: &str) -> bool {
    if word.chars().nth(GRAM_CHARS - 1).is_some() {
        return text.contains(word);
    }
    word_starts(text).any(|start| text[start..].starts_with(word))
}

/// Returns the number of a gram. It depends on the tenant, so that a search reads no entries of
/// other tenants. Two grams can have the same number, so a job that an index finds need not match.
/// Stores contain these numbers, so they never change.
fn gram(tenant: TenantNo, chars: &[char]) -> i32 {
    let bits = chars.iter().fold(0_u64, |bits, c| bits << 21 | u64::from(*c));
    let mixed = mix(mix(u64::from(tenant.0.cast_unsigned()) + 1) ^ bits);
    ((mixed >> 32) as u32).cast_signed()
}

#[cfg(test)]
mod tests;
