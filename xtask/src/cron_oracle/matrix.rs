//! Generates the cases. Each clock change of every time zone is combined with a few of several
//! hundred cron expressions.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow};
use evenkeel_core::schedule::{Cron, Dst};
use evenkeel_core::{Timestamp, Zone};
use jiff::tz::TimeZone;

/// Number of cron expressions that each clock change is combined with.
pub const EACH: usize = 3;
/// Seconds before and after a clock change in which the run times of expressions with few runs per
/// day are compared.
const FAR: i64 = 26 * 3600;
/// Seconds before and after a clock change in which the run times of expressions with many runs per
/// day are compared.
const NEAR: i64 = 3 * 3600;
const MANY: u64 = 100;

/// A clock change: the instant in Unix seconds, and the UTC offsets before and after it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub at: i64,
    pub before: i64,
    pub after: i64,
}

pub struct ZoneChanges {
    pub zone: Zone,
    pub changes: Vec<Change>,
}

pub struct Expression {
    pub text: String,
    pub cron: Cron,
    /// Seconds before and after a clock change in which run times are compared.
    pub around: i64,
}

impl Expression {
    fn new(text: String) -> Result<Self> {
        let cron = Cron::parse(&text).map_err(|fault| anyhow!("{text}: {fault}"))?;
        let month = Timestamp::from_micros(31 * 86_400_000_000);
        let times = cron.count(Timestamp::MIN, month, &Zone::utc(), Dst::default());
        let around = if times > 31 * MANY { NEAR } else { FAR };
        Ok(Self { text, cron, around })
    }

    /// True if the expression has 6 fields, of which the first is seconds.
    pub fn has_seconds(&self) -> bool {
        self.text.split(' ').count() == 6
    }

    /// Returns the field of the expression at `index`, not counting the seconds field.
    pub fn field(&self, index: usize) -> &str {
        let skipped = usize::from(self.has_seconds());
        self.text.split(' ').nth(skipped + index).unwrap_or_default()
    }

    /// True if the hour or the minute field is `*` or a step.
    pub fn is_rhythmic(&self) -> bool {
        self.field(0).starts_with('*') || self.field(1).starts_with('*')
    }

    /// Returns the time range around a clock change in which run times are compared.
    pub fn range(&self, change: Change) -> (i64, i64) {
        let around = self.around + (change.after - change.before).abs();
        (change.at - around, change.at + around)
    }
}

/// Returns the cron expressions. Most of the expressions have runs at hours at which clocks change.
pub fn expressions() -> Result<Vec<Expression>> {
    let minutes = [
        "0", "30", "15,45", "*/15", "5-10", "59", "0/20", "1-59/2", "*", "7", "0,1,59", "10-50/10",
    ];
    let hours = [
        "2", "0", "1", "3", "0-3", "*", "1,2", "23", "2-3", "*/2", "0-23/3", "22-23", "12", "0-23",
        "1/2",
    ];
    let days = [
        "* * *", "* * *", "* * SUN", "L * *", "1 * 0", "*/2 * SUN", "* * SUN#1,SUN#5", "LW * 6",
        "* 3,4,9-11 MON-FRI", "25-31 * 1-5/2", "1-7 * */7", "* 10/1 6#4,5L", "15W * *",
    ];
    let all = minutes.len() * hours.len() * days.len();
    // Stepping by a prime number visits the combinations of fields in a mixed order.
    let mixed = (0..360).map(|index| index * 1_009 % all).map(|index| {
        let (minute, index) = (minutes[index % minutes.len()], index / minutes.len());
        format!("{minute} {} {}", hours[index % hours.len()], days[index / hours.len()])
    });
    let with_seconds = ["*/10", "30", "0,59", "59", "7-9"].into_iter().flat_map(|second| {
        let rest = ["0 2 * * *", "59 1,2 * * *", "*/30 * * * *", "0-5 0-3 * * *", "0 0 L,1 * *"];
        rest.map(|rest| format!("{second} {rest}"))
    });
    let unique: BTreeSet<_> = mixed.chain(with_seconds).collect();
    // The sorted expressions are mixed again, because sorting puts similar expressions next to each
    // other.
    let unique: Vec<_> = unique.into_iter().collect();
    (0..unique.len()).map(|i| Expression::new(unique[i * 211 % unique.len()].clone())).collect()
}

/// Returns all time zones of the bundled database with their clock changes from 1970 to 2100.
pub fn zones() -> Result<Vec<ZoneChanges>> {
    let mut names: Vec<_> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    names.sort_unstable();
    names.iter().filter_map(|name| Some(changes(Zone::get(name).ok()?, name))).collect()
}

fn changes(zone: Zone, name: &str) -> Result<ZoneChanges> {
    let rules = TimeZone::get(name)?;
    // Clock changes in the first 10 days of 1970 are left out, because run times before 1970 are
    // not compared.
    let first = jiff::Timestamp::from_second(10 * 86_400)?;
    let end: jiff::Timestamp = "2101-01-01T00:00:00Z".parse().context("parsing the last day")?;
    let mut before = i64::from(rules.to_offset(first).seconds());
    let mut changes = Vec::new();
    for transition in rules.following(first).take_while(|change| change.timestamp() < end) {
        let after = i64::from(transition.offset().seconds());
        if after != before {
            changes.push(Change { at: transition.timestamp().as_second(), before, after });
        }
        before = after;
    }
    Ok(ZoneChanges { zone, changes })
}
