//! Tests counts and lists of jobs by condition (OK, WARNING, ERROR).

use evenkeel_core::condition::{Level, Reason};
use evenkeel_store::{
    AtRisk, ConditionCounts, Judgement, Page, PageRequest, RiskCursor, RiskFilter, Scope,
};

use super::judging::{counts, job_to_judge, judge, judgement, mark, to_judge};
use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, new_job, now};
use crate::rig::{ALPHA, Known, OVER, Rig};

const ALL: RiskFilter = RiskFilter { level: None };

/// Marks the jobs as at risk and stores a judgement of each job, with its reason and `error_at`.
async fn judge_all(rig: &Rig, jobs: &[Known], judgements: &[(Reason, i64)], secs: i64) {
    mark(rig, jobs).await;
    let mut batch = Vec::new();
    for (job, (reason, error_at)) in jobs.iter().zip(judgements) {
        let judged = judgement(&job_to_judge(rig, *job, secs).await, *reason, Some(9_000));
        batch.push(Judgement { error_at: at(*error_at), ..judged });
    }
    rig.store.judge(batch, now(secs)).await.unwrap();
}

async fn jobs(rig: &Rig, count: usize) -> Vec<Known> {
    rig.add_all((0..count).map(|n| new_job(&format!("job {n}")).build()).collect()).await
}

async fn list(
    rig: &Rig,
    filter: RiskFilter,
    page: PageRequest<RiskCursor>,
) -> Page<AtRisk, RiskCursor> {
    let listed = rig.store.list_at_risk(&rig.scope, filter, page).await.unwrap();
    assert!(!listed.total_is_estimate);
    listed
}

fn numbers(page: &Page<AtRisk, RiskCursor>) -> Vec<i64> {
    page.items.iter().map(|item| item.no.0).collect()
}

fn of(jobs: &[Known], places: &[usize]) -> Vec<i64> {
    places.iter().map(|place| jobs[*place].no.0).collect()
}

pub async fn jobs_are_counted_by_their_judgement(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 5).await;
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 5, warning: 0, error: 0, held: 0 });
    mark(&rig, &jobs).await;
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 5, warning: 0, error: 0, held: 0 });
    let judgements = [
        (Reason::Violated, 1),
        (Reason::LastRunFailed, 2),
        (Reason::GivenUp, 3),
        (Reason::LikelyViolatedWaiting, 4),
        (Reason::OnTime, 5),
    ];
    judge_all(&rig, &jobs, &judgements, 10).await;
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 5, warning: 2, error: 2, held: 0 });
}

pub async fn counts_follow_each_judgement(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    for (reason, warning, error, held) in [
        (Reason::LastRunFailed, 1, 0, 0),
        (Reason::LikelyViolatedRunning, 1, 0, 0),
        (Reason::Violated, 0, 1, 0),
        (Reason::HeldByBlackout, 0, 1, 1),
        (Reason::GivenUp, 0, 1, 0),
        (Reason::LikelyViolatedWaiting, 1, 0, 0),
        (Reason::OnTime, 0, 0, 0),
        (Reason::HeldByBlackout, 0, 1, 1),
    ] {
        judge(&rig, job, reason, 10).await;
        let expected = ConditionCounts { jobs: 1, warning, error, held };
        assert_eq!(counts(&rig).await, expected, "{reason:?}");
        assert_eq!(rig.store.all_condition_counts().await.unwrap(), expected, "{reason:?}");
    }
    rig.store.delete(&rig.scope, job.id, now(20)).await.unwrap();
    assert_eq!(counts(&rig).await, ConditionCounts::default());
    assert_eq!(rig.store.all_condition_counts().await.unwrap(), ConditionCounts::default());
}

pub async fn a_job_judged_several_times_in_a_batch_counts_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    mark(&rig, &[job]).await;
    let judged = judgement(&job_to_judge(&rig, job, 1).await, Reason::Violated, Some(9_000));
    rig.store.judge(vec![judged, judged], now(2)).await.unwrap();
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 1, warning: 0, error: 1, held: 0 });
    assert_eq!(list(&rig, ALL, PageRequest::first(10)).await.total, 1);
}

pub async fn an_at_risk_job_shows_reason_and_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let named = jobs(&rig, 1).await[0];
    let unnamed = rig.add(crate::fixtures::unnamed_job().build()).await;
    let mut sourced = crate::fixtures::unnamed_job().build();
    sourced.about.source_name = Some("\"The\" Daily Ünion".into());
    let sourced = rig.add(sourced).await;
    let warns = Reason::LastRunFailed;
    let judgements = [(warns, 500), (Reason::Violated, 5), (warns, 600)];
    judge_all(&rig, &[named, unnamed, sourced], &judgements, 10).await;
    let listed = list(&rig, ALL, PageRequest::first(10)).await;
    let first = AtRisk {
        no: unnamed.no,
        job: unnamed.id,
        name: None,
        reason: Reason::Violated,
        error_at: at(5),
        since: at(10),
    };
    let second = AtRisk {
        no: named.no,
        job: named.id,
        name: Some("job 0".into()),
        reason: Reason::LastRunFailed,
        error_at: at(500),
        since: at(10),
    };
    let third = AtRisk {
        no: sourced.no,
        job: sourced.id,
        name: Some("\"The\" Daily Ünion".into()),
        reason: Reason::LastRunFailed,
        error_at: at(600),
        since: at(10),
    };
    assert_eq!(listed.items, [first, second, third]);
    assert_eq!((listed.total, listed.next), (3, None));
}

pub async fn the_time_of_a_level_stays_while_the_level_stays(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    for (reason, secs, since) in [
        (Reason::LastRunFailed, 10, 10),
        (Reason::LikelyViolatedRunning, 20, 10),
        (Reason::Violated, 30, 30),
        (Reason::Violated, 40, 30),
        (Reason::LastRunFailed, 50, 50),
    ] {
        judge(&rig, job, reason, secs).await;
        let item = list(&rig, ALL, PageRequest::first(10)).await.items.remove(0);
        assert_eq!((item.reason, item.since), (reason, at(since)));
    }
}

pub async fn the_soonest_error_comes_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 5).await;
    let judgements = [
        (Reason::LastRunFailed, 900),
        (Reason::Violated, 300),
        (Reason::OnTime, 1),
        (Reason::LastRunFailed, 300),
        (Reason::Violated, 100),
    ];
    judge_all(&rig, &jobs, &judgements, 10).await;
    let listed = list(&rig, ALL, PageRequest::first(10)).await;
    assert_eq!(numbers(&listed), of(&jobs, &[4, 1, 3, 0]));
    assert_eq!((listed.total, listed.next), (4, None));
    // A new judgement changes the position of the job in the list.
    judge_all(&rig, &jobs[..1], &[(Reason::Violated, 50)], 20).await;
    let listed = list(&rig, ALL, PageRequest::first(10)).await;
    assert_eq!(numbers(&listed), of(&jobs, &[0, 4, 1, 3]));
}

pub async fn a_cursor_continues_the_list(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 7).await;
    // Several jobs have the same `error_at`, so the cursor of the list must distinguish them.
    let judgements = [1, 2, 2, 2, 2, 3, 4].map(|secs| (Reason::Violated, secs));
    judge_all(&rig, &jobs, &judgements, 10).await;
    let (mut seen, mut page) = (Vec::new(), PageRequest::first(3));
    loop {
        let listed = list(&rig, ALL, page).await;
        assert_eq!(listed.total, 7);
        seen.extend(numbers(&listed));
        let Some(next) = listed.next else { break };
        let last = listed.items.last().unwrap();
        assert_eq!(next, (last.error_at, last.no));
        page.after = Some(next);
    }
    assert_eq!(seen, of(&jobs, &[0, 1, 2, 3, 4, 5, 6]));
}

pub async fn an_offset_continues_the_list(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 5).await;
    let judgements = [1, 2, 3, 4, 5].map(|secs| (Reason::Violated, secs));
    judge_all(&rig, &jobs, &judgements, 10).await;
    for (offset, limit, places, more) in
        [(0, 2, &[0, 1][..], true), (2, 2, &[2, 3], true), (4, 2, &[4], false), (9, 2, &[], false)]
    {
        let listed = list(&rig, ALL, PageRequest { limit, offset, after: None }).await;
        assert_eq!(numbers(&listed), of(&jobs, places), "{offset}");
        assert_eq!((listed.total, listed.next.is_some()), (5, more), "{offset}");
    }
    let after = Some((at(2), jobs[1].no));
    let listed = list(&rig, ALL, PageRequest { limit: 1, offset: 1, after }).await;
    assert_eq!(numbers(&listed), of(&jobs, &[3]));
    let exact = list(&rig, ALL, PageRequest::first(5)).await;
    assert_eq!((exact.items.len(), exact.next), (5, None));
}

pub async fn a_level_filters_the_list(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 6).await;
    let judgements = [
        (Reason::LastRunFailed, 1),
        (Reason::Violated, 2),
        (Reason::LikelyViolatedWaiting, 3),
        (Reason::GivenUp, 4),
        (Reason::LastRunFailed, 5),
        (Reason::OnTime, 6),
    ];
    judge_all(&rig, &jobs, &judgements, 10).await;
    let of_level = |level| RiskFilter { level: Some(level) };
    let errors = list(&rig, of_level(Level::Error), PageRequest::first(10)).await;
    assert_eq!((numbers(&errors), errors.total), (of(&jobs, &[1, 3]), 2));
    let warnings = list(&rig, of_level(Level::Warning), PageRequest::first(2)).await;
    assert_eq!((numbers(&warnings), warnings.total), (of(&jobs, &[0, 2]), 3));
    assert_eq!(warnings.next, Some((at(3), jobs[2].no)));
    let rest = PageRequest { after: warnings.next, ..PageRequest::first(2) };
    let rest = list(&rig, of_level(Level::Warning), rest).await;
    assert_eq!((numbers(&rest), rest.total, rest.next), (of(&jobs, &[4]), 3, None));
    // A job in the condition OK is not listed as at risk.
    let well = list(&rig, of_level(Level::Ok), PageRequest::first(10)).await;
    assert_eq!((well.items, well.total), (vec![], 0));
}

pub async fn a_tenant_sees_and_counts_its_own_jobs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let ours = jobs(&rig, 2).await;
    let theirs = rig.add_for(&other, new_job("theirs").build()).await;
    judge_all(&rig, &ours, &[(Reason::LastRunFailed, 1), (Reason::OnTime, 1)], 10).await;
    judge_all(&rig, &[theirs], &[(Reason::Violated, 1)], 10).await;
    let of = async |scope: &Scope| rig.store.condition_counts(scope).await.unwrap();
    assert_eq!(of(&rig.scope).await, ConditionCounts { jobs: 2, warning: 1, error: 0, held: 0 });
    assert_eq!(of(&other).await, ConditionCounts { jobs: 1, warning: 0, error: 1, held: 0 });
    assert_eq!(of(&rig.tenant("empty").await).await, ConditionCounts::default());
    let all = rig.store.all_condition_counts().await.unwrap();
    assert_eq!(all, ConditionCounts { jobs: 3, warning: 1, error: 1, held: 0 });
    assert_eq!(numbers(&list(&rig, ALL, PageRequest::first(10)).await), [ours[0].no.0]);
    let seen = rig.store.list_at_risk(&other, ALL, PageRequest::first(10)).await.unwrap();
    assert_eq!((numbers(&seen), seen.total), (vec![theirs.no.0], 1));
}

pub async fn a_change_during_a_judgement_is_judged_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..20 {
        let job = rig.add(new_job(&format!("job {n}")).build()).await;
        let held = rig.start(job, 60).await;
        mark(&rig, &[job]).await;
        let well = judgement(&job_to_judge(&rig, job, 61).await, Reason::OnTime, None);
        let failed = rig.end(held, evenkeel_core::attempt::Outcome::Failed, OVER);
        let node = rig.node;
        at_once(&rig, 2, |task, store| {
            let failed = failed.clone();
            async move {
                if task == 0 {
                    store.judge(vec![well], now(62)).await.unwrap();
                } else {
                    store.finish(node, vec![failed], ALPHA).await.unwrap();
                }
            }
        })
        .await;
        // The next judgement sees the failed run, whether it was stored before or after the first
        // judgement.
        let found = job_to_judge(&rig, job, 63).await;
        assert_eq!(found.history.consecutive_failures, 1);
        // A judgement also sees attempts that finished after the previous judgement.
        let error = judgement(&found, Reason::LastRunFailed, Some(9_000));
        rig.store.judge(vec![error], now(63)).await.unwrap();
        rig.run_successfully(job, 120).await;
        assert_eq!(job_to_judge(&rig, job, 130).await.before, Some(Level::Warning));
        let well = judgement(&job_to_judge(&rig, job, 130).await, Reason::OnTime, None);
        rig.store.judge(vec![well], now(131)).await.unwrap();
    }
    assert_eq!(rig.census().await.at_risk, 0);
    assert_eq!(counts(&rig).await, ConditionCounts { jobs: 20, warning: 0, error: 0, held: 0 });
}

pub async fn concurrent_judgements_keep_the_counts_right(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 60).await;
    for round in 0..4 {
        mark(&rig, &jobs).await;
        let seen = to_judge(&rig, 10).await;
        assert_eq!(seen.len(), 60);
        let reasons = [Reason::OnTime, Reason::LastRunFailed, Reason::Violated, Reason::GivenUp];
        at_once(&rig, 4, |task, store| {
            let mut batch: Vec<Judgement> = seen
                .iter()
                .enumerate()
                .map(|(n, job)| judgement(job, reasons[(n + task + round) % 4], Some(9_000)))
                .collect();
            // Some tasks process the batch in reverse order, so that wrong locking would cause a
            // deadlock.
            if task >= 2 {
                batch.reverse();
            }
            async move { store.judge(batch, now(11)).await.unwrap() }
        })
        .await;
        let counted = counts(&rig).await;
        for (level, count) in [(Level::Warning, counted.warning), (Level::Error, counted.error)] {
            let filter = RiskFilter { level: Some(level) };
            let listed = list(&rig, filter, PageRequest::first(100)).await;
            assert_eq!((listed.items.len() as u64, listed.total), (count, count));
        }
    }
}

pub async fn a_job_deleted_during_its_judgement_is_not_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..20 {
        let job = rig.add(new_job(&format!("job {n}")).build()).await;
        let held = rig.start(job, 60).await;
        judge(&rig, job, Reason::LastRunFailed, 61).await;
        mark(&rig, &[job]).await;
        let bad = judgement(&job_to_judge(&rig, job, 61).await, Reason::Violated, Some(9_000));
        let failed = rig.end(held, evenkeel_core::attempt::Outcome::Failed, OVER);
        let (node, scope) = (rig.node, rig.scope);
        at_once(&rig, 4, |task, store| {
            let failed = failed.clone();
            async move {
                match task {
                    0 => store.judge(vec![bad], now(62)).await.unwrap(),
                    1 => {
                        store.delete(&scope, job.id, now(62)).await.unwrap();
                    }
                    2 => store.mark_at_risk(&[job.no]).await.unwrap(),
                    _ => {
                        store.finish(node, vec![failed], ALPHA).await.unwrap();
                    }
                }
            }
        })
        .await;
        assert_eq!(to_judge(&rig, 100_000).await, []);
        assert_eq!(counts(&rig).await, ConditionCounts::default());
        assert_eq!(list(&rig, ALL, PageRequest::first(10)).await.items, []);
    }
}
