//! Conditions and reasons in plain English.

use evenkeel_core::condition::{Condition, Reason};
use evenkeel_core::explain::{Busy, EarlierRun, Why};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Definition, Schedule, Span, Timestamp, Zone};

use crate::describe::{listed, moment, span_words};

/// How long from `now` to a moment, to the unit that matters.
fn from_now(until: Timestamp, now: Timestamp) -> String {
    let span = until.since(now);
    let secs = span.as_micros() / 1_000_000;
    let unit = match secs {
        0 => return "in a moment".into(),
        1..120 => 1,
        120..7_200 => 60,
        7_200..172_800 => 3_600,
        _ => 86_400,
    };
    format!("in {}", span_words(Span::from_secs(secs / unit * unit)))
}

/// What a condition means, for a job of this definition.
pub fn condition_words(condition: &Condition, definition: &Definition) -> String {
    let deadline = condition.deadline.map(|deadline| moment(deadline, &definition.timezone));
    // One that runs once promises to start, all others to be over.
    let starts = matches!(definition.schedule, Schedule::Once(_));
    match (condition.reason, deadline) {
        (Reason::OnTime, None) => "It runs as it should.".into(),
        (Reason::OnTime, Some(by)) if starts => {
            format!("It runs as it should, and must have started by {by}.")
        }
        (Reason::OnTime, Some(by)) => {
            format!("It runs as it should. The next good run must be over by {by}.")
        }
        (Reason::NeverRan, None) => "It has not run yet, and need not have.".into(),
        (Reason::NeverRan, Some(by)) if starts => {
            format!("It has not run yet, and need not have. It must have started by {by}.")
        }
        (Reason::NeverRan, Some(by)) => {
            format!("It has not run yet, and need not have. A good run must be over by {by}.")
        }
        (Reason::Paused, _) => "It is paused or cancelled: nothing is promised.".into(),
        (Reason::Over, _) => "No run follows, and none has to.".into(),
        (Reason::LastRunFailed, None) => "Its last run failed.".into(),
        (Reason::LastRunFailed, Some(by)) if starts => {
            format!("Its last run failed. The promise still holds if it starts by {by}.")
        }
        (Reason::LastRunFailed, Some(by)) => {
            format!("Its last run failed. The promise still holds if a good run is over by {by}.")
        }
        (Reason::LikelyViolatedRunning, by) => format!(
            "It runs, but judging by how long it takes it will not be over by {}.",
            by.unwrap_or_default()
        ),
        (Reason::LikelyViolatedWaiting, by) if starts => {
            format!("It is late: it must have started by {}.", by.unwrap_or_default())
        }
        (Reason::LikelyViolatedWaiting, by) => format!(
            "Even if it started now, judging by how long it takes it would not be over by {}.",
            by.unwrap_or_default()
        ),
        (Reason::Violated, by) if starts => {
            format!("It had to start by {}, and has not.", by.unwrap_or_default())
        }
        (Reason::Violated, by) => {
            format!("A good run had to be over by {}, and none was.", by.unwrap_or_default())
        }
        (Reason::GivenUp, _) => "Its last run failed, and no other follows.".into(),
        (Reason::HeldByBlackout, by) => {
            let promise =
                if starts { "It had to start by" } else { "A good run had to be over by" };
            let until = condition.blackout_ends_at.map(|end| moment(end, &definition.timezone));
            format!(
                "{promise} {}, but a blackout kept it from starting until {}.",
                by.unwrap_or_default(),
                until.unwrap_or_default()
            )
        }
        (Reason::FinishedFailed, _) => {
            "Its only run failed more than a day ago, and no other follows. That counts as known by \
             now; its status stays failed."
                .into()
        }
    }
}

/// What a reason means at `now`, for a job of this zone.
pub fn why_words(why: &Why, zone: &Zone, now: Timestamp) -> String {
    let when = |at: Timestamp| moment(at, zone);
    let until = |at: Timestamp| format!("{} ({})", moment(at, zone), from_now(at, now));
    match why {
        Why::Running { since } => format!("It runs since {}.", when(*since)),
        Why::NotDue { until: at, busy: None } => format!("Its next time is {}.", until(*at)),
        Why::NotDue { until: at, busy: Some(busy) } => next_time(busy, &until(*at)),
        Why::CoolingDown { until: at } => {
            format!("It pauses after its last run until {}.", until(*at))
        }
        Why::AfterThisRun { cooldown, until: at } => format!(
            "Its next time is its cooldown of {} after this run has ended, at the latest {}.",
            span_words(*cooldown),
            until(*at)
        ),
        Why::Blackout { until: at } => {
            format!("A blackout keeps it from starting until {}.", until(*at))
        }
        Why::RetryPending { until: at, retry } => {
            format!("A run of it failed; retry {retry} comes at {}.", until(*at))
        }
        Why::TriggerPending { until: at } => {
            format!("A run that was asked for comes at {}.", until(*at))
        }
        Why::WaitingInQueue { ahead, since, priority, effective_priority, .. } => {
            let place = match ahead {
                0 => "next in line among yours".into(),
                1 => "1 of your runs is before it".into(),
                1000.. => "1000 of your runs or more are before it".into(),
                n => format!("{n} of your runs are before it"),
            };
            let risen = if effective_priority > priority {
                let (base, risen) = (priority.get(), effective_priority.get());
                format!(" Waiting has raised its priority from {base} to {risen}.")
            } else {
                String::new()
            };
            format!(
                "It waits since {} and starts as soon as a worker is free; {place}.{risen}",
                when(*since)
            )
        }
        Why::Limited { since, scope, key, lane, limit, running, .. } => {
            let of = match (scope, key, lane) {
                (LimitScope::Key, Some(key), _) => format!("the runs with its key {key:?}"),
                (LimitScope::Key, None, _) => "the runs with the key that it had".into(),
                (LimitScope::Tenant, ..) => "your runs".into(),
                (LimitScope::Lane, _, Some(lane)) => {
                    format!("the runs in the lane {}", lane.as_str())
                }
                (LimitScope::Lane, _, None) => "the runs in its lane".into(),
            };
            let running = running.map_or(String::new(), |running| format!(" ({running} do)"));
            format!(
                "It waits since {} for a place: at most {limit} of {of} may go on at once{running}.",
                when(*since)
            )
        }
        Why::NoNodeAllowed { forbidden } => format!(
            "No node may run it: all that live and serve its pool are among those it stays away from \
             ({}).",
            listed(forbidden, "and")
        ),
        Why::NoWorker => "No node that runs jobs is alive.".into(),
        Why::NoWorkerForPool { pool } => format!(
            "No node that is alive serves its pool {pool:?}: start one with --pools {pool}, or \
             give the job another pool."
        ),
        Why::NoExecutor => {
            "It names no executor and no target with a url. Its runs fail until the target \
             gets a url, or the job an executor_type."
                .into()
        }
        Why::NoCapacity { since } => {
            let since = when(*since);
            format!("It is due since {since} and starts as soon as a worker has room for it.")
        }
        Why::PreviousRunGoingOn { since, busy } => {
            let while_busy = match busy.earlier {
                EarlierRun::GoesOn => "while a run of it goes on",
                EarlierRun::Waits => "while a run of it waits",
                EarlierRun::IsRetried => "while a retry of it is pending",
            };
            let then = match busy.overlap {
                OverlapPolicy::Skip => "that time is skipped",
                OverlapPolicy::Queue => "that time waits for its end",
                OverlapPolicy::Allow => "both run side by side",
                OverlapPolicy::Replace => "that run is being ended to make room",
            };
            format!("Its time came at {} {while_busy}; {then}.", when(*since))
        }
        Why::Starting => "It is due and starts in a moment.".into(),
        Why::Paused => "It is paused; resume it to give it a next time.".into(),
        Why::Cancelled => "It was cancelled and runs no more.".into(),
        Why::Over => "It has no further time.".into(),
        Why::GivenUp => "Its last run failed and no retry is left; it has no further time.".into(),
    }
}

/// What comes at the next time if an earlier run may not be over by then.
fn next_time(busy: &Busy, at: &str) -> String {
    let earlier = match busy.earlier {
        EarlierRun::GoesOn => "this run",
        EarlierRun::Waits => "the run that waits",
        EarlierRun::IsRetried => "the retry",
    };
    match busy.overlap {
        OverlapPolicy::Skip => format!(
            "If {earlier} is over by then, it starts again at {at}; otherwise that time is skipped."
        ),
        OverlapPolicy::Queue => {
            format!(
                "Its next time is {at}; if {earlier} is not over by then, it waits for its end."
            )
        }
        OverlapPolicy::Allow => format!("Its next time is {at}."),
        OverlapPolicy::Replace => format!(
            "Its next time is {at}; if {earlier} is not over by then, it is ended to make room."
        ),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::{Interval, Once};

    use evenkeel_core::order::{Lane, Priority};

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    #[test]
    fn a_moment_is_told_by_the_clocks_of_the_job_and_from_now() {
        let until = NOW.saturating_add(Span::from_secs(3 * 3600 + 59));
        let zone = Zone::get("America/Toronto").unwrap();
        assert_eq!(
            why_words(&Why::NotDue { until, busy: None }, &zone, NOW),
            "Its next time is 2027-01-15 06:00:59 America/Toronto time (in 3 hours)."
        );
    }

    #[test]
    fn every_reason_is_a_sentence() {
        let once = Definition::noop(Schedule::Once(Once::NOW));
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let recurs = Definition::noop(Schedule::Interval(every));
        for reason in Reason::ALL {
            for (definition, deadline) in
                [(&once, None), (&once, Some(NOW)), (&recurs, None), (&recurs, Some(NOW))]
            {
                let condition = Condition {
                    reason,
                    deadline,
                    should_start_by: deadline,
                    window: None,
                    changes_at: None,
                    blackout_ends_at: None,
                };
                let words = condition_words(&condition, definition);
                assert!(words.ends_with('.') && words.len() > 18, "{words}");
            }
        }
    }

    #[test]
    fn a_job_that_runs_once_must_have_started() {
        let once = Definition::noop(Schedule::Once(Once::NOW));
        let words = |reason| {
            let condition = Condition {
                reason,
                deadline: Some(NOW),
                should_start_by: Some(NOW),
                window: None,
                changes_at: None,
                blackout_ends_at: None,
            };
            condition_words(&condition, &once)
        };
        assert!(words(Reason::NeverRan).contains("It must have started by 2027-01-15 08:00 UTC."));
        assert!(words(Reason::Violated).starts_with("It had to start by 2027-01-15 08:00 UTC"));
    }

    #[test]
    fn what_is_in_the_way_of_the_next_time_is_told() {
        let zone = Zone::utc();
        let told = |earlier, overlap| {
            let busy = Busy { earlier, overlap };
            [
                why_words(&Why::NotDue { until: NOW, busy: Some(busy) }, &zone, NOW),
                why_words(&Why::PreviousRunGoingOn { since: NOW, busy }, &zone, NOW),
            ]
        };
        let [next, came] = told(EarlierRun::GoesOn, OverlapPolicy::Skip);
        assert!(next.starts_with("If this run is over by then, it starts again at "), "{next}");
        assert!(came.contains("while a run of it goes on"), "{came}");
        let [next, came] = told(EarlierRun::IsRetried, OverlapPolicy::Queue);
        assert!(next.contains("if the retry is not over by then"), "{next}");
        assert!(!came.contains("goes on"), "{came}");
        let [next, came] = told(EarlierRun::Waits, OverlapPolicy::Replace);
        assert!(next.ends_with("it is ended to make room."), "{next}");
        assert!(came.contains("while a run of it waits"), "{came}");
    }

    fn waiting(ahead: u32, priority: u8, effective: u8) -> Why {
        let read = |number| Priority::try_from(number).unwrap();
        let (priority, effective_priority) = (read(priority), read(effective));
        Why::WaitingInQueue { scheduled_at: NOW, since: NOW, ahead, priority, effective_priority }
    }

    #[test]
    fn what_waiting_has_raised_is_told() {
        let told = why_words(&waiting(3, 20, 70), &Zone::utc(), NOW);
        assert!(told.ends_with(" Waiting has raised its priority from 20 to 70."), "{told}");
    }

    #[test]
    fn a_limit_is_told_and_what_it_is_of() {
        let told = |scope, key: Option<&str>, lane, running| {
            let key = key.map(Into::into);
            let (scheduled_at, since, limit) = (NOW, NOW, 2);
            let why = Why::Limited { scheduled_at, since, scope, key, lane, limit, running };
            let words = why_words(&why, &Zone::utc(), NOW);
            words.split_once(": ").unwrap().1.to_owned()
        };
        let by_key = told(LimitScope::Key, Some("a b"), None, Some(2));
        let may = "may go on at once";
        assert_eq!(by_key, format!("at most 2 of the runs with its key \"a b\" {may} (2 do)."));
        let by_tenant = told(LimitScope::Tenant, None, None, Some(3));
        assert_eq!(by_tenant, format!("at most 2 of your runs {may} (3 do)."));
        let by_lane = told(LimitScope::Lane, None, Some(Lane::Batch), None);
        assert_eq!(by_lane, format!("at most 2 of the runs in the lane batch {may}."));
    }

    #[test]
    fn a_place_in_the_queue_is_told() {
        let place = |ahead| why_words(&waiting(ahead, 20, 20), &Zone::utc(), NOW);
        assert!(place(0).ends_with("; next in line among yours."));
        assert!(place(1).ends_with("; 1 of your runs is before it."));
        assert!(place(17).ends_with("; 17 of your runs are before it."));
        assert!(place(1000).ends_with("; 1000 of your runs or more are before it."));
    }
}
