//! Tests for accepted cron expressions and for the error messages of refused ones.

use super::{cron, times};
use crate::schedule::{Cron, Dst};

fn utc(expression: &str, after: &str, expected: &[&str]) {
    let found = times(expression, "UTC", Dst::default(), after, expected.len());
    let expected: Vec<_> = expected.iter().map(|time| format!("{time}+00:00")).collect();
    assert_eq!(found, expected, "{expression}");
}

fn refused(expression: &str, position: usize, message: &str) {
    let fault = Cron::parse(expression).expect_err(expression);
    assert_eq!((fault.position, fault.message.as_str()), (position, message), "{expression}");
}

fn same(one: &str, other: &str) {
    assert_eq!(cron(one).pattern, cron(other).pattern, "{one} and {other}");
}

#[test]
fn field_forms_have_their_documented_meaning() {
    let new_year = "2026-01-01T00:00:00Z";
    utc("30 9 * * *", new_year, &["2026-01-01T09:30:00", "2026-01-02T09:30:00"]);
    utc("*/20 8-9 * * *", new_year, &["2026-01-01T08:00:00", "2026-01-01T08:20:00"]);
    utc("15 30 9 * * *", new_year, &["2026-01-01T09:30:15", "2026-01-02T09:30:15"]);
    utc("0 0 1,15 JUN-AUG *", new_year, &["2026-06-01T00:00:00", "2026-06-15T00:00:00"]);
    utc("0 50/4 * * * *", new_year, &["2026-01-01T00:50:00", "2026-01-01T00:54:00"]);
    same("0 9 * * MON-FRI", "0  9\t* * 1-5");
    same("0 9 * jan,dec sun", "0 9 * 1,12 7");
    same("0 9 * * 5-7", "0 9 * * 0,5,6");
    same("0 9 ? * 1", "0 9 * * 1");
    same("0 9 1 * ?", "0 9 1 * *");
    same("5 0-23/6 * * *", "5 0,6,12,18 * * *");
    same("0 9 * * 1/2", "0 9 * * 1,3,5,7");
}

#[test]
fn names_stand_for_expressions() {
    same("@yearly", "0 0 1 1 *");
    same("@annually", "@yearly");
    same("@MONTHLY", "0 0 1 * *");
    same("@weekly", "0 0 * * 0");
    same(" @daily ", "0 0 * * *");
    same("@midnight", "@daily");
    same("@hourly", "0 * * * *");
    assert_eq!(cron("@daily").expression(), "@daily");
}

#[test]
fn the_last_days_of_a_month_are_counted_from_its_end() {
    let new_year = "2028-01-01T00:00:00Z";
    utc("0 0 L * *", new_year, &["2028-01-31T00:00:00", "2028-02-29T00:00:00"]);
    utc("0 0 L-3 * *", new_year, &["2028-01-28T00:00:00", "2028-02-26T00:00:00"]);
    // 30 April 2028 is a Sunday.
    utc("0 0 LW 4-5 *", new_year, &["2028-04-28T00:00:00", "2028-05-31T00:00:00"]);
    utc("0 0 L-30 * *", new_year, &["2028-03-01T00:00:00", "2028-05-01T00:00:00"]);
}

#[test]
fn the_nearest_working_day_stays_in_its_month() {
    // 15 August 2026 is a Saturday, 15 November a Sunday.
    utc("0 0 15W 8,11 *", "2026-08-01T00:00:00Z", &["2026-08-14T00:00:00", "2026-11-16T00:00:00"]);
    // 1 August 2026 is a Saturday, 31 May a Sunday, and June has no 31st.
    utc("0 0 1W 8 *", "2026-01-01T00:00:00Z", &["2026-08-03T00:00:00"]);
    utc("0 0 31W 5-7 *", "2026-05-01T00:00:00Z", &["2026-05-29T00:00:00", "2026-07-31T00:00:00"]);
}

#[test]
fn weekdays_can_be_counted_within_the_month() {
    let june = "2026-06-01T12:00:00Z";
    utc("0 0 * * FRI#2", june, &["2026-06-12T00:00:00", "2026-07-10T00:00:00"]);
    utc("0 0 * * 1#5", june, &["2026-06-29T00:00:00", "2026-08-31T00:00:00"]);
    utc("0 0 * * friL", june, &["2026-06-26T00:00:00", "2026-07-31T00:00:00"]);
    utc("0 0 * * 7L", june, &["2026-06-28T00:00:00", "2026-07-26T00:00:00"]);
}

#[test]
fn both_fields_of_days_must_match_if_one_begins_with_a_star() {
    let june = "2026-06-01T12:00:00Z";
    utc("0 0 13 * FRI", june, &["2026-06-05T00:00:00", "2026-06-12T00:00:00"]);
    utc("0 0 13 * 5", "2026-06-12T00:00:00Z", &["2026-06-13T00:00:00"]);
    // Odd days that are Fridays.
    utc("0 0 */2 * 5", june, &["2026-06-05T00:00:00", "2026-06-19T00:00:00"]);
    // Runs on the 10th if it is a Sunday, Tuesday, Thursday or Saturday.
    utc("0 0 10 * */2", june, &["2026-09-10T00:00:00", "2026-10-10T00:00:00"]);
}

#[test]
fn error_names_its_position() {
    refused(
        "*/90 * * * *",
        2,
        "a step of 90 is too long, as minutes go from 0 to 59: write @every 90m",
    );
    refused("0 22-2 * * *", 2, "the range ends before it begins: write 22-23,0-2");
    refused("0 22-2/2 * * *", 2, "the range ends before it begins: write 22,0,2");
    refused("0 9 * * FRI-SUN", 8, "the range ends before it begins: write 5-7");
    refused("0 9 * NOV-FEB *", 6, "the range ends before it begins: write 11-12,1-2");
    refused("0 24 * * *", 2, "there is no hour 24: hours go from 0 to 23");
    refused("5,60 * * * *", 2, "there is no minute 60: minutes go from 0 to 59");
    refused("0 0 0 * *", 4, "there is no day of the month 0: days of the month go from 1 to 31");
    refused(
        "0 0 * * 1-8",
        10,
        "there is no day of the week 8: days of the week go from 0 to 7, both Sunday, or SUN to SAT",
    );
    refused("0 0 * * Monday", 8, "Monday is not a day of the week: write MON");
    refused("0/0 * * * *", 2, "a step of 0 is not possible: write 1 or more; 1 is every minute");
    refused("0 1,,2 * * *", 4, "an item of the list is empty: write a list like 0,2");
    refused("0 ? * * *", 2, "? is allowed in the two day fields only: write * here");
    refused(
        "0 0 * * L",
        8,
        "L needs a day of the week: write it like FRIL; for Saturday write SAT or 6",
    );
    refused("0 0 L-31 * *", 6, "no month has that many days: up to L-30");
    refused(
        "0 0 * * FRI#6",
        12,
        "after #, write which one of the month it is, from 1 to 5, like FRI#2",
    );
    refused(
        "0 9 * * 99999999999999999999",
        8,
        "there is no day of the week 99999999999999999999: days of the week go from 0 to 7, both Sunday, or SUN to SAT",
    );
    refused("ä 9 * * *", 0, "ä is not a minute: minutes go from 0 to 59");
    refused("0 ä,x * * *", 2, "ä is not an hour: hours go from 0 to 23");
}

#[test]
fn wrong_number_of_fields_is_refused() {
    for (expression, position, count) in [("0 9 * *", 7, 4), ("0 0 9 * * * 2026", 12, 7)] {
        refused(
            expression,
            position,
            &format!(
                "write 5 fields (minute, hour, day of the month, month, day of the week), or 6 \
                 with seconds first, not {count}: for example 0 9 * * 1-5"
            ),
        );
    }
    assert_eq!(Cron::parse("  ").unwrap_err().position, 0);
    assert!(Cron::parse("@reboot").unwrap_err().message.contains("cluster"));
    assert!(Cron::parse("@fortnightly").unwrap_err().message.contains("@weekly"));
    assert_eq!(Cron::parse("@daily 5").unwrap_err().position, 7);
    assert!(Cron::parse("TZ=UTC 0 9 * * *").is_err());
    assert!(Cron::parse("CRON_TZ=UTC 0 9 * * * *").unwrap_err().message.contains("timezone"));
}

#[test]
fn days_that_never_come_are_refused() {
    for expression in [
        "0 0 30 2 *", "0 0 30,31 FEB ?", "0 0 31 4,6 *", "0 0 31W 4 *", "0 0 L-30 4 *",
        // `*/6` is Sunday and Saturday.
        "0 0 LW * */6", "0 0 */31 * MON#2", "0 0 */31 * MONL", "0 0 31 H *", "0 0 H(29-30) 2 *",
        "0 0 H(29-30) H *",
    ] {
        assert_eq!(Cron::parse(expression).expect_err(expression).position, 4, "{expression}");
    }
    // These days do come.
    for expression in ["0 0 29 2 *", "0 0 31 4 1", "0 0 * 2 MON#5", "0 0 29 2 */6", "0 0 H H *"] {
        cron(expression);
    }
}

#[test]
fn rare_days_are_found() {
    // 29 February is a Sunday once in 28 years, but only after 40 years if 2100, which is no leap
    // year, is in between.
    utc("0 0 29 2 */7", "2032-03-01T00:00:00Z", &["2060-02-29T00:00:00", "2088-02-29T00:00:00"]);
    assert!(times("0 0 29 2 */7", "UTC", Dst::default(), "2088-03-01T00:00:00Z", 1).is_empty());
}
