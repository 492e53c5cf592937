//! Measures how long it takes to compute the conditions of a million jobs. Run it with `cargo run
//! --release -p evenkeel-core --example condition_speed`.

#![expect(clippy::print_stdout, reason = "it is here to print")]
#![expect(clippy::unwrap_used, reason = "its schedules are right")]
#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use evenkeel_core::condition::{Facts, Level, condition};
use evenkeel_core::schedule::{Cron, CronSchedule, Interval, Periodic, Schedule};
use evenkeel_core::{Definition, History, Span, Timestamp, Zone};

const JOBS: usize = 1_000_000;
const NOW: i64 = 1_793_000_000_000_000;

fn definitions() -> Vec<Definition> {
    let cron = |text: &str, zone: &str| Definition {
        timezone: Zone::get(zone).unwrap(),
        ..Definition::noop(Schedule::Cron(CronSchedule {
            cron: Cron::parse(text).unwrap(),
            max_duration: None,
        }))
    };
    let every = |secs| {
        Definition::noop(Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap()))
    };
    let period = |secs| {
        Definition::noop(Schedule::Periodic(Periodic::new(Span::from_secs(secs), None).unwrap()))
    };
    vec![
        every(60),
        every(86_400),
        cron("*/5 * * * *", "UTC"),
        cron("0 9 * * 1-5", "America/Toronto"),
        cron("30 2 L * *", "Europe/Berlin"),
        cron("0 0 29 2 *", "Australia/Lord_Howe"),
        period(3600),
        period(86_400),
    ]
}

fn main() {
    let definitions = definitions();
    let now = Timestamp::from_micros(NOW);
    let past = |index: usize| {
        let ago = Span::from_secs(1 + (index as u64 * 7919) % 90_000);
        let start = now.saturating_sub(ago);
        History {
            last_start_at: Some(start),
            last_end_at: Some(start),
            last_good_start_at: Some(start),
            last_good_end_at: Some(start),
            average_good_duration: Some(Span::from_secs(index as u64 % 600)),
            ..History::default()
        }
    };
    let jobs: Vec<(&Definition, History, Option<Timestamp>)> = (0..JOBS)
        .map(|index| {
            let definition = &definitions[index % definitions.len()];
            (definition, past(index), definition.timetable().next_after(now))
        })
        .collect();
    let begun = Instant::now();
    let mut counts = [0_usize; Level::ALL.len()];
    for (definition, history, next_at) in &jobs {
        let facts = Facts {
            definition,
            history,
            since: Timestamp::MIN,
            active: true,
            next_at: *next_at,
            last_fired_at: None,
            live: false,
            running_since: None,
        };
        counts[condition(&facts, now).level() as usize] += 1;
    }
    let took = begun.elapsed();
    println!(
        "{JOBS} conditions in {took:.2?}: {:.0} ns each",
        took.as_nanos() as f64 / JOBS as f64
    );
    for level in Level::ALL {
        println!("{:8} {}", level.as_str(), counts[level as usize]);
    }
}
