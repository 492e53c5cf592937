//! A second, slow implementation of conditions that steps through time minute by minute where the
//! real implementation uses formulas.

use evenkeel_core::condition::{Facts, Level, condition};
use evenkeel_core::schedule::{Cron, CronSchedule, Interval, Periodic, Schedule};
use evenkeel_core::{Definition, History, Span, Timestamp};
use proptest::prelude::*;

use crate::strategies::{START, at, history, minutes};

/// A schedule in UTC whose run times are easy to find minute by minute.
#[derive(Clone, Debug)]
enum Simple {
    /// The last successful run must have begun at most this long ago.
    Periodic(Span),
    /// The job runs at `minute` of each of `hours`, and a run must finish within `over_after`.
    Daily {
        minute: u64,
        hours: Vec<u64>,
        over_after: Span,
    },
    Every {
        every: u64,
        phase: u64,
    },
}

impl Simple {
    fn schedule(&self) -> Schedule {
        match self {
            Self::Periodic(period) => {
                Schedule::Periodic(Periodic::new(*period, Some(Span::ZERO)).unwrap())
            }
            Self::Daily { minute, hours, over_after } => {
                let hours: Vec<String> = hours.iter().map(u64::to_string).collect();
                let text = format!("{minute} {} * * *", hours.join(","));
                let cron = Cron::parse(&text).unwrap();
                Schedule::Cron(CronSchedule { cron, max_duration: Some(*over_after) })
            }
            Self::Every { every, .. } => {
                Schedule::Interval(Interval::new(Span::from_secs(every * 60), None).unwrap())
            }
        }
    }

    /// True if the minute `minute_no` is a scheduled time.
    fn has(&self, minute_no: u64) -> bool {
        match self {
            Self::Periodic(_) => false,
            Self::Daily { minute, hours, .. } => {
                minute_no % 60 == *minute && hours.contains(&(minute_no / 60 % 24))
            }
            Self::Every { every, phase } => minute_no % every == phase % every,
        }
    }

    /// Finds the first scheduled time after `moment` by checking every minute.
    fn time_after(&self, moment: Timestamp) -> Timestamp {
        let mut minute_no = moment.as_micros() as u64 / 60_000_000 + 1;
        while !self.has(minute_no) {
            minute_no += 1;
        }
        at(minute_no as i64 * 60)
    }

    /// Returns the next deadline after the successful run that began at `good_start`.
    fn violated_after(&self, good_start: Timestamp) -> Timestamp {
        let (time, allowed) = match self {
            Self::Periodic(period) => (good_start, *period),
            Self::Daily { over_after, .. } => (self.time_after(good_start), *over_after),
            Self::Every { every, .. } => (self.time_after(good_start), Span::from_secs(every * 60)),
        };
        time.saturating_add(allowed)
    }
}

fn plainly(
    schedule: &Simple,
    history: &History,
    created: Timestamp,
    running_since: Option<Timestamp>,
    now: Timestamp,
) -> Level {
    let violated_after = schedule.violated_after(history.last_good_start_at.unwrap_or(created));
    let average = history.average_good_duration.unwrap_or(Span::ZERO);
    if now > violated_after {
        return Level::Error;
    }
    let would_be_over = match running_since {
        Some(start) => start.saturating_add(average),
        None => now.saturating_add(average),
    };
    if would_be_over > violated_after || history.consecutive_failures > 0 {
        return Level::Warning;
    }
    Level::Ok
}

fn simple() -> impl Strategy<Value = Simple> {
    prop_oneof![
        minutes(2..5000).prop_map(Simple::Periodic),
        (0_u64..60, prop::collection::vec(0_u64..24, 1..4), minutes(1..2000))
            .prop_map(|(minute, hours, over_after)| Simple::Daily { minute, hours, over_after }),
        (1_u64..3000, 0_u64..3000).prop_map(|(every, phase)| Simple::Every { every, phase }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn condition_matches_the_slow_rules(
        schedule in simple(), now in START..START + 61 * 86_400,
        created in minutes(9000..20_000), running in prop::option::of(minutes(0..300)),
        unseen in any::<prop::sample::Index>(), pasts in prop::collection::vec(history(at(0)), 1),
        ago in minutes(0..9000), length in minutes(0..300),
    ) {
        let now = at(now);
        let created = now.saturating_sub(created);
        // The generated history is shifted so that its last successful run began before now.
        let mut history = *unseen.get(&pasts);
        let good = history.average_good_duration.map(|_| now.saturating_sub(ago));
        history.last_good_start_at = good;
        history.last_good_end_at = good.map(|start| start.saturating_add(length));
        let running_since = running.map(|ago| now.saturating_sub(ago));
        let definition = Definition::noop(schedule.schedule());
        let next_at = match schedule {
            Simple::Periodic(_) => now,
            Simple::Daily { .. } | Simple::Every { .. } => schedule.time_after(now),
        };
        let facts = Facts {
            definition: &definition, history: &history, since: created, active: true,
            next_at: Some(next_at), last_fired_at: None, live: running.is_some(), running_since,
        };
        let expected = plainly(&schedule, &history, created, running_since, now);
        prop_assert_eq!(condition(&facts, now).level(), expected);
    }
}
