//! Parses cron expressions.

use super::fault::{CronFault, Misread, Piece};
use super::field::Field;
use super::hash::{Draws, Hashed};
use super::item::Values;
use super::pattern::{Dates, Pattern, Weekdays};

const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Maximum number of items in the list of a cron field.
const ITEMS_MAX: usize = 100;

/// Parses a cron expression; every `H` is replaced with one of the job's random numbers. Whether a
/// cron expression is valid does not depend on the random numbers.
pub(super) fn pattern(expression: &str, draws: Draws) -> Result<Pattern, CronFault> {
    read(expression, draws).map_err(|fault| fault.of(expression))
}

/// Replaces every `H` in a valid cron expression with the job's number. Returns `None` if the cron
/// expression has no `H`.
pub(super) fn without_hashes(expression: &str, draws: Draws) -> Option<String> {
    let fields = Fields::split(expression).ok()?;
    let hashed = |piece: &Piece<'_>| piece.split(',').any(|item| item.begins('H'));
    if !fields.all().any(|(_, piece)| hashed(&piece)) {
        return None;
    }
    let mut text = String::new();
    for (field, piece) in fields.all() {
        for item in piece.split(',') {
            if item.begins('H') {
                text += &Hashed::read(item, field, draws.of(field)).ok()?.to_string();
            } else {
                text += item.text;
            }
            text.push(',');
        }
        text.pop();
        text.push(' ');
    }
    text.pop();
    Some(text)
}

#[derive(Copy, Clone)]
struct Fields<'a> {
    /// `None` in an expression of 5 fields.
    second: Option<Piece<'a>>,
    others: [Piece<'a>; 5],
}

impl<'a> Fields<'a> {
    fn split(expression: &'a str) -> Result<Self, Misread> {
        let whole = Piece::new(expression);
        let words: Vec<_> = whole.words().collect();
        if let Some(name) = words.first().filter(|word| word.text.starts_with('@')) {
            return named(*name, words.get(1).copied());
        }
        if let Some(first) = words.first().filter(|word| word.text.contains('=')) {
            return Err(first.fault(
                "an expression has no time zone: set the job's timezone, and begin the expression \
                 with the minute",
            ));
        }
        if let Some(command) = command(&words) {
            return Err(
                command.fault("the expression ends here: a command belongs in the job's executor")
            );
        }
        match *words.as_slice() {
            [a, b, c, d, e] => Ok(Self { second: None, others: [a, b, c, d, e] }),
            [second, a, b, c, d, e] => Ok(Self { second: Some(second), others: [a, b, c, d, e] }),
            [] => Err(whole.fault(
                "an expression is missing: write one like 0 9 * * 1-5, or a name like @daily",
            )),
            ref words => {
                let place = words.get(6).copied().unwrap_or(whole.skip(expression.len()));
                Err(place.fault(format!(
                    "write 5 fields (minute, hour, day of the month, month, day of the week), or \
                     6 with seconds first, not {}: for example 0 9 * * 1-5",
                    words.len(),
                )))
            }
        }
    }

    fn get(&self, field: Field) -> Option<Piece<'a>> {
        match (field as usize).checked_sub(1) {
            None => self.second,
            Some(index) => Some(self.others[index]),
        }
    }

    fn all(&self) -> impl Iterator<Item = (Field, Piece<'a>)> {
        Field::ALL.into_iter().filter_map(|field| Some((field, self.get(field)?)))
    }

    /// True if the cron field begins with `*` or `?`.
    fn is_any(&self, field: Field) -> bool {
        self.get(field).is_some_and(|piece| piece.text.starts_with(['*', '?']))
    }

    /// Returns how many random numbers for this cron field lead to different run times.
    fn choices(&self, field: Field) -> u64 {
        let hashed = self.get(field).is_some_and(|piece| piece.split(',').any(|i| i.begins('H')));
        if hashed { u64::from(field.size()) } else { 1 }
    }

    fn values(&self, field: Field, draws: Draws) -> Result<Values, Misread> {
        let mut values = Values::default();
        let Some(piece) = self.get(field) else {
            values.plain = 1;
            return Ok(values);
        };
        if piece.text == "?" && field.is_day() {
            values.plain = first_to_last(field);
            return Ok(values);
        }
        let mut hashes = 0;
        for (index, item) in piece.split(',').enumerate() {
            if index >= ITEMS_MAX {
                return Err(item.fault(format!("a list has at most {ITEMS_MAX} items")));
            }
            values.read(item, field, draws.of(field))?;
            hashes += u32::from(item.begins('H'));
            if hashes > 1 && matches!(field, Field::Date | Field::Month | Field::Weekday) {
                return Err(
                    item.fault("a list can have only one H: write one, with a step if needed")
                );
            }
        }
        Ok(values)
    }

    fn pattern(&self, draws: Draws) -> Result<Pattern, Misread> {
        let values = |field| self.values(field, draws);
        let weekdays = values(Field::Weekday)?;
        Ok(Pattern {
            seconds: values(Field::Second)?.plain,
            minutes: values(Field::Minute)?.plain,
            hours: values(Field::Hour)?.plain as u32,
            months: self.months(draws)?,
            dates: self.dates(draws)?,
            // Both 0 and 7 mean Sunday.
            weekdays: Weekdays {
                every: (weekdays.plain | weekdays.plain >> 7) as u8 & 0x7f,
                ..weekdays.weekdays
            },
            both: self.is_any(Field::Date) || self.is_any(Field::Weekday),
            rhythmic: self.is_any(Field::Minute) || self.is_any(Field::Hour),
        })
    }

    fn dates(&self, draws: Draws) -> Result<Dates, Misread> {
        let values = self.values(Field::Date, draws)?;
        Ok(Dates { days: (values.plain >> 1) as u32, ..values.dates })
    }

    fn months(&self, draws: Draws) -> Result<u16, Misread> {
        Ok(self.values(Field::Month, draws)?.plain as u16)
    }

    /// Returns copies of the job's random numbers, one for each random number of this cron field
    /// that leads to different run times.
    fn other_draws(&self, field: Field, draws: Draws) -> Vec<Draws> {
        match self.choices(field) {
            1 => vec![draws],
            choices => (0..choices).map(|draw| draws.with(field, draw)).collect(),
        }
    }

    /// Refuses a cron expression if its days, such as 30 February, never occur for at least one
    /// choice of random numbers for date and month. The random number for the weekday does not
    /// matter. If both day fields must match, the date field begins with `*` and includes the 1st,
    /// and the 1st of each month can be any day of the week.
    fn check_days(&self, draws: Draws) -> Result<(), Misread> {
        let drawn = self.pattern(draws)?;
        let all_months: Vec<(Draws, u16)> = self
            .other_draws(Field::Month, draws)
            .into_iter()
            .map(|draws| Ok((draws, self.months(draws)?)))
            .collect::<Result<_, Misread>>()?;
        for draws in self.other_draws(Field::Date, draws) {
            let dates = self.dates(draws)?;
            for (other, months) in &all_months {
                if !(Pattern { dates, months: *months, ..drawn }).is_possible() {
                    let month = other.of(Field::Month);
                    return Err(self.impossible(draws.with(Field::Month, month)));
                }
            }
        }
        Ok(())
    }

    fn impossible(&self, draws: Draws) -> Misread {
        let [_, _, date, month, weekday] = self.others;
        let hashed = self.choices(Field::Date) > 1 || self.choices(Field::Month) > 1;
        let all_months = self.pattern(draws).map(|pattern| Pattern { months: 0x1ffe, ..pattern });
        let possible_elsewhere = all_months.is_ok_and(|pattern| pattern.is_possible());
        let (date_text, month_text, weekday_text) = (date.text, month.text, weekday.text);
        if hashed {
            date.fault(format!(
                "for some jobs this day never comes, as not every month of {month_text} has it: \
                 write a day up to 28, or L for the last of the month"
            ))
        } else if possible_elsewhere && self.is_any(Field::Date) {
            weekday.fault(format!("no month of {month_text} ever has such a day"))
        } else if possible_elsewhere {
            date.fault(format!(
                "no month of {month_text} has day {date_text}: write L for the last of the month"
            ))
        } else {
            date.fault(format!(
                "no day is ever both {date_text} of the month and {weekday_text} of the week: \
                 begin neither field with * if either of them will do"
            ))
        }
    }
}

fn read(expression: &str, draws: Draws) -> Result<Pattern, Misread> {
    let fields = Fields::split(expression)?;
    // Fields are checked in the order of the cron expression, so that its first error is reported.
    for (field, _) in fields.all() {
        fields.values(field, draws)?;
    }
    fields.check_days(draws)?;
    fields.pattern(draws)
}

/// Finds the first word of a command or user name that follows 5 or 6 fields, as in a line of a
/// crontab.
fn command<'a>(words: &[Piece<'a>]) -> Option<Piece<'a>> {
    let is_path = |word: &&Piece<'_>| word.text.starts_with(['/', '.', '~']);
    // Words inside a cron field, such as the names of days and months, have at most three letters.
    let is_field = |word: &Piece<'_>| {
        let mut names = word.text.split(|c: char| !c.is_ascii_alphabetic());
        let plain = |c: char| c.is_ascii_alphanumeric() || "*?,-/#()".contains(c);
        word.text.chars().all(plain) && !word.text.starts_with('/') && names.all(|it| it.len() <= 3)
    };
    match words {
        [_, _, _, _, _, last] => Some(*last).filter(|last| is_path(&last)),
        [_, _, _, _, _, sixth, seventh, ..] => {
            Some(if is_field(sixth) { *seventh } else { *sixth }).filter(|it| !is_field(it))
        }
        _ => None,
    }
}

fn named<'a>(name: Piece<'a>, more: Option<Piece<'a>>) -> Result<Fields<'a>, Misread> {
    if name.is("@reboot") {
        return Err(name.fault(
            "@reboot is not supported: jobs belong to a cluster, which does not restart as a \
             whole. To run a job once, now, create it without a schedule",
        ));
    }
    let Some((_, meaning)) = NAMED.into_iter().find(|(known, _)| name.is(known)) else {
        let known: Vec<_> = NAMED.into_iter().map(|(known, _)| known).collect();
        let known = known.join(", ");
        return Err(name.fault(format!("{} is unknown: write {known} or @every 90m", name.text)));
    };
    match more {
        Some(more) => {
            Err(more.fault(format!("{} takes no other fields: leave this out", name.text)))
        }
        None => Fields::split(meaning),
    }
}

fn first_to_last(field: Field) -> u64 {
    (2 << field.max()) - (1 << field.min())
}
