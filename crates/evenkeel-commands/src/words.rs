//! Conditions and reasons in plain English.

use evenkeel_core::condition::{Condition, Reason};
use evenkeel_core::explain::Why;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Span, Timestamp, Zone};

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

/// What a condition means, for a job of this zone.
pub fn condition_words(condition: &Condition, zone: &Zone) -> String {
    let deadline = condition.deadline.map(|deadline| moment(deadline, zone)).unwrap_or_default();
    match condition.reason {
        Reason::OnTime if condition.deadline.is_some() => {
            format!("It runs as it should. The next good run must be over by {deadline}.")
        }
        Reason::OnTime => "It runs as it should.".into(),
        Reason::NeverRan => {
            format!("It has not run yet, and need not have. A good run must be over by {deadline}.")
        }
        Reason::Paused => "It is paused or cancelled: nothing is promised.".into(),
        Reason::Over => "No run follows, and none has to.".into(),
        Reason::LastRunFailed if condition.deadline.is_some() => format!(
            "Its last run failed. The promise still holds if a good run is over by {deadline}."
        ),
        Reason::LastRunFailed => "Its last run failed.".into(),
        Reason::LikelyViolatedRunning => {
            format!("It runs, but judging by how long it takes it will not be over by {deadline}.")
        }
        Reason::LikelyViolatedWaiting => format!(
            "Even if it started now, judging by how long it takes it would not be over by \
             {deadline}."
        ),
        Reason::Violated => format!("A good run had to be over by {deadline}, and none was."),
        Reason::GivenUp => "Its last run failed, and no other follows.".into(),
    }
}

/// What a reason means at `now`, for a job of this zone.
pub fn why_words(why: &Why, zone: &Zone, now: Timestamp) -> String {
    let when = |at: Timestamp| moment(at, zone);
    let until = |at: Timestamp| format!("{} ({})", moment(at, zone), from_now(at, now));
    match why {
        Why::Running { since } => format!("It runs since {}.", when(*since)),
        Why::NotDue { until: at } => format!("Its next time is {}.", until(*at)),
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
        Why::WaitingInQueue { ahead, since, .. } => {
            let place = match ahead {
                0 => "next in line among yours".into(),
                1 => "1 of your runs is before it".into(),
                1000.. => "1000 of your runs or more are before it".into(),
                n => format!("{n} of your runs are before it"),
            };
            format!("It waits for a worker since {}; {place}.", when(*since))
        }
        Why::NoNodeAllowed { forbidden } => format!(
            "No node may run it: all that live are among those it stays away from ({}).",
            listed(forbidden, "and")
        ),
        Why::NoWorker => "No node that runs jobs is alive.".into(),
        Why::NoCapacity { since } => {
            format!("It is due since {}, but all workers have enough to do.", when(*since))
        }
        Why::PreviousRunGoingOn { since, overlap } => {
            let then = match overlap {
                OverlapPolicy::Skip => "that time is skipped",
                OverlapPolicy::Queue => "that time waits for its end",
                OverlapPolicy::Allow => "both run side by side",
                OverlapPolicy::Replace => "that run is being ended to make room",
            };
            format!("Its time came at {} while a run of it goes on; {then}.", when(*since))
        }
        Why::Starting => "It is due and starts in a moment.".into(),
        Why::Paused => "It is paused; resume it to give it a next time.".into(),
        Why::Cancelled => "It was cancelled and runs no more.".into(),
        Why::Over => "It has no further time.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    #[test]
    fn a_moment_is_told_by_the_clocks_of_the_job_and_from_now() {
        let until = NOW.saturating_add(Span::from_secs(3 * 3600 + 59));
        let zone = Zone::get("America/Toronto").unwrap();
        assert_eq!(
            why_words(&Why::NotDue { until }, &zone, NOW),
            "Its next time is 2027-01-15 06:00:59 America/Toronto time (in 3 hours)."
        );
    }

    #[test]
    fn every_reason_is_a_sentence() {
        let zone = Zone::utc();
        for reason in Reason::ALL {
            let deadline = Some(NOW);
            let condition = Condition { reason, deadline, window: None, changes_at: None };
            let words = condition_words(&condition, &zone);
            assert!(words.ends_with('.') && words.len() > 20, "{words}");
        }
    }

    #[test]
    fn a_place_in_the_queue_is_told() {
        let place = |ahead| {
            let why = Why::WaitingInQueue { scheduled_at: NOW, since: NOW, ahead };
            why_words(&why, &Zone::utc(), NOW)
        };
        assert!(place(0).ends_with("; next in line among yours."));
        assert!(place(1).ends_with("; 1 of your runs is before it."));
        assert!(place(17).ends_with("; 17 of your runs are before it."));
        assert!(place(1000).ends_with("; 1000 of your runs or more are before it."));
    }
}
