//! Parses one item in the list of a cron field.

use super::fault::{Misread, Piece};
use super::field::Field;
use super::hash::Hashed;
use super::pattern::{Dates, Weekdays};

/// The set of values that all items in the list of a cron field contain together.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Values {
    /// One bit for each number.
    pub plain: u64,
    /// Items that only the day-of-month field can have, such as `L`. `dates.days` stays empty,
    /// because `plain` contains the day numbers.
    pub dates: Dates,
    /// Items that only the day-of-week field can have, such as `5#2`. `weekdays.every` stays empty,
    /// because `plain` contains the day numbers.
    pub weekdays: Weekdays,
}

impl Values {
    fn add(&mut self, first: u32, last: u32, step: u32) {
        for value in (first..=last).step_by(step.max(1) as usize) {
            self.plain |= 1 << value;
        }
    }

    /// Adds the values of `item` to the set; `draw` is the job's random number for `H`.
    pub fn read(&mut self, item: Piece<'_>, field: Field, draw: u64) -> Result<(), Misread> {
        if item.text.is_empty() {
            let example = field.min();
            let message = "an item of the list is empty: write a list like";
            return Err(item.fault(format!("{message} {example},{}", example + 2)));
        }
        if item.begins('H') {
            let Hashed { first, last, step } = Hashed::read(item, field, draw)?;
            self.add(first, last, step);
            return Ok(());
        }
        if self.read_day(item, field)? {
            return Ok(());
        }
        let (base, every) = match item.cut('/') {
            Some((base, every)) => (base, Some(step(every, field)?)),
            None => (item, None),
        };
        if base.text == "*" {
            self.add(field.min(), field.max(), every.unwrap_or(1));
        } else if let Some((first, last)) = base.cut('-') {
            let (first, last) = (number(first, field)?, number(last, field)?);
            if first > last {
                return Err(item.fault(reversed(first, last, every, field)));
            }
            self.add(first, last, every.unwrap_or(1));
        } else {
            let first = number(base, field)?;
            let last = if every.is_some() { field.max() } else { first };
            self.add(first, last, every.unwrap_or(1));
        }
        Ok(())
    }

    /// Parses an item that only day fields can have; returns `false` for other items.
    fn read_day(&mut self, item: Piece<'_>, field: Field) -> Result<bool, Misread> {
        if item.text.starts_with('?') {
            let message = if field.is_day() {
                "? must be the only item of its field: leave out the others, or write *"
            } else {
                "? is allowed in the two day fields only: write * here"
            };
            return Err(item.fault(message));
        }
        match field {
            Field::Date => self.read_date(item),
            Field::Weekday => self.read_weekday(item),
            _ => Ok(false),
        }
    }

    fn read_date(&mut self, item: Piece<'_>) -> Result<bool, Misread> {
        if item.is("L") {
            self.dates.from_last |= 1;
        } else if item.is("LW") {
            self.dates.last_working = true;
        } else if item.begins('L') {
            let rest = item.skip(1);
            let wrong = "with L, write L, LW, or L-3 for the third day before the last";
            let before = rest.text.strip_prefix('-').map(|_| rest.skip(1));
            let before = before.ok_or_else(|| item.fault(wrong))?;
            match digits(before) {
                Some(days @ 0..=30) => self.dates.from_last |= 1 << days,
                Some(_) => return Err(before.fault("no month has that many days: up to L-30")),
                None => return Err(before.fault(wrong)),
            }
        } else if let Some(day) = item.strip_end('W') {
            if digits(day).is_none() {
                let wrong = "before W, write one day of the month, like 15W, or L: LW";
                return Err(item.fault(wrong));
            }
            self.dates.nearest |= 1 << (number(day, Field::Date)? - 1);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn read_weekday(&mut self, item: Piece<'_>) -> Result<bool, Misread> {
        if let Some((day, week)) = item.cut('#') {
            let day = number(day, Field::Weekday)? % 7;
            let Some(week @ 1..=5) = digits(week) else {
                let wrong = "after #, write which one of the month it is, from 1 to 5, like FRI#2";
                return Err(week.fault(wrong));
            };
            self.weekdays.nth[week as usize - 1] |= 1 << day;
        } else if let Some(day) = item.strip_end('L') {
            if day.text.is_empty() {
                let wrong =
                    "L needs a day of the week: write it like FRIL; for Saturday write SAT or 6";
                return Err(item.fault(wrong));
            }
            self.weekdays.last |= 1 << (number(day, Field::Weekday)? % 7);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Parses a number of `field`, or a name such as `MON`.
pub(super) fn number(piece: Piece<'_>, field: Field) -> Result<u32, Misread> {
    let (noun, takes) = (field.noun(), field.takes());
    if let Some(number) = digits(piece) {
        return if (field.min()..=field.max()).contains(&number) {
            Ok(number)
        } else {
            Err(piece.fault(format!("there is no {noun} {}: {takes}", piece.text)))
        };
    }
    if let Some(index) = field.names().iter().position(|name| piece.is(name)) {
        return Ok(field.min() + index as u32);
    }
    let begins_with = |name: &&&str| {
        piece.text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    Err(piece.fault(match (piece.text, field.names().iter().find(begins_with)) {
        ("", _) => format!("{} is missing here: {takes}", field.one()),
        (text, Some(name)) if text.chars().all(char::is_alphabetic) => {
            format!("{text} is not {}: write {name}", field.one())
        }
        (text, _) => format!("{text} is not {}: {takes}", field.one()),
    }))
}

/// Parses the step after a `/`.
pub(super) fn step(piece: Piece<'_>, field: Field) -> Result<u32, Misread> {
    let noun = field.noun();
    match digits(piece) {
        Some(0) => {
            Err(piece
                .fault(format!("a step of 0 is not possible: write 1 or more; 1 is every {noun}")))
        }
        Some(step) if step <= field.size() => Ok(step),
        Some(_) => {
            let steps = piece.text;
            let too_long = format!("a step of {steps} is too long, as {}", field.takes());
            Err(piece.fault(match field.unit() {
                Some(unit) => format!("{too_long}: write @every {steps}{unit}"),
                None => format!("{too_long}: the longest is {}", field.size()),
            }))
        }
        None => {
            Err(piece
                .fault(format!("after /, write a step as a number, like */{}", field.min() + 2)))
        }
    }
}

/// Parses a number that consists only of digits. A number that does not fit into `u32` becomes the
/// largest `u32`, which is refused later.
fn digits(piece: Piece<'_>) -> Option<u32> {
    let all = !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| piece.text.parse().unwrap_or(u32::MAX))
}

/// Suggests a correct list of values for a range whose end is before its start.
fn reversed(first: u32, last: u32, every: Option<u32>, field: Field) -> String {
    let (min, size) = (field.min(), field.size());
    // A week has one Sunday.
    let top = min + size - 1;
    let right = match every {
        Some(step) if step > 1 => {
            let length = last + size - first;
            let values = (0..=length).step_by(step as usize);
            let values = values.map(|value| ((first + value - min) % size + min).to_string());
            values.collect::<Vec<_>>().join(",")
        }
        _ if field == Field::Weekday && last == 0 => format!("{first}-7"),
        _ => {
            let range = |from: u32, to: u32| {
                if from == to { from.to_string() } else { format!("{from}-{to}") }
            };
            format!("{},{}", range(first, top), range(min, last))
        }
    };
    format!("the range ends before it begins: write {right}")
}
