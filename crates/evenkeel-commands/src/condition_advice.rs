//! Says in sentences what would make a job OK again.

use evenkeel_core::condition::{Condition, Level, Reason};
use evenkeel_core::{Schedule, Span, Timestamp};
use evenkeel_store::Job;

use crate::describe::{moment, span_words};

/// Returns what an operator can do so that a job in WARNING or ERROR becomes OK, or `None` if the
/// job is OK.
pub fn condition_advice(job: &Job, condition: &Condition, now: Timestamp) -> Option<String> {
    if condition.level() == Level::Ok {
        return None;
    }
    let has_failed = job.history.consecutive_failures > 0;
    Some(match condition.reason {
        Reason::GivenUp => {
            "Fix the cause of the failure and retry the job: no other run follows. To give the \
                            job up, cancel or delete it."
                .into()
        }
        Reason::HeldByBlackout => {
            let end = condition.blackout_ends_at.map(|end| moment(end, &job.definition.timezone));
            let when = end.map_or_else(|| "after the blackout".into(), |end| format!("at {end}"));
            format!(
                "It may start {when}. To avoid this next time, shorten the blackout, or schedule the job \
                 outside it."
            )
        }
        Reason::LikelyViolatedRunning => format!(
            "Make its runs shorter{}, or move the deadline with {}.",
            average(job).map_or_else(String::new, |it| format!(" (they take {it} on average)")),
            later_deadline(job)
        ),
        _ if job.running_since.is_some() => {
            "A run is active. If it succeeds, the job is OK again.".into()
        }
        _ if has_failed => format!("Fix the cause of its last failure. {}", next_try(job, now)),
        _ if job.waiting > 0 || job.is_due(now) => format!(
            "Its run waits. Add workers to the pool {:?}, or raise the priority of the job.",
            job.definition.pool
        ),
        _ => format!("Run it now. {}", next_start(job, now)),
    })
}

/// Says when a failed job is tried again without help.
fn next_try(job: &Job, now: Timestamp) -> String {
    if job.live > 0 && job.retry_count > 0 {
        return "A retry is planned; to try earlier, retry the job now.".into();
    }
    match job.next_start(now).filter(|next| *next > now) {
        Some(next) => format!(
            "Then retry the job now, or wait for its next start at {}.",
            moment(next, &job.definition.timezone)
        ),
        None => "Then retry the job now.".into(),
    }
}

fn next_start(job: &Job, now: Timestamp) -> String {
    match job.next_start(now).filter(|next| *next > now) {
        Some(next) => {
            format!("It starts by itself only at {}.", moment(next, &job.definition.timezone))
        }
        None => "No scheduled run follows.".into(),
    }
}

fn average(job: &Job) -> Option<String> {
    let average = job.definition.average(job.history.average_good_duration);
    let seconds = average.as_micros() / 1_000_000;
    (seconds > 0).then(|| span_words(Span::from_secs(seconds)))
}

/// Names the part of the schedule that moves its deadline.
fn later_deadline(job: &Job) -> &'static str {
    match job.definition.schedule {
        Schedule::Periodic(_) => "a longer period",
        Schedule::Cron(_) => "a longer max_duration",
        Schedule::Once(_) | Schedule::Interval(_) | Schedule::Calendar(_) => "a longer tolerance",
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::Periodic;
    use evenkeel_core::{Definition, JobId, JobNo, TenantNo};
    use evenkeel_store::NewJob;

    use super::*;
    use crate::jobs::new_job;
    use crate::read_schedule;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn job(schedule: &str) -> Job {
        let new = NewJob {
            id: JobId::new(NOW, [7; 10]),
            about: Default::default(),
            definition: Definition::noop(read_schedule(schedule).unwrap().schedule),
            next_at: Some(NOW.saturating_add(Span::from_secs(600))),
        };
        new_job(new, (JobNo(1), 1), TenantNo(1), NOW)
    }

    fn advice(job: &Job, reason: Reason) -> Option<String> {
        let condition = Condition {
            reason,
            deadline: Some(NOW),
            should_start_by: Some(NOW),
            window: None,
            changes_at: None,
            blackout_ends_at: Some(NOW),
        };
        condition_advice(job, &condition, NOW)
    }

    #[test]
    fn every_condition_that_is_not_ok_has_advice() {
        for reason in Reason::ALL {
            let text = advice(&job("1h"), reason);
            assert_eq!(text.is_some(), reason.level() != Level::Ok, "{reason:?}");
            assert!(text.is_none_or(|text| text.ends_with('.')), "{reason:?}");
        }
    }

    #[test]
    fn advice_depends_on_what_the_job_waits_for() {
        let text = |change: &dyn Fn(&mut Job)| {
            let mut job = job("1h");
            change(&mut job);
            advice(&job, Reason::Violated).unwrap()
        };
        assert_eq!(text(&|_| {}), "Run it now. It starts by itself only at 2027-01-15 08:10 UTC.");
        assert_eq!(text(&|job| job.next_at = None), "Run it now. No scheduled run follows.");
        assert!(text(&|job| (job.live, job.waiting) = (1, 1)).contains("the pool \"default\""));
        assert!(text(&|job| job.next_at = Some(NOW)).starts_with("Its run waits."));
        assert!(text(&|job| job.running_since = Some(NOW)).starts_with("A run is active."));
        let fail = |job: &mut Job| job.history.consecutive_failures = 2;
        assert_eq!(
            text(&fail),
            "Fix the cause of its last failure. Then retry the job now, or wait for its next start \
             at 2027-01-15 08:10 UTC."
        );
        let retries = text(&|job| {
            fail(job);
            (job.live, job.waiting, job.retry_count) = (1, 1, 1);
        });
        assert!(retries.contains("A retry is planned"), "{retries}");
    }

    #[test]
    fn advice_about_long_runs_names_the_field_that_moves_the_deadline() {
        let periodic = Periodic::new(Span::from_secs(3600), None).unwrap();
        for (schedule, field) in [
            (job("1h").definition.schedule, "tolerance"),
            (job("@hourly").definition.schedule, "max_duration"),
            (Schedule::Periodic(periodic), "period"),
        ] {
            let mut job = job("1h");
            job.definition.schedule = schedule;
            job.history.average_good_duration = Some(Span::from_secs(90));
            let text = advice(&job, Reason::LikelyViolatedRunning).unwrap();
            assert!(text.contains(field) && text.contains("1 minute 30 seconds"), "{text}");
        }
    }
}
