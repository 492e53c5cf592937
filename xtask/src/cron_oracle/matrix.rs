//! What the oracles are asked: all zones, every change of their clocks, and for each some
//! expressions of a few hundred.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow};
use evenkeel_core::schedule::{Cron, Dst};
use evenkeel_core::{Timestamp, Zone};
use jiff::tz::TimeZone;

/// Expressions that are asked for at each change; the next change gets the next ones.
pub const EACH: usize = 3;
/// How far around a change, in seconds, for expressions of some times a day…
const FAR: i64 = 26 * 3600;
/// …and for those of many.
const NEAR: i64 = 3 * 3600;
const MANY: u64 = 100;

/// A moment when the clocks of a zone are changed, in seconds since 1970, with their offsets.
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
    /// How far around a change it is looked at, in seconds.
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

    /// Are seconds its first field?
    pub fn has_seconds(&self) -> bool {
        self.text.split(' ').count() == 6
    }

    /// The field at `index`, counted without seconds.
    pub fn field(&self, index: usize) -> &str {
        let skipped = usize::from(self.has_seconds());
        self.text.split(' ').nth(skipped + index).unwrap_or_default()
    }

    /// Does it name any hour or any minute?
    pub fn is_rhythmic(&self) -> bool {
        self.field(0).starts_with('*') || self.field(1).starts_with('*')
    }

    /// What is asked about it: from when until when.
    pub fn range(&self, change: Change) -> (i64, i64) {
        let around = self.around + (change.after - change.before).abs();
        (change.at - around, change.at + around)
    }
}

/// Most of them with times at which clocks are changed.
pub fn expressions() -> Result<Vec<Expression>> {
    let minutes = [
        "0", "30", "15,45", "*/15", "5-10", "59", "0/20", "1-59/2", "*", "7", "0,1,59", "10-50/10",
    ];
    let hours = [
        "2", "0", "1", "3", "0-3", "*", "1,2", "23", "2-3", "*/2", "0-23/3", "22-23", "12", "0-23",
        "1/2",
    ];
    let days = [
        "* * *",
        "* * *",
        "* * SUN",
        "L * *",
        "1 * 0",
        "*/2 * SUN",
        "* * SUN#1,SUN#5",
        "LW * 6",
        "* 3,4,9-11 MON-FRI",
        "25-31 * 1-5/2",
        "1-7 * */7",
        "* 10/1 6#4,5L",
        "15W * *",
    ];
    let all = minutes.len() * hours.len() * days.len();
    // Steps of a prime, which go through all combinations in a mixed order.
    let mixed = (0..360).map(|index| index * 1_009 % all).map(|index| {
        let (minute, index) = (minutes[index % minutes.len()], index / minutes.len());
        format!("{minute} {} {}", hours[index % hours.len()], days[index / hours.len()])
    });
    let with_seconds = ["*/10", "30", "0,59", "59", "7-9"].into_iter().flat_map(|second| {
        let rest = ["0 2 * * *", "59 1,2 * * *", "*/30 * * * *", "0-5 0-3 * * *", "0 0 L,1 * *"];
        rest.map(|rest| format!("{second} {rest}"))
    });
    let unique: BTreeSet<_> = mixed.chain(with_seconds).collect();
    // Those next to each other are alike: mix them once more.
    let unique: Vec<_> = unique.into_iter().collect();
    (0..unique.len()).map(|i| Expression::new(unique[i * 211 % unique.len()].clone())).collect()
}

/// All zones of the bundled data with the changes of their clocks from 1970 to 2100.
pub fn zones() -> Result<Vec<ZoneChanges>> {
    let mut names: Vec<_> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    names.sort_unstable();
    names.iter().filter_map(|name| Some(changes(Zone::get(name).ok()?, name))).collect()
}

fn changes(zone: Zone, name: &str) -> Result<ZoneChanges> {
    let rules = TimeZone::get(name)?;
    // What is asked about the first change must not begin before 1970.
    let first = jiff::Timestamp::from_second(10 * 86_400)?;
    let end: jiff::Timestamp = "2101-01-01T00:00:00Z".parse().context("the end of time")?;
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
