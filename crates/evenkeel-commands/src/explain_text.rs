//! Describes job conditions, and the reasons why a job does not run, in sentences.

use evenkeel_core::condition::{Condition, Reason};
use evenkeel_core::explain::{Busy, EarlierRun, Why};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Definition, Schedule, Span, Timestamp, Zone};

use crate::describe::{listed, moment, span_words};

/// Formats the duration from `now` to `until`, rounded down to whole seconds, minutes, hours or
/// days.
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

pub fn condition_text(condition: &Condition, definition: &Definition) -> String {
    let when = |time: Option<Timestamp>| time.map(|time| moment(time, &definition.timezone));
    let by = when(condition.deadline);
    // A job that runs once must start before its deadline; a run of another job must succeed before
    // its deadline.
    let starts = matches!(definition.schedule, Schedule::Once(_));
    let with_deadline = |text: &str, start: &str, success: &str| match &by {
        Some(by) => format!("{text}{} {by}.", if starts { start } else { success }),
        None => format!("{text}."),
    };
    match condition.reason {
        Reason::OnTime => with_deadline(
            "It runs as planned", ", and must have started by", ". The next run must succeed by",
        ),
        Reason::NeverRan => with_deadline(
            "It has not run yet, and no run was due", ". It must have started by",
            ". A run must succeed by",
        ),
        Reason::LastRunFailed => with_deadline(
            "Its last run failed",
            ". The promise still holds if it starts by",
            ". The promise still holds if a run succeeds by",
        ),
        Reason::Paused => "It is paused or cancelled, so it has no deadline.".into(),
        Reason::Over => "It has no further run, and needs none.".into(),
        Reason::FinishedFailed => "Its only run failed more than a day ago, and no other follows. \
                                   The failure is no longer an error; its status stays failed."
            .into(),
        Reason::GivenUp => "Its last run failed, and no other follows.".into(),
        reason => {
            let until = when(condition.blackout_ends_at).unwrap_or_default();
            missed_deadline(reason, starts, &by.unwrap_or_default(), &until)
        }
    }
}

/// Describes a deadline that was missed or will probably be missed.
fn missed_deadline(reason: Reason, starts: bool, by: &str, blackout_end: &str) -> String {
    match reason {
        Reason::LikelyViolatedRunning => {
            format!("It runs, but by its average duration it will not end by {by}.")
        }
        Reason::LikelyViolatedWaiting if starts => {
            format!("It is late: it must have started by {by}.")
        }
        Reason::LikelyViolatedWaiting => {
            format!("Even if it started now, by its average duration it would not end by {by}.")
        }
        Reason::HeldByBlackout => {
            let promise = if starts { "It had to start by" } else { "A run had to succeed by" };
            format!("{promise} {by}, but a blackout kept it from starting until {blackout_end}.")
        }
        _ if starts => format!("It had to start by {by}, but has not started."),
        _ => format!("A run had to succeed by {by}, but none did."),
    }
}

/// Describes a reason why a job does not run at `now`; `zone` is the time zone of the job.
pub fn reason_text(why: &Why, zone: &Zone, now: Timestamp) -> String {
    let when = |at: Timestamp| moment(at, zone);
    let until = |at: Timestamp| format!("{} ({})", moment(at, zone), from_now(at, now));
    match why {
        Why::Running { since } => format!("It has been running since {}.", when(*since)),
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
            format!("A run failed; retry {retry} starts at {}.", until(*at))
        }
        Why::TriggerPending { until: at } => {
            format!("A triggered run starts at {}.", until(*at))
        }
        Why::WaitingInQueue { ahead, since, priority, effective_priority, .. } => {
            in_queue(*ahead, &when(*since), *priority, *effective_priority)
        }
        Why::Limited { .. } => over_limit(why, zone),
        Why::NoNodeAllowed { forbidden } => format!(
            "No node may run it: all live nodes that serve its pool are in its dont_run_on_nodes ({}).",
            listed(forbidden, "and")
        ),
        Why::NoWorkerForPool { pool } => format!(
            "No live node serves its pool {pool:?}: start one with --pools {pool}, or give the job \
             another pool."
        ),
        Why::NoExecutor => "It has no executor and no target with a url. Its runs fail until the \
                            target gets a url, or the job an executor_type."
            .into(),
        Why::NoCapacity { since } => {
            let since = when(*since);
            format!("It has been due since {since} and starts as soon as a worker has capacity.")
        }
        Why::NoWorker => "No live node runs jobs.".into(),
        Why::PreviousRunActive { since, busy } => previous_run(busy, &when(*since)),
        Why::Starting => "It is due and starts in a moment.".into(),
        Why::Paused => "It is paused; resume it to give it a next time.".into(),
        Why::Cancelled => "It was cancelled and does not run again.".into(),
        Why::Over => "It has no further time.".into(),
        Why::GivenUp => "Its last run failed and no retry is left; it has no further time.".into(),
    }
}

fn in_queue(ahead: u32, since: &str, priority: Priority, effective: Priority) -> String {
    let position = match ahead {
        0 => "it is the next of your runs".into(),
        1 => "1 of your runs is before it".into(),
        1000.. => "1000 of your runs or more are before it".into(),
        n => format!("{n} of your runs are before it"),
    };
    let raised = if effective > priority {
        let (base, raised) = (priority.get(), effective.get());
        format!(" Waiting has raised its priority from {base} to {raised}.")
    } else {
        String::new()
    };
    format!(
        "It has waited since {since} and starts as soon as a worker is free; {position}.{raised}"
    )
}

fn over_limit(why: &Why, zone: &Zone) -> String {
    let Why::Limited { since, scope, key, lane, limit, running, .. } = why else {
        return String::new();
    };
    let of = match (scope, key, lane) {
        (LimitScope::Key, Some(key), _) => format!("the runs with its key {key:?}"),
        (LimitScope::Key, None, _) => "the runs with its former key".into(),
        (LimitScope::Tenant, ..) => "your runs".into(),
        (LimitScope::Lane, _, Some(lane)) => format!("the runs in the lane {}", lane.as_str()),
        (LimitScope::Lane, _, None) => "the runs in its lane".into(),
    };
    let running = running.map_or(String::new(), |running| format!(" ({running} are)"));
    format!(
        "It has waited since {} for a permit: at most {limit} of {of} may be active at once{running}.",
        moment(*since, zone)
    )
}

/// Describes a run that is due while an earlier run of the job is still active.
fn previous_run(busy: &Busy, at: &str) -> String {
    let while_busy = match busy.earlier {
        EarlierRun::Running => "while an earlier run is active",
        EarlierRun::Waiting => "while an earlier run waits",
        EarlierRun::RetryPending => "while a retry is pending",
    };
    let then = match busy.overlap {
        OverlapPolicy::Skip => "that time is skipped",
        OverlapPolicy::Queue => "that time waits for the end of the earlier run",
        OverlapPolicy::Allow => "both run at the same time",
        OverlapPolicy::Replace => "the earlier run is being ended",
    };
    format!("Its time came at {at} {while_busy}; {then}.")
}

/// Describes the next run time of a job whose earlier run may still be active then.
fn next_time(busy: &Busy, at: &str) -> String {
    let earlier = match busy.earlier {
        EarlierRun::Running => "this run",
        EarlierRun::Waiting => "the waiting run",
        EarlierRun::RetryPending => "the retry",
    };
    match busy.overlap {
        OverlapPolicy::Skip => format!(
            "If {earlier} is over by then, it starts again at {at}; otherwise that time is skipped."
        ),
        OverlapPolicy::Queue => format!(
            "Its next time is {at}; if {earlier} is not over by then, the new run waits for its end."
        ),
        OverlapPolicy::Allow => format!("Its next time is {at}."),
        OverlapPolicy::Replace => {
            format!("Its next time is {at}; if {earlier} is not over by then, it is ended.")
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::{Interval, Once};

    use evenkeel_core::order::Lane;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    #[test]
    fn times_are_shown_in_the_zone_of_the_job_and_relative_to_now() {
        let until = NOW.saturating_add(Span::from_secs(3 * 3600 + 59));
        let zone = Zone::get("America/Toronto").unwrap();
        assert_eq!(
            reason_text(&Why::NotDue { until, busy: None }, &zone, NOW),
            "Its next time is 2027-01-15 06:00:59 America/Toronto time (in 3 hours)."
        );
    }

    #[test]
    fn every_condition_has_a_sentence() {
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
                let text = condition_text(&condition, definition);
                assert!(text.ends_with('.') && text.len() > 18, "{text}");
            }
        }
    }

    #[test]
    fn condition_of_a_job_that_runs_once_is_about_its_start() {
        let once = Definition::noop(Schedule::Once(Once::NOW));
        let text = |reason| {
            let condition = Condition {
                reason,
                deadline: Some(NOW),
                should_start_by: Some(NOW),
                window: None,
                changes_at: None,
                blackout_ends_at: None,
            };
            condition_text(&condition, &once)
        };
        assert!(text(Reason::NeverRan).contains("It must have started by 2027-01-15 08:00 UTC."));
        assert!(text(Reason::Violated).starts_with("It had to start by 2027-01-15 08:00 UTC"));
    }

    #[test]
    fn earlier_runs_are_described_with_the_overlap_policy() {
        let zone = Zone::utc();
        let both = |earlier, overlap| {
            let busy = Busy { earlier, overlap };
            [
                reason_text(&Why::NotDue { until: NOW, busy: Some(busy) }, &zone, NOW),
                reason_text(&Why::PreviousRunActive { since: NOW, busy }, &zone, NOW),
            ]
        };
        let [next, came] = both(EarlierRun::Running, OverlapPolicy::Skip);
        assert!(next.starts_with("If this run is over by then, it starts again at "), "{next}");
        assert!(came.contains("while an earlier run is active"), "{came}");
        let [next, came] = both(EarlierRun::RetryPending, OverlapPolicy::Queue);
        assert!(next.contains("if the retry is not over by then"), "{next}");
        assert!(came.contains("while a retry is pending"), "{came}");
        let [next, came] = both(EarlierRun::Waiting, OverlapPolicy::Replace);
        assert!(next.ends_with("it is ended."), "{next}");
        assert!(came.contains("while an earlier run waits"), "{came}");
    }

    fn waiting(ahead: u32, priority: u8, effective: u8) -> Why {
        let read = |number| Priority::try_from(number).unwrap();
        let (priority, effective_priority) = (read(priority), read(effective));
        Why::WaitingInQueue { scheduled_at: NOW, since: NOW, ahead, priority, effective_priority }
    }

    #[test]
    fn raised_priority_is_described() {
        let text = reason_text(&waiting(3, 20, 70), &Zone::utc(), NOW);
        assert!(text.ends_with(" Waiting has raised its priority from 20 to 70."), "{text}");
    }

    #[test]
    fn limits_are_described_with_their_scope() {
        let limit_text = |scope, key: Option<&str>, lane, running| {
            let key = key.map(Into::into);
            let (scheduled_at, since, limit) = (NOW, NOW, 2);
            let why = Why::Limited { scheduled_at, since, scope, key, lane, limit, running };
            let text = reason_text(&why, &Zone::utc(), NOW);
            text.split_once(": ").unwrap().1.to_owned()
        };
        let by_key = limit_text(LimitScope::Key, Some("a b"), None, Some(2));
        let may = "may be active at once";
        assert_eq!(by_key, format!("at most 2 of the runs with its key \"a b\" {may} (2 are)."));
        let by_tenant = limit_text(LimitScope::Tenant, None, None, Some(3));
        assert_eq!(by_tenant, format!("at most 2 of your runs {may} (3 are)."));
        let by_lane = limit_text(LimitScope::Lane, None, Some(Lane::Batch), None);
        assert_eq!(by_lane, format!("at most 2 of the runs in the lane batch {may}."));
    }

    #[test]
    fn queue_positions_are_described() {
        let position = |ahead| reason_text(&waiting(ahead, 20, 20), &Zone::utc(), NOW);
        assert!(position(0).ends_with("; it is the next of your runs."));
        assert!(position(1).ends_with("; 1 of your runs is before it."));
        assert!(position(17).ends_with("; 17 of your runs are before it."));
        assert!(position(1000).ends_with("; 1000 of your runs or more are before it."));
    }
}
