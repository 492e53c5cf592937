//! Tests what happens to a job after all retries of a run have failed.

use std::time::Duration;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::on_failure::{DeathReason, Hook, OnFailure};
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::Interval;
use evenkeel_core::{Definition, JobNo, Schedule, Span};
use evenkeel_store::{
    AccessStore, Attachments, AttemptStore, AuditFilter, DeadFilter, DeadStore, EventStore, Finish,
    Job, JobState, JobStore, PageRequest, Results, Store, Then,
};
use serde_json::json;

use crate::body::Time as _;
use crate::small_cluster::{SmallCluster, job, run_paused};

const POLL: Duration = Duration::from_secs(1);

/// Returns a job that runs every minute, always fails, and is retried once.
fn always_failing(on_failure: OnFailure) -> Definition {
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

async fn shown(cluster: &SmallCluster, no: JobNo) -> Job {
    let title = cluster.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
    cluster.model.get(&cluster.scope().await, title.id).await.unwrap().unwrap()
}

#[test]
fn job_is_paused_with_a_note_after_failed_runs_in_a_row() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let note = Some("ask Ann".into());
        let no = cluster.register(always_failing(OnFailure::Pause { after: 3, note })).await;
        let _engine = cluster.start("one", 4).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let job = shown(&cluster, no).await;
        assert_eq!(job.state, JobState::Paused);
        let note = "paused because 3 runs in a row failed: ask Ann";
        assert_eq!(job.note.as_deref(), Some(note));
        assert_eq!(cluster.seen.lock().unwrap().runs, 6, "three runs, each tried twice");
        let (scope, page) = (cluster.scope().await, PageRequest::first(9));
        let filter = AuditFilter { target: Some(job.id.to_string()), ..AuditFilter::default() };
        let entries = cluster.model.list_audit(&scope, &filter, page).await.unwrap().items;
        let entries: Vec<_> = entries.iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (entries[0].subject.as_str(), entries[0].detail.as_deref()),
            ("evenkeel", Some(note))
        );
        assert!(cluster.model.list_failing(9).await.unwrap().is_empty());
    });
}

#[test]
fn housekeeper_pauses_a_job_whose_result_was_stored_by_a_dead_client() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let on_failure = OnFailure::Pause { after: 1, note: None };
        let every = Schedule::Interval(Interval::new(Span::from_secs(7200), None).unwrap());
        let definition = Definition { on_failure, ..job(every, 3_600_000) };
        let no = cluster.register(definition).await;
        let engine = cluster.start("one", 4).await;
        let node = engine.context().unwrap().node;
        let mut owned = Vec::new();
        while owned.is_empty() {
            tokio::time::sleep(Duration::from_secs(60)).await;
            owned = cluster.model.list_owned(node, 9).await.unwrap();
        }
        // A client has reported this result of the attempt, and the node that received the report
        // died directly after storing the result.
        let attempt = &owned[0];
        let end = Finish {
            key: attempt.key,
            fence: attempt.fence,
            tenant: attempt.tenant,
            outcome: Outcome::Failed,
            started_at: attempt.started_at,
            finished_at: cluster.time.db(),
            results: Results::default(),
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            attachments: Attachments::default(),
            judge: true,
            unstored_since: None,
            hook: Hook::CountFailure { pause_after: 1 },
        };
        cluster.model.finish(node, vec![end], 0.37).await.unwrap();
        assert_eq!(shown(&cluster, no).await.state, JobState::Active);
        tokio::time::sleep(POLL * 20).await;
        let job = shown(&cluster, no).await;
        assert_eq!(job.state, JobState::Paused);
        assert_eq!(job.note.as_deref(), Some("paused because a run failed"));
    });
}

#[test]
fn failed_runs_become_dead_letters_and_redriven_ones_run() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let no = cluster.register(always_failing(OnFailure::DeadLetter)).await;
        let _engine = cluster.start("one", 4).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let (scope, all) = (cluster.scope().await, DeadFilter::default());
        let page = PageRequest::first(100);
        let dead_letters = cluster.model.list_dead(&scope, all, page).await.unwrap().items;
        assert!((8..=10).contains(&dead_letters.len()), "{}", dead_letters.len());
        for dead_letter in &dead_letters {
            assert_eq!(dead_letter.reason, DeathReason::RetriesExhausted);
            assert_eq!((dead_letter.key.job_no, dead_letter.key.attempt.0), (no, 1));
            assert_eq!(dead_letter.error.as_deref(), Some("simulated failure"));
        }
        let redriven = [dead_letters[0].key];
        let now = evenkeel_store::Now::Database;
        cluster.model.redrive(&scope, &redriven, now).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let dead_letter = cluster.model.get_dead(&scope, redriven[0]).await.unwrap().unwrap();
        let (_, again) = dead_letter.redriven.unwrap();
        let died = cluster.model.get_dead(&scope, again).await.unwrap();
        assert!(died.is_some(), "the new run failed as well, and has a dead letter of its own");
        assert_eq!(shown(&cluster, no).await.state, JobState::Active);
        assert!(cluster.model.census().await.unwrap().live <= 1);
    });
}
