//! What failures have in common.

use std::fmt;
use std::str::FromStr;

/// Stands for an error message without what differs from case to case.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(pub u64);

/// Of a message, so many characters count: what follows is mostly a trace or a page of text.
const CHARS_MAX: usize = 1000;

impl Fingerprint {
    /// The fingerprint of an error message.
    pub fn of(error: &str) -> Self {
        // FNV-1a: short texts, no enemy, the same for ever.
        let hash = essence(error).bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash)
    }
}

/// An error message with everything replaced that is likely another one next time: numbers,
/// ids, what stands in quotes, and how it is broken into lines.
pub fn essence(error: &str) -> String {
    let mut essence = String::new();
    let mut chars = error.chars().take(CHARS_MAX).peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '`' => {
                // Without a second one it is only a sign.
                let rest: String = chars.clone().take_while(|next| *next != c).collect();
                let is_closed = chars.clone().any(|next| next == c);
                essence.push(c);
                if is_closed {
                    chars.nth(rest.chars().count());
                    essence.push('…');
                    essence.push(c);
                }
            }
            c if c.is_alphanumeric() => {
                let mut word = String::from(c);
                while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '-')
                {
                    word.push(next);
                }
                // A word with a digit in it is a number, an id or an address.
                if word.contains(|c: char| c.is_ascii_digit()) {
                    if !essence.ends_with('#') {
                        essence.push('#');
                    }
                } else {
                    essence.push_str(&word.to_lowercase());
                }
            }
            c if c.is_whitespace() => {
                if !essence.ends_with(' ') {
                    essence.push(' ');
                }
            }
            c => essence.push(c),
        }
    }
    essence.trim().to_owned()
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
    fn what_differs_from_case_to_case_does_not_count() {
        let one = "connect to 10.0.0.7:5432 failed after 30.2s: user \"ann\" (id 3f2a-77)";
        let two = "connect to 10.0.1.9:5433 failed  after 7.15s: user \"bob\" (id 91)";
        assert_eq!(essence(one), "connect to #.#.#.#:# failed after #.#: user \"…\" (id #)");
        assert_eq!(Fingerprint::of(one), Fingerprint::of(two));
        assert_ne!(Fingerprint::of(one), Fingerprint::of("connection refused"));
    }

    #[test]
    fn a_quote_that_is_never_closed_hides_nothing() {
        assert_ne!(Fingerprint::of("it's broken"), Fingerprint::of("it's fine"));
        assert_ne!(Fingerprint::of("say \"yes"), Fingerprint::of("say \"no"));
    }

    proptest! {
        #[test]
        fn every_text_has_one_and_its_written_form_reads_back(error in any::<String>()) {
            let fingerprint = Fingerprint::of(&error);
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            prop_assert!(essence(&error).chars().count() <= 2 * CHARS_MAX);
        }
    }
}
