//! Parses descriptions of cron fields back into values, and compares these with the values at the
//! run times of the cron expression.

use std::collections::BTreeSet;

use evenkeel_core::schedule::{Cron, Dst};
use evenkeel_core::{Timestamp, Zone};
use proptest::prelude::*;

use super::super::items::{DATES, HOURS, MONTHS, SIXTY, Unit, WEEKDAYS};
use super::described;

/// A cron field to test, and a cron expression in which only this field varies.
struct FieldCase {
    unit: Unit,
    /// A cron expression in which `F` stands for the tested field.
    expression: &'static str,
    /// Texts before and after the description of the tested field.
    around: (&'static str, &'static str),
    /// Returns the value of the tested field at a given time.
    of: fn(jiff::civil::DateTime) -> i8,
    /// Number of run times after which every value of the tested field has occurred.
    times: usize,
}

const FIELDS: [FieldCase; 6] = [
    FieldCase {
        unit: SIXTY,
        expression: "F 0-1 * * * *",
        around: ("", " at minutes 0 to 1 of every hour, UTC."),
        of: |time| time.second(),
        times: 120,
    },
    FieldCase {
        unit: SIXTY,
        expression: "F 0-1 * * *",
        around: ("", " of the hours 0 to 1 every day, UTC."),
        of: |time| time.minute(),
        times: 120,
    },
    FieldCase {
        unit: HOURS,
        expression: "10-11 F * * *",
        around: ("At minutes 10 to 11 of ", ", UTC."),
        of: |time| time.hour(),
        times: 48,
    },
    FieldCase {
        unit: DATES,
        expression: "0 0 F * *",
        around: ("At 00:00", ", UTC."),
        of: |time| time.day(),
        times: 500,
    },
    FieldCase {
        unit: MONTHS,
        expression: "0 0 1 F *",
        around: ("At 00:00, on the 1st of the month", ", UTC."),
        of: |time| time.month(),
        times: 12,
    },
    FieldCase {
        unit: WEEKDAYS,
        expression: "0 0 * * F",
        around: ("At 00:00", ", UTC."),
        of: |time| time.date().weekday().to_sunday_zero_offset(),
        times: 7,
    },
];

impl FieldCase {
    fn with(&self, field: &str) -> String {
        self.expression.replace('F', field)
    }

    /// Returns the values of the tested field that occur in the run times of the expression.
    fn values(&self, field: &str) -> BTreeSet<u32> {
        let (cron, utc) = (Cron::parse(&self.with(field)).unwrap(), Zone::utc());
        let next = |time: &Timestamp| cron.next_after(*time, &utc, Dst::default());
        let from: Timestamp = "2027-12-31T23:59:59Z".parse().unwrap();
        let times = std::iter::successors(next(&from), next).take(self.times);
        let civil = times.map(|time| {
            let moment = jiff::Timestamp::from_microsecond(time.as_micros()).unwrap();
            jiff::tz::Offset::UTC.to_datetime(moment)
        });
        civil.map(|time| u32::try_from((self.of)(time)).unwrap()).collect()
    }

    /// Returns the values of the tested field that a description contains.
    fn read_back(&self, words: &str) -> BTreeSet<u32> {
        let (before, after) = self.around;
        if words.eq_ignore_ascii_case(after.trim_start()) {
            // A description that does not mention seconds means second 0.
            return BTreeSet::from([0]);
        }
        let middle = words.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        let middle = middle.unwrap_or_else(|| panic!("{words}")).to_lowercase();
        let middle = middle.trim_end_matches("every day").trim_start_matches([',', ' ']);
        let last = self.unit.last;
        let mut values = BTreeSet::new();
        for piece in middle.replace(" and ", ", ").split(", ") {
            let tokens: Vec<Token> = piece.split(' ').filter_map(|word| self.token(word)).collect();
            let (first, last, step) = match tokens[..] {
                [] | [Token::Every] => (self.unit.first, last, 1),
                [Token::Every, Token::Value(n)] => (self.unit.first, last, n),
                [Token::Every, Token::Value(n), Token::From, Token::Value(a)] => (a, last, n),
                [
                    Token::Every,
                    Token::Value(n),
                    Token::From,
                    Token::Value(a),
                    Token::To,
                    Token::Value(b),
                ] => (a, b, n),
                [Token::Value(a), Token::To, Token::Value(0)] if last == 7 => (a, 7, 1),
                [Token::Value(a), Token::To, Token::Value(b)] => (a, b, 1),
                [Token::Value(a)] => (a, a, 1),
                _ => panic!("{words}: {piece}"),
            };
            assert!(first <= last, "{words}: {piece}");
            values.extend((first..=last).step_by(step as usize).map(|value| match last {
                7 if self.unit.last == 7 => value % 7,
                _ => value,
            }));
        }
        values
    }

    fn token(&self, word: &str) -> Option<Token> {
        let number: String = word.chars().take_while(char::is_ascii_digit).collect();
        let names = self.unit.names.iter();
        let named = names.zip(self.unit.first..).find(|(name, _)| name.eq_ignore_ascii_case(word));
        match word {
            "every" => Some(Token::Every),
            "from" => Some(Token::From),
            "to" => Some(Token::To),
            "midnight" => Some(Token::Value(0)),
            _ => number.parse().ok().or(named.map(|(_, value)| value)).map(Token::Value),
        }
    }
}

#[derive(Copy, Clone)]
enum Token {
    Every,
    From,
    To,
    Value(u32),
}

/// Builds an item of a cron field, such as `2-10/3`, from random numbers.
fn item(unit: &Unit, (form, a, b, step): (u8, u32, u32, u32)) -> String {
    let size = unit.last - unit.first + 1;
    let (a, b) = (unit.first + a % size, unit.first + b % size);
    let (a, b, step) = (a.min(b), a.max(b), 1 + step % 7);
    match form {
        0 => "*".into(),
        1 => format!("*/{step}"),
        2 => a.to_string(),
        3 => format!("{a}/{step}"),
        4 => format!("{a}-{b}"),
        5 => format!("{a}-{b}/{step}"),
        6 => format!("{a}/1"),
        _ => format!("{}/{step}", unit.first),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn descriptions_name_the_values_of_the_expression(
        which in 0..FIELDS.len(),
        items in prop::collection::vec((0..8_u8, 0..100_u32, 0..100_u32, 0..100_u32), 1..4),
    ) {
        let case = &FIELDS[which];
        let items: Vec<String> = items.into_iter().map(|it| item(&case.unit, it)).collect();
        let field = items.join(",");
        let words = described(&case.with(&field));
        prop_assert_eq!(case.read_back(&words), case.values(&field), "{}: {}", field, words);
    }
}
