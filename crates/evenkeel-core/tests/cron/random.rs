//! Random expressions, zones and times.

use evenkeel_core::{Timestamp, Zone};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use crate::plain::{Changes, Plain};
use crate::{POLICIES, at, backwards, forwards};
use evenkeel_core::schedule::{Cron, Dst};

const ZONES: [&str; 8] = [
    "UTC", "Europe/Berlin", "America/Toronto", "Australia/Lord_Howe", "Africa/Casablanca",
    "Pacific/Apia", "Asia/Kathmandu", "Antarctica/Troll",
];

fn item(min: u32, max: u32) -> impl Strategy<Value = String> {
    let number = min..=max;
    prop_oneof![
        3 => number.clone().prop_map(|n| n.to_string()),
        1 => (number.clone(), number.clone())
            .prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number.clone(), 1..=max).prop_map(|(a, step)| format!("{a}/{step}")),
        1 => (number.clone(), number, 1..=max)
            .prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
        1 => (1..=max).prop_map(|step| format!("*/{step}")),
    ]
}

fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => prop::collection::vec(item(min, max), 1..4).prop_map(|items| items.join(",")),
    ]
}

fn dates() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just("L".to_owned()),
        Just("LW".to_owned()),
        (0..=30).prop_map(|n| format!("L-{n}")),
        (1..=31).prop_map(|n| format!("{n}W")),
    ];
    prop_oneof![
        1 => Just("?".to_owned()),
        3 => field(1, 31),
        2 => (special, item(1, 31)).prop_map(|(a, b)| format!("{a},{b}")),
        1 => (1..=31).prop_map(|n| format!("{n}W")),
    ]
}

fn weekdays() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        (0..=7, 1..=5).prop_map(|(day, nth)| format!("{day}#{nth}")),
        (0..=7).prop_map(|day| format!("{day}L")),
    ];
    prop_oneof![3 => Just("*".to_owned()), 2 => field(0, 7), 2 => special]
}

fn days() -> impl Strategy<Value = String> {
    (dates(), field(1, 12), weekdays())
        .prop_map(|(dates, months, weekdays)| format!("{dates} {months} {weekdays}"))
}

fn expressions() -> impl Strategy<Value = String> {
    (field(0, 59), field(0, 23), days())
        .prop_map(|(minute, hour, days)| format!("{minute} {hour} {days}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_days_match_brute_force(
        expression in expressions(), zone in 0..ZONES.len(), policy in 0..6_usize,
        start in 0_i64..4_000_000_000, length in 1_i64..10 * 86_400,
    ) {
        let Ok(cron) = Cron::parse(&expression) else { return Ok(()) };
        let (zone, name, dst) = (Zone::get(ZONES[zone]).unwrap(), ZONES[zone], POLICIES[policy]);
        let changes = Changes::of(&TimeZone::get(name).unwrap());
        // The simple implementation searches about a day more on either side. Otherwise, it would
        // take the second of two equal local times for the first.
        let mut expected = Plain::new(&expression)
            .look((start - 100_000).max(0), start + length + 100_000, &changes)
            .moments(dst);
        expected.retain(|time| (start..start + length).contains(time));
        prop_assert_eq!(&forwards(&cron, &zone, dst, start, start + length), &expected);
        prop_assert_eq!(&backwards(&cron, &zone, dst, start, start + length), &expected);
        let counted = cron.count(at(start), at(start + length), &zone, dst);
        prop_assert_eq!(counted, expected.len() as u64);
    }

    #[test]
    fn all_days_from_1970_to_2100_match_brute_force(days in days()) {
        let expression = format!("0 0 {days}");
        let plain = Plain::new(&expression);
        let mut expected = Vec::new();
        let mut day = Date::constant(1970, 1, 1);
        let mut start = 0;
        while day.year() < 2100 {
            if plain.means_day(day) {
                expected.push(start);
            }
            (day, start) = (day.tomorrow().unwrap(), start + 86_400);
        }
        match Cron::parse(&expression) {
            Ok(cron) => {
                let (utc, dst) = (Zone::utc(), Dst::default());
                prop_assert_eq!(&forwards(&cron, &utc, dst, 0, start), &expected);
                prop_assert_eq!(&backwards(&cron, &utc, dst, 0, start), &expected);
                prop_assert_eq!(cron.count(at(0), at(start), &utc, dst), expected.len() as u64);
            }
            Err(fault) => prop_assert!(expected.is_empty(), "{}: {:?}", expression, fault),
        }
    }

    #[test]
    fn next_last_and_count_agree_over_years(
        expression in expressions(), zone in 0..ZONES.len(), policy in 0..6_usize, seed: u64,
        start in 0_i64..4_000_000_000_000_000, length in 1_i64..100_000_000_000_000,
    ) {
        let Ok(cron) = Cron::parse(&expression) else { return Ok(()) };
        let cron = cron.resolved(seed, false);
        let (zone, dst) = (Zone::get(ZONES[zone]).unwrap(), POLICIES[policy]);
        let (from, until) = (Timestamp::from_micros(start), Timestamp::from_micros(start + length));
        let total = cron.count(from, until, &zone, dst);
        // `from` may itself be a run time.
        let at_once = cron.count(from, Timestamp::from_micros(start + 1), &zone, dst);
        let mut time = from;
        // If the list of run times is long, only its beginning is compared.
        for index in 0..2_000_u64 {
            let Some(next) = cron.next_after(time, &zone, dst) else { break };
            prop_assert!(next > time);
            if index > 0 {
                prop_assert_eq!(cron.last_before(next, &zone, dst), Some(time));
            }
            prop_assert_eq!(cron.count(from, next, &zone, dst), at_once + index);
            if next >= until {
                prop_assert_eq!(cron.count(from, next, &zone, dst), total);
                break;
            }
            time = next;
        }
    }
}
