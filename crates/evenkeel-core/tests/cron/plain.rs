//! A second implementation of cron that is as simple as possible: it checks every second or minute.
//! The simple cron implementation shares no code with the tested implementation.

use std::collections::BTreeMap;
use std::ops::Range;

use evenkeel_core::schedule::{Dst, Gap, Overlap};
use jiff::civil::{Date, Weekday};
use jiff::tz::{Offset, TimeZone};

/// The values that match in each field of a cron expression.
pub struct Plain {
    /// `seconds[n]` is true if the second `n` matches.
    seconds: [bool; 60],
    minutes: [bool; 60],
    hours: [bool; 60],
    dates: String,
    months: Vec<u32>,
    weekdays: String,
    pub rhythmic: bool,
}

impl Plain {
    pub fn new(expression: &str) -> Self {
        let fields: Vec<_> = expression.split_whitespace().collect();
        let (second, fields) =
            if fields.len() == 6 { (fields[0], &fields[1..]) } else { ("0", &fields[..]) };
        Self {
            seconds: table(numbers(second, 0, 59)),
            minutes: table(numbers(fields[0], 0, 59)),
            hours: table(numbers(fields[1], 0, 23)),
            dates: fields[2].to_ascii_uppercase(),
            months: numbers(fields[3], 1, 12),
            weekdays: fields[4].to_ascii_uppercase(),
            rhythmic: fields[0].starts_with('*') || fields[1].starts_with('*'),
        }
    }

    /// True if the cron expression can match a second other than 0.
    pub fn has_seconds(&self) -> bool {
        self.seconds[1..].contains(&true)
    }

    /// Number of minutes of a day that match the cron expression.
    pub fn minutes_a_day(&self) -> usize {
        let count = |table: &[bool; 60]| table.iter().filter(|meant| **meant).count();
        count(&self.hours) * count(&self.minutes)
    }

    pub fn means_day(&self, date: Date) -> bool {
        if !self.months.contains(&(date.month() as u32)) {
            return false;
        }
        let by_date = self.dates.split(',').any(|item| means_date(item, date));
        let by_weekday = self.weekdays.split(',').any(|item| means_weekday(item, date));
        let star = |field: &str| field.starts_with('*') || field.starts_with('?');
        if star(&self.dates) || star(&self.weekdays) {
            by_date && by_weekday
        } else {
            by_date || by_weekday
        }
    }

    /// Returns the local times in `from..until` that match the cron expression, in seconds since
    /// 1970. Checks one moment every `step` seconds.
    fn local_times(&self, from: i64, until: i64, step: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut day = (i64::MIN, false);
        let mut time = from + (-from).rem_euclid(step);
        while time < until {
            let (number, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
            if day.0 != number {
                let start = jiff::Timestamp::from_second(number * 86_400).unwrap();
                day = (number, self.means_day(Offset::UTC.to_datetime(start).date()));
            }
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            if day.1
                && self.hours[hour as usize]
                && self.minutes[minute as usize]
                && self.seconds[second as usize]
            {
                found.push(time);
            }
            time += step;
        }
        found
    }

    /// Returns the matching local times that clocks of a time zone show in `from..until`.
    pub fn look(&self, from: i64, until: i64, changes: &Changes) -> Shown {
        let step = if self.has_seconds() { 1 } else { 60 };
        let mut shown = Shown { range: from..until, rhythmic: self.rhythmic, ..Shown::default() };
        let (mut start, mut offset) = (from, changes.offset_before(from));
        for change in changes.0.iter().filter(|change| (from..=until).contains(&change.at)) {
            shown.add(self.local_times(start + offset, change.at + offset, step), offset);
            (start, offset) = (change.at, change.after);
            let (before, after) = (change.at + change.before, change.at + change.after);
            if !self.local_times(before, after, step).is_empty() {
                shown.jumped.push(change.at);
            }
        }
        shown.add(self.local_times(start + offset, until + offset, step), offset);
        shown
    }
}

/// The times matching a cron expression that clocks of a time zone show during a time span.
#[derive(Default)]
pub struct Shown {
    range: Range<i64>,
    rhythmic: bool,
    /// For each matching local time, the moments at which clocks show this local time.
    times: BTreeMap<i64, Vec<i64>>,
    /// The moments at which clocks skipped a matching local time.
    jumped: Vec<i64>,
}

impl Shown {
    fn add(&mut self, local_times: Vec<i64>, offset: i64) {
        for local in local_times {
            self.times.entry(local).or_default().push(local - offset);
        }
    }

    pub fn moments(&self, dst: Dst) -> Vec<i64> {
        let mut moments: Vec<i64> = Vec::new();
        for times in self.times.values() {
            match dst.overlap {
                _ if self.rhythmic => moments.extend(times),
                Overlap::First => moments.extend(times.first()),
                Overlap::Last => moments.extend(times.last()),
                Overlap::Both => moments.extend(times),
            }
        }
        if !self.rhythmic && dst.gap == Gap::Shift {
            moments.extend(&self.jumped);
        }
        moments.retain(|moment| self.range.contains(moment));
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub at: i64,
    pub before: i64,
    pub after: i64,
}

/// All clock changes of a time zone from 1970 to 2100, and its offset before the first change.
pub struct Changes(pub Vec<Change>, i64);

impl Changes {
    pub fn of(zone: &TimeZone) -> Self {
        let start = jiff::Timestamp::from_second(-1).unwrap();
        let end: jiff::Timestamp = "2101-01-01T00:00:00Z".parse().unwrap();
        let first = i64::from(zone.to_offset(start).seconds());
        let mut changes = Vec::new();
        let mut before = first;
        for transition in zone.following(start).take_while(|t| t.timestamp() < end) {
            let after = i64::from(transition.offset().seconds());
            if after != before {
                changes.push(Change { at: transition.timestamp().as_second(), before, after });
            }
            before = after;
        }
        Self(changes, first)
    }

    fn offset_before(&self, moment: i64) -> i64 {
        self.0.iter().rfind(|change| change.at < moment).map_or(self.1, |change| change.after)
    }
}

fn table(numbers: Vec<u32>) -> [bool; 60] {
    std::array::from_fn(|index| numbers.contains(&(index as u32)))
}

/// Returns the values that match a numeric field.
fn numbers(field: &str, min: u32, max: u32) -> Vec<u32> {
    field.split(',').flat_map(|item| item_numbers(item, min, max)).collect()
}

fn item_numbers(item: &str, min: u32, max: u32) -> Vec<u32> {
    let (base, step) = match item.split_once('/') {
        Some((base, step)) => (base, step.parse().unwrap()),
        None => (item, 1),
    };
    let (first, last) = match base.split_once('-') {
        _ if base == "*" || base == "?" => (min, max),
        Some((first, last)) => (named(first), named(last)),
        None if item.contains('/') => (named(base), max),
        None => (named(base), named(base)),
    };
    (first..=last).step_by(step).collect()
}

fn named(text: &str) -> u32 {
    let months =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let days = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let month = months.iter().position(|name| *name == text).map(|index| index as u32 + 1);
    let day = days.iter().position(|name| *name == text).map(|index| index as u32);
    month.or(day).unwrap_or_else(|| text.parse().unwrap())
}

fn means_date(item: &str, date: Date) -> bool {
    let last = date.last_of_month();
    if item == "L" {
        date == last
    } else if item == "LW" {
        Some(date) == (0..7).map(|back| days_before(last, back)).find(|day| is_working(*day))
    } else if let Some(before) = item.strip_prefix("L-") {
        days_before(last, before.parse().unwrap()) == date
    } else if let Some(day) = item.strip_suffix('W') {
        let Ok(wanted) = Date::new(date.year(), date.month(), day.parse().unwrap()) else {
            return false;
        };
        // The nearest working day of the month is unique, because two working days are never
        // equally near.
        let working = |day: &Date| is_working(*day) && day.month() == wanted.month();
        let near = (-3..=3).map(|away| days_before(wanted, away)).filter(working);
        near.min_by_key(|day| day.since(wanted).unwrap().get_days().abs()) == Some(date)
    } else {
        item_numbers(item, 1, 31).contains(&(date.day() as u32))
    }
}

fn means_weekday(item: &str, date: Date) -> bool {
    let today = date.weekday().to_sunday_zero_offset() as u32;
    if let Some((day, nth)) = item.split_once('#') {
        let nth_day = date.nth_weekday_of_month(nth.parse().unwrap(), date.weekday());
        named(day) % 7 == today && nth_day.is_ok_and(|day| day == date)
    } else if let Some(day) = item.strip_suffix('L') {
        named(day) % 7 == today && date.nth_weekday_of_month(-1, date.weekday()).unwrap() == date
    } else {
        item_numbers(item, 0, 7).into_iter().any(|day| day % 7 == today)
    }
}

fn days_before(date: Date, days: i64) -> Date {
    date.checked_sub(jiff::Span::new().days(days)).unwrap()
}

fn is_working(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}
