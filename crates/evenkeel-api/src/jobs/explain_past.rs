//! The part of `GET /api/v1/jobs/{id}/explain` that is about a past time.

use evenkeel_commands::{PastAnswer, Run, past_text};
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, RunId, RunIds, Span, Timestamp};
use evenkeel_store::{Job, Role};

use crate::executions::SkippedView;
use crate::view::view;

view! {
    /// What became of a past time of a job.
    PastView::new(past: PastAnswer, job: &Job, ids: &RunIds, role: Role) {
        // Only operators see who changed the job.
        let past = PastAnswer { by: past.by.clone().filter(|_| role >= Role::Operator), ..past };
        let message = past_text(&past, job);
        let PastAnswer { asked, explanation, run, by, note } = past;
        let run = run.as_ref();
        let latest = run.map(|run| &run.latest.attempt);
        let skipped = latest.and_then(|latest| latest.skipped);
        let run_id = |key: AttemptKey| ids.run_id(key);
        let zone = &job.definition.timezone;
    }

    /// The requested time.
    at: Timestamp = asked.at,
    /// The requested time in the time zone of the job, with its UTC offset.
    #[schema(format = DateTime)]
    local: String = zone.local_text(asked.at),
    /// What became of the requested time: `ran`, `ran_late`, `running`, `waiting`, `failed`,
    /// `cancelled`, `superseded`, `skipped`, `paused`, `not_scheduled`, `moved`, `not_created_yet`,
    /// `edited`, `pruned`, `in_future` or `unknown`.
    #[schema(
        value_type = String,
        pattern = "^(ran|ran_late|running|waiting|failed|cancelled|superseded|skipped|paused|not_scheduled|moved|not_created_yet|edited|pruned|in_future|unknown)$"
    )]
    verdict: &'static str = explanation.verdict.as_str(),
    /// The verdict and its evidence in a sentence.
    message: String = message,
    /// Id of the run at the requested time.
    run_id: Option<RunId> as Option<uuid::Uuid> = run.map(|run| run_id(run.key)),
    /// Status of the run.
    run_status: Option<AttemptStatus> as Option<String> = run.map(Run::status),
    /// Scheduled time of the run.
    scheduled_at: Option<Timestamp> = run.map(|run| run.key.scheduled_at),
    /// Time when the first attempt of the run started.
    started_at: Option<Timestamp> = run.and_then(Run::started_at),
    /// Time when the run ended.
    finished_at: Option<Timestamp> = run.and_then(Run::finished_at),
    /// Delay between the scheduled time and the start of the run, in milliseconds.
    lateness_ms: Option<u64> = run.and_then(Run::lateness).map(Span::as_millis),
    /// Number of attempts of the run so far.
    attempt_count: Option<u16> = run.map(Run::attempt_count),
    /// Error message of the newest attempt of the run.
    error_message: Option<String> = latest.and_then(|latest| latest.results.error.clone()),
    /// The skipped times that include the requested time, with the recorded reason.
    skipped: Option<SkippedView> = skipped.map(SkippedView::new),
    /// Id of the first scheduled run after the skipped times.
    later_run_id: Option<RunId> as Option<uuid::Uuid> = explanation.later_run.map(run_id),
    /// Time at which the job was paused, cancelled, moved or changed.
    changed_at: Option<Timestamp> = explanation.changed_at,
    /// The user who paused, moved or edited the job, from the audit log. Null for viewers, and if
    /// the audit log does not name the job, for example after a command for many jobs.
    changed_by: Option<String> = by,
    /// Note of the pause.
    note: Option<String> = note,
    /// Time at which the paused job was resumed.
    resumed_at: Option<Timestamp> = explanation.resumed_at,
    /// Next run time of the job before the rebalance moved it.
    moved_from: Option<Timestamp> = explanation.moved.map(|moved| moved.from),
    /// Next run time of the job after the rebalance moved it.
    moved_to: Option<Timestamp> = explanation.moved.map(|moved| moved.to),
    /// Last scheduled time before the requested time, by the present schedule. For a periodic job,
    /// the scheduled time of its last run before the requested time.
    previous_scheduled_at: Option<Timestamp> = explanation.previous,
    /// First scheduled time after the requested time.
    next_scheduled_at: Option<Timestamp> = explanation.next,
}
