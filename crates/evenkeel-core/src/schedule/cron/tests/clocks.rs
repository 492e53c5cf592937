//! Clock changes.

use super::{POLICIES, at, cron, times};
use crate::schedule::{Dst, Gap, Overlap};
use crate::time::Timestamp;
use crate::zone::Zone;

const DEFAULT: Dst = Dst { gap: Gap::Shift, overlap: Overlap::First };
const SKIP: Dst = Dst { gap: Gap::Skip, ..DEFAULT };
const LAST: Dst = Dst { overlap: Overlap::Last, ..DEFAULT };
const BOTH: Dst = Dst { overlap: Overlap::Both, ..DEFAULT };

fn berlin(expression: &str, dst: Dst, after: &str, expected: &[&str]) {
    let found = times(expression, "Europe/Berlin", dst, after, expected.len());
    assert_eq!(found, expected, "{expression}, {dst:?}");
}

#[test]
fn time_in_the_gap_is_moved() {
    let eve = "2026-03-28T12:00:00Z";
    let (shifted, monday) = ("2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00");
    berlin("30 2 * * *", DEFAULT, eve, &[shifted, monday]);
    berlin("30 2 * * *", SKIP, eve, &[monday]);
    let (cron, zone) = (cron("30 2 * * *"), Zone::get("Europe/Berlin").unwrap());
    assert!(cron.was_shifted(at(shifted), &zone, DEFAULT));
    assert!(!cron.was_shifted(at(monday), &zone, DEFAULT));
}

#[test]
fn several_times_in_the_gap_become_one() {
    let eve = "2026-03-28T12:00:00Z";
    let (three, half_past) = ("2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00");
    berlin("0-59/10 2 * * *", DEFAULT, eve, &[three, "2026-03-30T02:00:00+02:00"]);
    // The run that the clock change moved coincides with a run at 03:00 that was not moved.
    berlin("0,30 2,3 * * *", DEFAULT, eve, &[three, half_past, "2026-03-30T02:00:00+02:00"]);
    let (cron, zone) = (cron("0,30 2,3 * * *"), Zone::get("Europe/Berlin").unwrap());
    assert!(!cron.was_shifted(at(three), &zone, DEFAULT));
    assert_eq!(cron.count(at(three), at("2026-03-29T10:00:00Z"), &zone, DEFAULT), 2);
}

#[test]
fn repeated_time_runs_by_the_policy() {
    let eve = "2026-10-24T12:00:00Z";
    let (first, second) = ("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00");
    let monday = "2026-10-26T02:30:00+01:00";
    berlin("30 2 * * *", DEFAULT, eve, &[first, monday]);
    berlin("30 2 * * *", LAST, eve, &[second, monday]);
    berlin("30 2 * * *", BOTH, eve, &[first, second, monday]);
    // The search for run times starts in the middle of the repeated hour.
    berlin("30 2 * * *", DEFAULT, "2026-10-25T00:45:00Z", &[monday]);
    berlin("30 2 * * *", LAST, "2026-10-25T00:15:00Z", &[second]);
    berlin("30 2 25 10 *", BOTH, "2026-10-25T00:45:00Z", &[second, "2027-10-25T02:30:00+02:00"]);
}

#[test]
fn rhythm_continues_through_gap_and_overlap() {
    for dst in POLICIES {
        let spring = "2026-03-29T00:29:00Z";
        let expected = ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"];
        berlin("*/30 * * * *", dst, spring, &expected);
        let expected = ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"];
        berlin("30 * * * *", dst, spring, &expected);
        // Clocks skip the local times of two runs, and no other runs replace the skipped runs.
        berlin("*/30 2 * * *", dst, spring, &["2026-03-30T02:00:00+02:00"]);
        let autumn = "2026-10-25T00:29:00Z";
        let expected = ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"];
        berlin("30 */2 * * *", dst, autumn, &expected);
    }
}

#[test]
fn skipped_day_is_an_ordinary_gap() {
    // Samoa skipped 30 December 2011 when it crossed the date line.
    let eve = "2011-12-30T09:00:00Z";
    let found = times("0 9 * * *", "Pacific/Apia", DEFAULT, eve, 2);
    assert_eq!(found, ["2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"]);
    let found = times("0 9 30 12 *", "Pacific/Apia", DEFAULT, eve, 2);
    assert_eq!(found, ["2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"]);
    let found = times("0 9 30 12 *", "Pacific/Apia", SKIP, eve, 1);
    assert_eq!(found, ["2012-12-30T09:00:00+14:00"]);
}

#[test]
fn half_hour_clock_change_is_a_gap_and_an_overlap() {
    let found = times("15 2 * * *", "Australia/Lord_Howe", DEFAULT, "2026-10-03T12:00:00Z", 1);
    assert_eq!(found, ["2026-10-04T02:30:00+11:00"]);
    let found = times("45 1 * * *", "Australia/Lord_Howe", BOTH, "2026-04-04T14:00:00Z", 2);
    assert_eq!(found, ["2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"]);
}

#[test]
fn found_times_are_within_the_timestamp_range() {
    let (cron, zone) = (cron("0 0 1 1 *"), Zone::utc());
    let next = |time| cron.next_after(time, &zone, DEFAULT);
    assert_eq!(next(at("2111-12-31T00:00:00Z")), Some(at("2112-01-01T00:00:00Z")));
    assert_eq!(next(at("2112-01-01T00:00:00Z")), None);
    assert_eq!(next(Timestamp::MAX), None);
    assert_eq!(next(Timestamp::from_micros(i64::MAX)), None);
    assert_eq!(next(Timestamp::from_micros(-1)), Some(Timestamp::MIN));
    assert_eq!(next(Timestamp::from_micros(i64::MIN)), Some(Timestamp::MIN));
    assert_eq!(next(Timestamp::MIN), Some(at("1971-01-01T00:00:00Z")));
    let last = |time| cron.last_before(time, &zone, DEFAULT);
    assert_eq!(last(at("1971-01-01T00:00:00Z")), Some(Timestamp::MIN));
    assert_eq!(last(Timestamp::MIN), None);
    assert_eq!(last(Timestamp::from_micros(i64::MIN)), None);
    assert_eq!(last(Timestamp::from_micros(i64::MAX)), Some(at("2112-01-01T00:00:00Z")));
    assert_eq!(cron.count(Timestamp::MIN, Timestamp::MAX, &zone, DEFAULT), 143);
}

#[test]
fn fractions_of_a_second_do_not_matter() {
    let (cron, zone) = (cron("0 0 * * *"), Zone::utc());
    let (midnight, next) = (at("2026-01-02T00:00:00Z"), at("2026-01-03T00:00:00Z"));
    assert_eq!(cron.next_after(at("2026-01-01T23:59:59.999999Z"), &zone, DEFAULT), Some(midnight));
    assert_eq!(cron.next_after(midnight, &zone, DEFAULT), Some(next));
    assert_eq!(cron.next_after(at("2026-01-02T00:00:00.000001Z"), &zone, DEFAULT), Some(next));
    assert_eq!(cron.last_before(at("2026-01-02T00:00:00.000001Z"), &zone, DEFAULT), Some(midnight));
    assert_eq!(cron.count(midnight, at("2026-01-02T00:00:00.000001Z"), &zone, DEFAULT), 1);
    assert_eq!(cron.count(at("2026-01-02T00:00:00.000001Z"), next, &zone, DEFAULT), 0);
}
