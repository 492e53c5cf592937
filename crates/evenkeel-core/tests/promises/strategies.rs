//! Generators (proptest strategies) for random jobs with random histories.

use evenkeel_core::blackout::{Blackout, Blackouts};
use evenkeel_core::schedule::{Cron, CronSchedule, Interval, Once, Periodic, Schedule};
use evenkeel_core::{Definition, History, Span, Timestamp, Zone};
use proptest::prelude::*;

/// 2026-03-01, which is four weeks before clocks change in Europe and one week before they change
/// in America.
pub const START: i64 = 1_772_323_200;

pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

/// A random moment in the two months after [`START`].
pub fn moment() -> impl Strategy<Value = Timestamp> {
    (START..START + 61 * 86_400).prop_map(at)
}

pub fn minutes(range: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    range.prop_map(|minutes| Span::from_secs(minutes * 60))
}

fn cron_text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "0 0 * * *", "30 2 * * *", "*/15 * * * *", "0 */4 * * *", "0 9 * * 1-5",
        "15,45 8-18 1,15 * *", "0 12 L * *", "*/10 30 1 * * 0",
    ])
}

pub fn schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        prop::option::of(moment()).prop_map(|at| Schedule::Once(Once { at, tolerance: None })),
        (minutes(1..5000), prop::option::of(minutes(1..3000))).prop_map(|(every, tolerance)| {
            Schedule::Interval(Interval::new(every, None).unwrap().with_tolerance(tolerance))
        }),
        (cron_text(), prop::option::of(minutes(1..3000))).prop_map(|(text, max_duration)| {
            Schedule::Cron(CronSchedule { cron: Cron::parse(text).unwrap(), max_duration })
        }),
        (minutes(2..5000), 0_u64..100).prop_map(|(period, percent)| {
            let cooldown = Span::from_micros(period.as_micros() * percent / 101);
            Schedule::Periodic(Periodic::new(period, Some(cooldown)).unwrap())
        }),
    ]
}

fn blackouts() -> impl Strategy<Value = Vec<Blackout>> {
    prop::collection::vec((0_i8..24, 0_i8..60, 1_i64..600), 0..3)
        .prop_map(|edges| {
            let blackout = |(hour, minute, length): &(i8, i8, i64)| {
                let start = jiff::civil::time(*hour, *minute, 0, 0);
                let end = start.wrapping_add(jiff::Span::new().minutes(*length));
                Blackout { start, end }
            };
            edges.iter().map(blackout).collect::<Vec<_>>()
        })
        .prop_filter("some time is left", |periods| Blackouts::check(periods).is_ok())
}

pub fn definition() -> impl Strategy<Value = Definition> {
    let zone = prop::sample::select(vec![
        "UTC", "Europe/Berlin", "America/Toronto", "Australia/Lord_Howe", "Africa/Casablanca",
    ]);
    (schedule(), zone, blackouts(), any::<bool>()).prop_map(
        |(schedule, zone, blackout_periods, avoid_blackout)| Definition {
            timezone: Zone::get(zone).unwrap(),
            blackout_periods,
            avoid_blackout,
            ..Definition::noop(schedule)
        },
    )
}

/// A random history that ended before `now`: perhaps a successful run, and perhaps failures after
/// it.
pub fn history(now: Timestamp) -> impl Strategy<Value = History> {
    let good = prop::option::of((minutes(1..9000), minutes(0..400)));
    (good, prop::option::of(minutes(0..600)), 0_u32..4).prop_map(
        move |(good, average, failures)| {
            let good_start = good.map(|(ago, _)| now.saturating_sub(ago));
            let success = good.map(|(ago, length)| now.saturating_sub(ago.saturating_sub(length)));
            let failed = (failures > 0).then_some(now);
            History {
                last_start_at: failed.or(good_start),
                last_end_at: failed.or(success),
                last_good_start_at: good_start,
                last_good_end_at: success,
                consecutive_failures: failures,
                average_good_duration: good.and(average),
                duration_variance: 0.0,
            }
        },
    )
}
