//! Tests which jobs are marked as at risk, and when their condition is judged.

use std::collections::BTreeSet;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{JobNo, Shard};
use evenkeel_store::{
    ConditionCounts, FinishResult, JobChange, JobToJudge, Judgement, RunCancelled, Supersede,
};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, new_job, now};
use crate::rig::{Held, Known, OVER, Rig};

/// Returns the jobs of all shards that are due to be judged.
pub(super) async fn to_judge(rig: &Rig, secs: i64) -> Vec<JobToJudge> {
    let shards: Vec<Shard> = Shard::all().collect();
    let found = rig.store.to_judge(&shards, 10_000, now(secs)).await.unwrap();
    assert_eq!(found.now, at(secs));
    found.jobs
}

/// Returns the numbers of the jobs that are due to be judged.
pub(super) async fn due(rig: &Rig, secs: i64) -> Vec<JobNo> {
    let mut numbers: Vec<JobNo> = to_judge(rig, secs).await.iter().map(|job| job.no).collect();
    numbers.sort_unstable();
    numbers
}

pub(super) async fn mark(rig: &Rig, jobs: &[Known]) {
    let jobs: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    rig.store.mark_at_risk(&jobs).await.unwrap();
}

/// Returns the job, and panics if the job is not due to be judged.
pub(super) async fn job_to_judge(rig: &Rig, job: Known, secs: i64) -> JobToJudge {
    let found = to_judge(rig, secs).await.into_iter().find(|one| one.no == job.no);
    found.expect("the job is due to be judged")
}

/// Returns a judgement of the job with the given reason. The job is judged again at `again`
/// seconds.
pub(super) fn judgement(job: &JobToJudge, reason: Reason, again: Option<i64>) -> Judgement {
    Judgement {
        job: job.no,
        touched: job.touched,
        reason,
        error_at: at(1_000),
        again_at: again.map(at),
    }
}

/// Marks a job as at risk and judges it.
pub(super) async fn judge(rig: &Rig, job: Known, reason: Reason, secs: i64) {
    mark(rig, &[job]).await;
    let judgement = judgement(&job_to_judge(rig, job, secs).await, reason, Some(9_000));
    rig.store.judge(vec![judgement], now(secs)).await.unwrap();
}

pub(super) async fn counts(rig: &Rig) -> ConditionCounts {
    rig.store.condition_counts(&rig.scope).await.unwrap()
}

pub async fn a_job_that_runs_well_is_not_at_risk(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 120).await;
    rig.finish(rig.end(held, Outcome::PartlyFailed, OVER)).await;
    assert_eq!(due(&rig, 300).await, []);
    assert_eq!(rig.census().await.at_risk, 0);
}

pub async fn an_at_risk_job_is_returned_as_it_is(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let found = job_to_judge(&rig, job, 0).await;
    let expected = JobToJudge {
        no: job.no,
        tenant: rig.scope.tenant,
        touched: found.touched,
        before: None,
        active: true,
        next_at: Some(at(60)),
        last_fired_at: None,
        live: false,
        running_since: None,
        history: evenkeel_core::History::default(),
        since: at(0),
        definition: rig.due(job).await.definition,
    };
    assert_eq!(found, expected);
    rig.run_successfully(job, 60).await;
    rig.start(job, 120).await;
    let change = JobChange { next_at: Some(Some(at(300))), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(121)).await.unwrap();
    let found = job_to_judge(&rig, job, 130).await;
    let expected = JobToJudge {
        touched: found.touched,
        next_at: Some(at(300)),
        last_fired_at: Some(at(120)),
        live: true,
        running_since: Some(at(120)),
        history: rig.job(job).await.history,
        since: at(121),
        ..expected
    };
    assert_eq!(found, expected);
    assert_ne!(found.history, evenkeel_core::History::default());
}

pub async fn a_failed_attempt_marks_its_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, outcome) in [("failed", Outcome::Failed), ("timed out", Outcome::TimedOut)] {
        let job = rig.add(new_job(name).build()).await;
        let held = rig.start(job, 60).await;
        rig.finish(rig.end(held, outcome, OVER)).await;
        let found = job_to_judge(&rig, job, 65).await;
        assert_eq!((found.history.consecutive_failures, found.live), (1, false));
    }
    let retried = rig.add(new_job("retried").build()).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(900))).await;
    assert!(job_to_judge(&rig, retried, 65).await.live);
    assert_eq!(rig.census().await.at_risk, 3);
}

pub async fn an_attempt_that_did_not_succeed_marks_its_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, outcome) in [("cancelled", Outcome::Cancelled), ("replaced", Outcome::Superseded)] {
        let job = rig.add(new_job(name).build()).await;
        let held = rig.start(job, 60).await;
        assert_eq!(due(&rig, 65).await, []);
        rig.finish(rig.end(held, outcome, OVER)).await;
        let found = job_to_judge(&rig, job, 65).await;
        assert_eq!((found.history.consecutive_failures, found.live), (0, false));
        rig.store.judge(vec![judgement(&found, Reason::OnTime, None)], now(66)).await.unwrap();
    }
}

/// Returns the changed jobs of which the scheduler is notified.
async fn returned(rig: &Rig) -> Vec<JobNo> {
    let mut news: Vec<JobNo> = rig.look(0, 10_000).await.changed.iter().map(|job| job.no).collect();
    news.sort_unstable();
    news
}

pub async fn a_withdrawn_attempt_marks_its_job_and_notifies_the_scheduler(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["queued", "triggered", "retried", "superseded", "given back", "replaced", "other"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let [queued, triggered, retried, superseded, given_back, replaced, other] = jobs[..] else {
        panic!("all were added")
    };
    let in_queue = rig.queue(queued, 60).await;
    let trigger = rig.trigger(triggered, 0, 61).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(900))).await;
    rig.queue(superseded, 60).await;
    let (first, second) = (rig.start(given_back, 60).await, rig.start(replaced, 60).await);
    rig.queue(other, 60).await;
    rig.store.cancel_run(&rig.scope, first.key, now(62)).await.unwrap();
    let decided = |job: Known| Supersede { job: job.no, generation: 1, due: at(120) };
    rig.store.supersede(&[decided(replaced)], now(62)).await.unwrap();
    let well = judgement(&job_to_judge(&rig, retried, 63).await, Reason::OnTime, None);
    rig.store.judge(vec![well], now(63)).await.unwrap();
    returned(&rig).await;
    assert_eq!((due(&rig, 64).await, returned(&rig).await), (vec![], vec![]));

    for key in [in_queue, trigger, held.key] {
        let cancelled = rig.store.cancel_run(&rig.scope, key, now(65)).await.unwrap();
        assert!(matches!(cancelled, RunCancelled::Withdrawn(_)), "{cancelled:?}");
    }
    rig.store.supersede(&[decided(superseded)], now(65)).await.unwrap();
    for (held, job) in [(first, given_back), (second, replaced)] {
        let back = rig.requeue_of(held, job, false).await;
        assert!(rig.requeue(back, 65).await);
    }
    let withdrawn: Vec<JobNo> = jobs[..6].iter().map(|job| job.no).collect();
    assert_eq!(due(&rig, 66).await, withdrawn);
    assert_eq!(returned(&rig).await, withdrawn);
}

pub async fn a_requeued_attempt_marks_no_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back, 65).await);
    assert_eq!(rig.census().await.at_risk, 0);
}

pub async fn an_end_may_mark_its_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["asks", "does not"].map(|name| new_job(name).build());
    let jobs = rig.add_all(jobs.to_vec()).await;
    let (first, second) = (rig.start(jobs[0], 60).await, rig.start(jobs[1], 60).await);
    let mut asks = rig.success(first);
    asks.judge = true;
    rig.finish_all(vec![asks, rig.success(second)]).await;
    assert_eq!(due(&rig, 65).await, [jobs[0].no]);
}

pub async fn a_refused_end_marks_no_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let stale = Held { fence: held.fence.next(), ..held };
    let mut end = rig.end(stale, Outcome::Failed, OVER);
    end.judge = true;
    assert_eq!(rig.finish(end).await, FinishResult::LeaseLost);
    assert_eq!(due(&rig, 65).await, []);
}

pub async fn a_repeated_end_marks_its_job_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let end = rig.end(held, Outcome::Failed, OVER);
    assert_eq!(rig.finish(end.clone()).await, FinishResult::Done);
    let before = job_to_judge(&rig, job, 65).await;
    assert_eq!(rig.finish(end).await, FinishResult::AlreadyDone);
    assert_eq!(job_to_judge(&rig, job, 65).await, before);
}

pub async fn any_change_of_an_at_risk_job_judges_it_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    judge(&rig, job, Reason::LastRunFailed, 61).await;
    assert_eq!(due(&rig, 70).await, []);
    rig.finish(rig.success(held)).await;
    let after_end = job_to_judge(&rig, job, 70).await;
    assert_eq!(after_end.before, Some(Level::Warning));

    judge(&rig, job, Reason::LastRunFailed, 71).await;
    rig.store.update(&rig.scope, job.id, JobChange::default(), now(72)).await.unwrap();
    let after_change = job_to_judge(&rig, job, 73).await;
    assert_ne!(after_change.touched, after_end.touched);

    judge(&rig, job, Reason::LastRunFailed, 74).await;
    let key = rig.trigger(job, 0, 75).await;
    let after_trigger = job_to_judge(&rig, job, 76).await;
    assert!(after_trigger.live);
    assert_ne!(after_trigger.touched, after_change.touched);

    judge(&rig, job, Reason::LastRunFailed, 77).await;
    let cancelled = rig.store.cancel_run(&rig.scope, key, now(78)).await.unwrap();
    assert_eq!(cancelled, RunCancelled::Withdrawn(key));
    let after_cancel = job_to_judge(&rig, job, 79).await;
    assert!(!after_cancel.live);
    assert_ne!(after_cancel.touched, after_trigger.touched);
}

pub async fn commands_mark_no_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.store.update(&rig.scope, job.id, JobChange::default(), now(1)).await.unwrap();
    rig.trigger(job, 0, 2).await;
    let asked = rig.add(new_job("asked").build()).await;
    let held = rig.start(asked, 60).await;
    let cancelled = rig.store.cancel_run(&rig.scope, held.key, now(61)).await.unwrap();
    assert_eq!(cancelled, RunCancelled::Asked(held.key));
    assert_eq!(rig.census().await.at_risk, 0);
}

pub async fn marking_again_judges_again_and_keeps_the_judgement(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    judge(&rig, job, Reason::Violated, 10).await;
    mark(&rig, &[job, job]).await;
    assert_eq!(job_to_judge(&rig, job, 11).await.before, Some(Level::Error));
    assert_eq!(rig.census().await.at_risk, 1);
    assert_eq!(counts(&rig).await.error, 1);
}

pub async fn a_judged_job_is_not_returned_until_it_is_due_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let judged = judgement(&job_to_judge(&rig, job, 10).await, Reason::LastRunFailed, Some(500));
    rig.store.judge(vec![judged], now(10)).await.unwrap();
    assert_eq!(due(&rig, 499).await, []);
    assert_eq!(job_to_judge(&rig, job, 500).await.before, Some(Level::Warning));
}

pub async fn of_two_judgements_of_one_state_the_first_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let seen = job_to_judge(&rig, job, 10).await;
    let first = judgement(&seen, Reason::LastRunFailed, Some(500));
    rig.store.judge(vec![first], now(10)).await.unwrap();
    for (reason, again) in [(Reason::Violated, Some(20)), (Reason::OnTime, None)] {
        rig.store.judge(vec![judgement(&seen, reason, again)], now(11)).await.unwrap();
        assert_eq!(due(&rig, 499).await, []);
        let found = job_to_judge(&rig, job, 500).await;
        assert_eq!(found.before, Some(Level::Warning));
        assert_ne!(found.touched, seen.touched);
        assert_eq!(counts(&rig).await, ConditionCounts { jobs: 1, warning: 1, error: 0, held: 0 });
    }
    let again = judgement(&job_to_judge(&rig, job, 500).await, Reason::Violated, Some(900));
    rig.store.judge(vec![again], now(500)).await.unwrap();
    assert_eq!(counts(&rig).await.error, 1);
}

pub async fn a_job_that_is_ok_may_stay_marked(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let judged = judgement(&job_to_judge(&rig, job, 10).await, Reason::OnTime, Some(500));
    rig.store.judge(vec![judged], now(10)).await.unwrap();
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 1, warning: 0, error: 0, held: 0 });
    assert_eq!(rig.census().await.at_risk, 1);
    assert_eq!(job_to_judge(&rig, job, 500).await.before, Some(Level::Ok));
}

pub async fn a_judgement_without_a_next_time_unmarks_the_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    judge(&rig, job, Reason::Violated, 10).await;
    mark(&rig, &[job]).await;
    let well = judgement(&job_to_judge(&rig, job, 11).await, Reason::OnTime, None);
    rig.store.judge(vec![well], now(11)).await.unwrap();
    assert_eq!((due(&rig, 100_000).await, rig.census().await.at_risk), (vec![], 0));
    assert_eq!(counts(&rig).await.error, 0);
    // A successful run does not mark the job as at risk again, but an explicit mark does.
    rig.run_successfully(job, 60).await;
    assert_eq!(rig.census().await.at_risk, 0);
    mark(&rig, &[job]).await;
    assert_eq!(job_to_judge(&rig, job, 70).await.before, None);
}

pub async fn an_outdated_judgement_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    judge(&rig, job, Reason::LastRunFailed, 61).await;
    mark(&rig, &[job]).await;
    let seen = job_to_judge(&rig, job, 62).await;
    rig.finish(rig.end(held, Outcome::Failed, OVER)).await;
    for (reason, again) in [(Reason::OnTime, None), (Reason::Violated, Some(9_000))] {
        rig.store.judge(vec![judgement(&seen, reason, again)], now(63)).await.unwrap();
        let found = job_to_judge(&rig, job, 63).await;
        assert_eq!(found.before, Some(Level::Warning));
        assert_ne!(found.touched, seen.touched);
        assert_eq!(counts(&rig).await, ConditionCounts { jobs: 1, warning: 1, error: 0, held: 0 });
    }
}

pub async fn a_judgement_from_before_the_job_was_unmarked_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let seen = job_to_judge(&rig, job, 1).await;
    rig.store.judge(vec![judgement(&seen, Reason::OnTime, None)], now(2)).await.unwrap();
    // A judgement does not mark a job as at risk.
    let late = judgement(&seen, Reason::Violated, Some(9_000));
    rig.store.judge(vec![late], now(3)).await.unwrap();
    assert_eq!((rig.census().await.at_risk, counts(&rig).await.error), (0, 0));
    mark(&rig, &[job]).await;
    rig.store.judge(vec![late], now(4)).await.unwrap();
    assert_eq!(job_to_judge(&rig, job, 5).await.before, None);
    assert_eq!(counts(&rig).await.error, 0);
}

pub async fn a_judgement_of_an_unknown_job_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    mark(&rig, &[job]).await;
    let seen = job_to_judge(&rig, job, 1).await;
    let unknown = Judgement { job: JobNo(987_654), ..judgement(&seen, Reason::Violated, Some(9)) };
    let judged = judgement(&seen, Reason::Violated, Some(9_000));
    rig.store.judge(vec![unknown, judged], now(2)).await.unwrap();
    rig.store.judge(Vec::new(), now(2)).await.unwrap();
    assert_eq!((rig.census().await.at_risk, counts(&rig).await.error), (1, 1));
}

pub async fn deleted_jobs_are_unmarked_and_stay_so(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    judge(&rig, job, Reason::Violated, 61).await;
    rig.store.delete(&rig.scope, job.id, now(62)).await.unwrap();
    assert_eq!(rig.census().await.at_risk, 0);
    mark(&rig, &[job, Known { no: JobNo(987_654), id: job.id }]).await;
    rig.finish(rig.end(held, Outcome::Failed, OVER)).await;
    assert_eq!((due(&rig, 100_000).await, rig.census().await.at_risk), (vec![], 0));
    assert_eq!(counts(&rig).await, ConditionCounts::default());
}

pub async fn due_jobs_are_returned_up_to_a_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..5).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    mark(&rig, &jobs).await;
    let again = [500, 300, 400, 200, 600];
    let seen = to_judge(&rig, 1).await;
    assert_eq!(seen.len(), 5);
    let judgements = jobs.iter().zip(again).map(|(job, secs)| {
        let one = seen.iter().find(|one| one.no == job.no).unwrap();
        judgement(one, Reason::LastRunFailed, Some(secs))
    });
    rig.store.judge(judgements.collect(), now(1)).await.unwrap();
    let first = [0, 1, 2, 3].map(|n: usize| jobs[n].no);
    assert_eq!(due(&rig, 599).await, first);
    let mut shards: Vec<Shard> = Shard::all().collect();
    shards.extend(shards.clone());
    for limit in [0, 1, 3, 4, 9] {
        let few = rig.store.to_judge(&shards, limit, now(599)).await.unwrap().jobs;
        let numbers: BTreeSet<JobNo> = few.iter().map(|one| one.no).collect();
        assert_eq!((few.len(), numbers.len()), (limit.min(4) as usize, limit.min(4) as usize));
        assert!(numbers.iter().all(|no| first.contains(no)));
    }
}

pub async fn only_jobs_of_the_given_shards_are_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c"].map(|name| new_job(name).build());
    let jobs = rig.add_all(jobs.to_vec()).await;
    mark(&rig, &jobs).await;
    let of = async |shards: &[Shard]| -> Vec<JobNo> {
        let found = rig.store.to_judge(shards, 10, now(1)).await.unwrap().jobs;
        found.iter().map(|one| one.no).collect()
    };
    assert_eq!(of(&[Shard::of(jobs[1].no)]).await, [jobs[1].no]);
    assert_eq!(of(&[]).await, []);
}
