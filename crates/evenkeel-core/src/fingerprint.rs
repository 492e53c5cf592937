//! Groups similar failures by a hash of their error message.

use std::fmt;
use std::str::FromStr;

use crate::hash::fnv1a;

/// The hash of an error message from which variable parts, such as numbers and ids, are removed.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(pub u64);

/// Maximum number of characters of an error message that are hashed; the rest is mostly a stack
/// trace or a web page.
const CHARS_MAX: usize = 1000;

impl Fingerprint {
    pub fn of(error: &str) -> Self {
        Self(fnv1a(&normalized(error)))
    }
}

/// Replaces the parts of an error message that are likely to differ when the same error occurs
/// again: numbers, ids, quoted text and line breaks.
pub fn normalized(error: &str) -> String {
    let mut normalized = String::new();
    let mut chars = error.chars().take(CHARS_MAX).peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '`' => {
                // A quotation mark without a closing quotation mark is an ordinary character.
                let rest: String = chars.clone().take_while(|next| *next != c).collect();
                let is_closed = chars.clone().any(|next| next == c);
                normalized.push(c);
                if is_closed {
                    chars.nth(rest.chars().count());
                    normalized.push('…');
                    normalized.push(c);
                }
            }
            c if c.is_alphanumeric() => {
                let mut word = String::from(c);
                while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '-')
                {
                    word.push(next);
                }
                // A word that contains a digit is replaced, because it is probably a number, an id
                // or an address.
                if word.contains(|c: char| c.is_ascii_digit()) {
                    if !normalized.ends_with('#') {
                        normalized.push('#');
                    }
                } else {
                    normalized.push_str(&word.to_lowercase());
                }
            }
            c if c.is_whitespace() => {
                if !normalized.ends_with(' ') {
                    normalized.push(' ');
                }
            }
            c => normalized.push(c),
        }
    }
    normalized.trim().to_owned()
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variable_parts_do_not_count() {
        let one = "connect to 10.0.0.7:5432 failed after 30.2s: user \"ann\" (id 3f2a-77)";
        let two = "connect to 10.0.1.9:5433 failed  after 7.15s: user \"bob\" (id 91)";
        assert_eq!(normalized(one), "connect to #.#.#.#:# failed after #.#: user \"…\" (id #)");
        assert_eq!(Fingerprint::of(one), Fingerprint::of(two));
        assert_ne!(Fingerprint::of(one), Fingerprint::of("connection refused"));
    }

    #[test]
    fn unclosed_quote_hides_nothing() {
        assert_ne!(Fingerprint::of("it's broken"), Fingerprint::of("it's fine"));
        assert_ne!(Fingerprint::of("say \"yes"), Fingerprint::of("say \"no"));
    }

    proptest! {
        #[test]
        fn every_text_has_a_fingerprint_that_reads_back(error in any::<String>()) {
            let fingerprint = Fingerprint::of(&error);
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            prop_assert!(normalized(&error).chars().count() <= 2 * CHARS_MAX);
        }
    }
}
