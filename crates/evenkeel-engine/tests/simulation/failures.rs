//! What becomes of runs that fail for good, and of their jobs.

use std::time::Duration;

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::on_failure::{DeathReason, Hook, OnFailure};
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::attempt::Outcome;
use evenkeel_core::schedule::Interval;
use evenkeel_core::{Definition, JobNo, Schedule, Span};
use evenkeel_store::{
    AccessStore, Attachments, AttemptStore, AuditFilter, DeadFilter, DeadStore, EventStore, Finish,
    Job, JobState, JobStore, PageRequest, Results, Store, Then,
};
use serde_json::json;

use crate::body::Time as _;
use crate::calm::{Calm, job, play};

const POLL: Duration = Duration::from_secs(1);

/// Runs every minute, fails each time, and is tried again once.
fn hopeless(on_failure: OnFailure) -> Definition {
    let every = Schedule::Interval(Interval::new(Span::from_secs(60), None).unwrap());
    Definition {
        executor: ExecutorSpec {
            kind: "noop".into(),
            config: json!({"mean_ms": 100, "fails_permille": 1000}),
        },
        retry: RetryPolicy {
            max_retries: 1,
            backoff: Backoff::Fixed { delay: Span::from_secs(1) },
            jitter: Jitter::None,
        },
        on_failure,
        ..job(every, 100)
    }
}

async fn shown(calm: &Calm, no: JobNo) -> Job {
    let title = calm.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
    calm.model.get(&calm.scope().await, title.id).await.unwrap().unwrap()
}

#[test]
fn a_job_whose_runs_fail_in_a_row_is_paused_with_a_note_that_people_see() {
    play(async {
        let calm = Calm::new(POLL);
        let note = Some("ask Ann".into());
        let no = calm.register(hopeless(OnFailure::Pause { after: 3, note })).await;
        let _engine = calm.start("one", 4).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let job = shown(&calm, no).await;
        assert_eq!(job.state, JobState::Paused);
        let said = "paused because 3 runs in a row failed: ask Ann";
        assert_eq!(job.note.as_deref(), Some(said));
        assert_eq!(calm.seen.lock().unwrap().runs, 6, "three runs, each tried twice");
        let (scope, page) = (calm.scope().await, PageRequest::first(9));
        let filter = AuditFilter { target: Some(job.id.to_string()), ..AuditFilter::default() };
        let entries = calm.model.list_audit(&scope, &filter, page).await.unwrap().items;
        let entries: Vec<_> = entries.iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (entries[0].subject.as_str(), entries[0].detail.as_deref()),
            ("evenkeel", Some(said))
        );
        assert!(calm.model.list_failing(9).await.unwrap().is_empty());
    });
}

#[test]
fn a_pause_that_nobody_was_told_of_is_found_by_whoever_keeps_house() {
    play(async {
        let calm = Calm::new(POLL);
        let on_failure = OnFailure::Pause { after: 1, note: None };
        let every = Schedule::Interval(Interval::new(Span::from_secs(7200), None).unwrap());
        let definition = Definition { on_failure, ..job(every, 3_600_000) };
        let no = calm.register(definition).await;
        let engine = calm.start("one", 4).await;
        let node = engine.context().unwrap().node;
        let mut owned = Vec::new();
        while owned.is_empty() {
            tokio::time::sleep(Duration::from_secs(60)).await;
            owned = calm.model.list_owned(node, 9).await.unwrap();
        }
        // As an end that came from afar, and whose receiver died before it did anything else.
        let attempt = &owned[0];
        let end = Finish {
            key: attempt.key,
            fence: attempt.fence,
            tenant: attempt.tenant,
            outcome: Outcome::Failed,
            started_at: attempt.started_at,
            finished_at: calm.time.db(),
            results: Results::default(),
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            attachments: Attachments::default(),
            judge: true,
            unstored_since: None,
            hook: Hook::CountFailure { pause_after: 1 },
        };
        calm.model.finish(node, vec![end], 0.37).await.unwrap();
        assert_eq!(shown(&calm, no).await.state, JobState::Active);
        tokio::time::sleep(POLL * 20).await;
        let job = shown(&calm, no).await;
        assert_eq!(job.state, JobState::Paused);
        assert_eq!(job.note.as_deref(), Some("paused because a run failed"));
    });
}

#[test]
fn runs_that_fail_for_good_are_on_the_list_and_those_that_are_taken_up_run() {
    play(async {
        let calm = Calm::new(POLL);
        let no = calm.register(hopeless(OnFailure::DeadLetter)).await;
        let _engine = calm.start("one", 4).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let (scope, all) = (calm.scope().await, DeadFilter::default());
        let page = PageRequest::first(100);
        let letters = calm.model.list_dead(&scope, all, page).await.unwrap().items;
        assert!((8..=10).contains(&letters.len()), "{}", letters.len());
        for letter in &letters {
            assert_eq!(letter.reason, DeathReason::RetriesExhausted);
            assert_eq!((letter.key.job_no, letter.key.attempt.0), (no, 1));
            assert_eq!(letter.error.as_deref(), Some("as it was told to"));
        }
        let asked = [letters[0].key];
        let now = evenkeel_store::Now::Database;
        calm.model.redrive(&scope, &asked, now).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let letter = calm.model.get_dead(&scope, asked[0]).await.unwrap().unwrap();
        let (_, again) = letter.redriven.unwrap();
        let died = calm.model.get_dead(&scope, again).await.unwrap();
        assert!(died.is_some(), "the new run failed as well, and has a letter of its own");
        assert_eq!(shown(&calm, no).await.state, JobState::Active);
        assert!(calm.model.census().await.unwrap().live <= 1);
    });
}
