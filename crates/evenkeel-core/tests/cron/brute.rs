//! Compares the run times of cron expressions around every clock change of all time zones from 1970
//! to 2100 with a brute-force implementation.

use std::collections::BTreeSet;

use evenkeel_core::Zone;
use jiff::tz::{Offset, TimeZone};

use crate::plain::{Change, Changes, Plain};
use crate::{POLICIES, at, backwards, forwards, read};
use evenkeel_core::schedule::{Cron, Dst, Gap};

/// Number of cron expressions that are tested per clock change; the next clock change uses the next
/// cron expressions of the list.
const EACH: usize = 2;
/// Seconds before and after a clock change in which run times are compared.
const AROUND: i64 = 26 * 3600;
/// Used in place of `AROUND` if a cron expression has many run times.
const CLOSE: i64 = 3 * 3600;
const MANY: usize = 100;

#[derive(Default)]
struct Counts {
    zones: usize,
    changes: usize,
    expressions: usize,
    comparisons: u64,
    differences: u64,
}

struct Case {
    text: String,
    plain: Plain,
    cron: Cron,
}

impl Case {
    fn new(text: String) -> Self {
        Self { plain: Plain::new(&text), cron: read(&text), text }
    }
}

/// Returns a cron expression that runs once a year, in the middle of the skipped or repeated local
/// time.
fn once_a_year(change: Change) -> String {
    let middle = jiff::Timestamp::from_second(change.at + (change.before + change.after) / 2);
    Offset::UTC.to_datetime(middle.unwrap()).strftime("%-M %-H %-d %-m *").to_string()
}

/// Returns a few hundred cron expressions, most of them with run times near clock changes.
fn expressions() -> Vec<String> {
    let minutes = ["0", "30", "15,45", "*/15", "5-10", "59", "0/20", "1-59/2", "*", "7", "0,1,59"];
    let hours = [
        "2", "0", "1", "3", "0-3", "*", "1,2", "23", "2-3", "*/2", "0-23/3", "22-23", "12", "0-23",
    ];
    let days = [
        "* * *", "* * *", "* * SUN", "? * ?", "L * *", "1 * 0", "*/2 * SUN", "* * SUN#1,SUNL",
        "1W,15W,LW,L-1 * 6", "? 3,4,9-11 MON-FRI", "25-31 * 1-5/2", "1-7 * */7", "31W * 2#5",
        "* 10/1 sat#4,5l",
    ];
    let all = minutes.len() * hours.len() * days.len();
    // Every 1,009th combination of fields (a prime number) is taken, which mixes the order.
    let mixed = (0..480).map(|index| index * 1_009 % all).map(|index| {
        let (minute, index) = (minutes[index % minutes.len()], index / minutes.len());
        format!("{minute} {} {}", hours[index % hours.len()], days[index / hours.len()])
    });
    let seconds = ["*/10", "30", "0,59", "*", "59", "7-9"];
    let with_seconds = seconds.iter().flat_map(|second| {
        let rest = ["0 2 * * *", "59 1,2 * * *", "*/30 * * * *", "0-5 0-3 ? * *", "0 0 L,1 * *"];
        rest.map(|rest| format!("{second} {rest}"))
    });
    let unique: BTreeSet<_> = mixed.chain(with_seconds).collect();
    // Neighbouring cron expressions in the sorted list are similar, so the list is mixed once more.
    let unique: Vec<_> = unique.into_iter().collect();
    (0..unique.len()).map(|index| unique[index * 211 % unique.len()].clone()).collect()
}

/// Returns how many run times were compared, and for how many clock-change policies they differ.
fn compare(case: &Case, zone: &Zone, changes: &Changes, change: Change, turn: usize) -> (u64, u64) {
    let many = case.plain.has_seconds() || case.plain.minutes_a_day() > MANY;
    let around = if many { CLOSE } else { AROUND };
    let jump = (change.after - change.before).abs();
    let from = (change.at - around - jump).max(0);
    let until = change.at + around + jump;
    let shown = case.plain.look(from, until, changes);
    // If clock-change policies do not affect the cron expression, only one of them is tested.
    let policies = if case.plain.rhythmic { &POLICIES[turn % 6..][..1] } else { &POLICIES[..] };
    let (mut comparisons, mut differences) = (0, 0);
    for dst in policies.iter().copied() {
        let expected = shown.moments(dst);
        let found = forwards(&case.cron, zone, dst, from, until);
        let again = backwards(&case.cron, zone, dst, from, until);
        let counted = |from, until| {
            let meant = expected.iter().filter(|time| (from..until).contains(*time)).count();
            case.cron.count(at(from), at(until), zone, dst) == meant as u64
        };
        // A clock change moved a run time if that run time does not exist under the policy
        // `Gap::Skip`.
        let unmoved = shown.moments(Dst { gap: Gap::Skip, ..dst });
        let moved = expected.contains(&change.at) && !unmoved.contains(&change.at);
        let right = found == expected
            && again == expected
            && counted(from, until)
            && counted(from, change.at)
            && counted(change.at, until)
            && counted(change.at - 1800, change.at + 1800)
            && case.cron.was_shifted(at(change.at), zone, dst) == moved;
        if !right {
            println!("{} in {zone}, {dst:?}, at {}", case.text, at(change.at));
            println!("  expected {expected:?}\n  found {found:?}\n  backwards {again:?}");
        }
        comparisons += 2 * expected.len() as u64 + 5;
        differences += u64::from(!right);
    }
    (comparisons, differences)
}

fn zones() -> Vec<String> {
    let mut zones: Vec<_> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    zones.sort_unstable();
    zones.retain(|name| Zone::get(name).is_ok());
    zones
}

#[test]
fn every_clock_change_of_every_zone_matches_brute_force() {
    let cases: Vec<_> = expressions().into_iter().map(Case::new).collect();
    let mut counts = Counts { expressions: cases.len(), ..Counts::default() };
    let mut turn = 0;
    for name in zones() {
        let zone = Zone::get(&name).unwrap();
        let changes = Changes::of(&TimeZone::get(&name).unwrap());
        counts.zones += 1;
        for change in &changes.0 {
            counts.changes += 1;
            for case in (0..EACH).map(|more| &cases[(turn + more) % cases.len()]) {
                let (comparisons, differences) = compare(case, &zone, &changes, *change, turn);
                counts.comparisons += comparisons;
                counts.differences += differences;
            }
            let yearly = Case::new(once_a_year(*change));
            let (comparisons, differences) = compare(&yearly, &zone, &changes, *change, turn);
            counts.comparisons += comparisons;
            counts.differences += differences;
            turn += EACH;
        }
    }
    let Counts { zones, changes, expressions, comparisons, differences } = counts;
    println!(
        "cron by brute force: {zones} zones, {changes} transitions, {expressions} expressions, \
         {comparisons} comparisons, {differences} differences"
    );
    assert_eq!(differences, 0);
}
