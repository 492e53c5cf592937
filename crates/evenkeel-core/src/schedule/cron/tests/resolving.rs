//! Tests for `H`, for the skew (a delay of some seconds), and for the stored form of cron
//! schedules.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{at, cron};
use crate::schedule::{Cron, Dst};
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

fn stored(cron: &Cron) -> serde_json::Value {
    serde_json::to_value(cron).unwrap()
}

fn resolved(expression: &str, seed: u64) -> String {
    let resolved = cron(expression).resolved(seed, true);
    stored(&resolved)["resolved"].as_str().unwrap_or_else(|| panic!("{expression}")).to_owned()
}

#[test]
fn jobs_of_one_expression_spread_over_its_range() {
    let minutes: BTreeSet<_> = (0..1000).map(|seed| resolved("H * * * *", seed)).collect();
    assert_eq!(minutes.len(), 60);
    let days: BTreeSet<_> = (0..1000).map(|seed| resolved("0 0 H * *", seed)).collect();
    assert_eq!(days.len(), 28);
    let weekdays: BTreeSet<_> = (0..1000).map(|seed| resolved("0 0 * * H", seed)).collect();
    assert_eq!(weekdays.len(), 7);
    let both: BTreeSet<_> = (0..20_000).map(|seed| resolved("H(0-29) H * * *", seed)).collect();
    assert_eq!(both.len(), 30 * 24);
}

#[test]
fn hash_with_a_step_begins_within_its_first_step() {
    for seed in 0..200 {
        let text = resolved("H/15 H(8-17)/3 H/7 * *", seed);
        let fields: Vec<_> = text.split(' ').collect();
        let (first, rest) = fields[0].split_once('-').unwrap();
        assert!(first.parse::<u32>().unwrap() < 15);
        assert_eq!(rest, "59/15");
        let (first, rest) = fields[1].split_once('-').unwrap();
        assert!((8..11).contains(&first.parse().unwrap()));
        assert_eq!(rest, "17/3");
        assert!(fields[2].ends_with("-28/7"));
    }
    let four = cron("H/15 H * * *").resolved(9, true);
    let day = at("2026-01-01T00:00:00Z")..at("2026-01-02T00:00:00Z");
    assert_eq!(four.count(day.start, day.end, &Zone::utc(), Dst::default()), 4);
}

#[test]
fn misuse_of_a_hash_is_refused() {
    for (expression, position) in [
        ("H(0-60) * * * *", 4),
        ("H(29-0) * * * *", 2),
        ("H(0-29 * * * *", 1),
        ("H5 * * * *", 1),
        ("H(0-9)/20 * * * *", 0),
        ("H/90 * * * *", 2),
        ("0 0 H,H * *", 6),
    ] {
        assert_eq!(Cron::parse(expression).unwrap_err().position, position, "{expression}");
    }
}

#[test]
fn unresolved_expression_has_the_numbers_of_seed_0() {
    let (bare, resolved) = (cron("H H * * *"), cron("H H * * *").resolved(0, true));
    let next = |cron: &Cron| cron.next_after(Timestamp::MIN, &Zone::utc(), Dst::default());
    assert_eq!(next(&bare), next(&resolved));
    assert_eq!(resolved.expression(), "H H * * *");
    assert_ne!(next(&resolved), next(&resolved.clone().resolved(1, true)));
    assert_eq!(resolved.clone().resolved(1, true).resolved(0, true), resolved);
}

#[test]
fn equal_schedules_of_different_jobs_stay_equal() {
    assert_eq!(cron("0 9 * * *").resolved(1, true), cron("0 9 * * *").resolved(2, true));
}

#[test]
fn stored_form_has_the_expression_and_the_drawn_numbers() {
    assert_eq!(stored(&cron("0 9 * * *")), serde_json::json!({"expression": "0 9 * * *"}));
    let of_job = cron("H 9 * * *").resolved(7, false);
    let json = stored(&of_job);
    assert_eq!(json["expression"], "H 9 * * *");
    assert_eq!(json["resolved"], resolved("H 9 * * *", 7));
    assert!(json["skew_secs"].as_u64().unwrap() < 60);
    assert_eq!(serde_json::from_value::<Cron>(json).unwrap(), of_job);
    for wrong in [
        serde_json::json!({"expression": "0 25 * * *"}),
        serde_json::json!({"expression": "H 9 * * *", "resolved": "61 9 * * *"}),
        serde_json::json!({"expression": "0 9 * * *", "skew_secs": 60}),
    ] {
        assert!(serde_json::from_value::<Cron>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn cron_type_is_small() {
    assert!(size_of::<Cron>() <= 104, "{}", size_of::<Cron>());
}

proptest! {
    #[test]
    fn skew_moves_every_time_and_nothing_else(seed: u64, micros in 0_i64..4_000_000_000_000_000) {
        let (after, zone, dst) = (Timestamp::from_micros(micros), Zone::utc(), Dst::default());
        let exact = cron("*/7 3 * * *");
        let skewed = exact.clone().resolved(seed, false);
        let skew = stored(&skewed)["skew_secs"].as_u64().unwrap_or(0);
        let skew = Span::from_secs(skew);
        let next = exact.next_after(after, &zone, dst).unwrap();
        prop_assert_eq!(
            skewed.next_after(after.saturating_add(skew), &zone, dst),
            Some(next.saturating_add(skew))
        );
        let last = exact.last_before(next, &zone, dst).map(|last| last.saturating_add(skew));
        prop_assert_eq!(skewed.last_before(next.saturating_add(skew), &zone, dst), last);
    }

    #[test]
    fn parser_never_panics(text in "[-0-9*/,?LWH#()@A-Za-zä ]{0,30}") {
        if let Err(fault) = Cron::parse(&text) {
            prop_assert!(fault.position <= text.chars().count());
            prop_assert!(!fault.message.is_empty());
        }
    }

    #[test]
    fn resolved_expression_always_reads_back(
        seed: u64,
        fields in prop::array::uniform5(prop::sample::select(vec![
            "H", "*", "H/2", "H(1-5)", "H(2-6)/3", "1,H(3-5)", "3", "2-4", "*/2", "h/6",
        ])),
    ) {
        let expression = fields.join(" ");
        if let Ok(cron) = Cron::parse(&expression) {
            let resolved = cron.resolved(seed, false);
            let read: Cron = serde_json::from_value(stored(&resolved)).unwrap();
            prop_assert_eq!(&read, &resolved);
            let resolved = stored(&resolved)["resolved"].as_str().map(str::to_owned);
            prop_assert_eq!(resolved.is_some(), expression.contains(['H', 'h']));
            prop_assert!(!resolved.is_some_and(|text| text.contains(['H', 'h'])));
        }
    }
}
