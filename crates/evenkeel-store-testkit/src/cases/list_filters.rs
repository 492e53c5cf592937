//! Tests lists of jobs with each filter and each sort order.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::order::Lane;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, JobSearch, Shard};
use evenkeel_store::{
    Action, Activity, JobChange, JobFilter, JobSort, Judgement, NewJob, PageRequest, Then,
};
use serde_json::json;

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{at, new_job, now, plain_trigger, unnamed_job};
use crate::paging::{Dice, ORDERS, all_pages, ids, model};
use crate::rig::{Known, Rig};

fn some_jobs(dice: &mut Dice) -> Vec<NewJob> {
    let job = |n: u64, dice: &mut Dice| {
        let job = match dice.throw(6) {
            0 => unnamed_job(),
            1 => new_job(&format!("twin {}", n / 7)).configuration(&format!("c{n}")),
            2 => new_job(&format!("Job {n}")),
            _ => new_job(&format!("job {n}")),
        };
        let job = job.executor(dice.one(&["noop", "http", "shell"])).lane(dice.one(&Lane::ALL));
        let job = match dice.throw(3) {
            0 => job,
            n => job.source(&format!("s-{n}{}", dice.throw(3))),
        };
        let job = match dice.throw(3) {
            0 => job,
            1 => job.metadata(json!({"team": dice.one(&["red", "blue"]), "tier": dice.throw(2)})),
            _ => job.metadata(json!({"beta": dice.throw(2) == 0, "deep": {"team": "red"}})),
        };
        let job = match dice.throw(3) {
            0 => job,
            n => job.target(n as i64),
        };
        match dice.throw(8) {
            0 => job.never(),
            1 => job.once_at(60),
            // Some jobs have the same scheduled time; the scheduled times of others are far apart.
            n if n < 5 => job.first_at(60),
            _ => job.first_at(60 + 450 * dice.throw(40) as i64),
        }
    };
    (0..300).map(|n| job(n, dice).build()).collect()
}

/// Fills a database with jobs in all states.
async fn fill(rig: &Rig, jobs: &[NewJob], dice: &mut Dice) {
    let other = rig.tenant("other").await;
    let mut known = Vec::new();
    for (n, batch) in jobs.chunks(60).enumerate() {
        let registered = rig.store.register(&rig.scope, batch.to_vec(), now(n as i64)).await;
        for (answer, job) in registered.unwrap().into_iter().zip(batch) {
            let evenkeel_store::Registered::Created { no, .. } = answer else {
                panic!("{answer:?}")
            };
            known.push(Known { no, id: job.id });
        }
        rig.add_for(&other, new_job(&format!("job {n}")).source("s-10").build()).await;
    }
    for (job, new) in known.into_iter().zip(jobs) {
        happen(rig, job, new, dice).await;
    }
}

async fn happen(rig: &Rig, job: Known, new: &NewJob, dice: &mut Dice) {
    let is_due = new.next_at == Some(at(60));
    match dice.throw(12) {
        0 if is_due => drop(rig.start(job, 60).await),
        1 if is_due => drop(rig.queue(job, 60).await),
        2 if is_due => drop(rig.run_successfully(job, 60).await),
        3 | 4 if is_due => {
            let held = rig.start(job, 60).await;
            let then = Then::EndRun { stop_job: dice.throw(2) == 0, next_at: None };
            rig.finish(rig.end(held, Outcome::Failed, then)).await;
        }
        5 if is_due => {
            let held = rig.start(job, 60).await;
            rig.finish(rig.retry(held, at(4_000))).await;
        }
        6 => drop(rig.trigger(job, 1, 70).await),
        7 => drop(rig.store.delete(&rig.scope, job.id, now(80)).await.unwrap()),
        8 => {
            let mut about = new.about.clone();
            about.metadata = json!({"team": "green"});
            let definition = Some(new.definition.clone());
            let change = JobChange { about: Some(about), definition, ..JobChange::default() };
            rig.store.update(&rig.scope, job.id, change, now(90)).await.unwrap();
        }
        9 => judge(rig, job, dice.one(&[Reason::LastRunFailed, Reason::Violated])).await,
        _ => {}
    }
}

async fn judge(rig: &Rig, job: Known, reason: Reason) {
    rig.store.mark_at_risk(&[job.no]).await.unwrap();
    let shards: Vec<Shard> = Shard::all().collect();
    let to_judge = rig.store.to_judge(&shards, 10_000, now(100)).await.unwrap().jobs;
    let touched = to_judge.iter().find(|to_judge| to_judge.no == job.no).unwrap().touched;
    let again_at = Some(at(9_000));
    let judgement = Judgement { job: job.no, touched, reason, error_at: at(8_000), again_at };
    rig.store.judge(vec![judgement], now(100)).await.unwrap();
}

fn label(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

fn any_filter(dice: &mut Dice) -> JobFilter {
    let labels = [
        label("team", "red"),
        label("team", "green"),
        label("tier", "1"),
        label("beta", "true"),
        label("none", "red"),
    ];
    let (name, source) = (dice.one(&["job", "j", "twin 1", "J", "x"]), dice.one(&["s-10", "s-1"]));
    let prefix = dice.one(&["s-", "s-1", "s-20"]);
    let status = dice.one(&JobStatus::ALL);
    let level = dice.one(&Level::ALL);
    let (executor, lane) = (dice.one(&["http", "noop", "java"]), dice.one(&Lane::ALL));
    let target = dice.one(&[1, 2, 9]);
    let active_attempts = dice.one(&[Activity::Waits, Activity::Runs]);
    let from = at(450 * dice.throw(40) as i64);
    let before = at(60 + 450 * dice.throw(40) as i64);
    let search = dice.one(&["job 1", "twin", "red", "s-1 job", "GREEN team", "j", "ob 17", "none"]);
    let (one, two) = (dice.one(&labels), dice.one(&labels));
    let metadata = [dice.maybe(one), dice.maybe(two)].into_iter().flatten().collect();
    JobFilter {
        name_prefix: dice.maybe(name.into()),
        source_id: dice.maybe(source.into()),
        source_prefix: dice.maybe(prefix.into()),
        status: dice.maybe(status),
        condition: dice.maybe(level),
        executor: dice.maybe(executor.into()),
        lane: dice.maybe(lane),
        metadata,
        next_from: dice.maybe(from),
        next_before: dice.maybe(before),
        target: dice.maybe(target),
        active_attempts: dice.maybe(active_attempts),
        search: dice.maybe(JobSearch::parse(search).unwrap()),
    }
}

pub async fn any_filter_and_order_lists_what_the_model_lists(opened: Opened) {
    let (rig, model) = (Rig::new(opened).await, model().await);
    let jobs = some_jobs(&mut Dice::new(1));
    fill(&rig, &jobs, &mut Dice::new(2)).await;
    // A search finds jobs in the index and jobs that are not indexed yet.
    assert!(rig.store.index_jobs(150).await.is_ok());
    fill(&model, &jobs, &mut Dice::new(2)).await;
    let mut dice = Dice::new(3);
    let mut found = 0;
    for round in 0..400 {
        let filter = if round < 8 { JobFilter::default() } else { any_filter(&mut dice) };
        let sort = JobSort { by: dice.one(&ORDERS), descending: dice.throw(2) == 0 };
        let limit = dice.one(&[3, 50, 1000]);
        let expected = ids(&all_pages(&model, &filter, sort, 1000).await);
        let listed =
            ids(&all_pages(&rig, &filter, sort, limit.max(expected.len() as u32 / 5)).await);
        assert_eq!(listed, expected, "{filter:?} {sort:?}");
        let skipped = dice.throw(expected.len() as u64 + 1) as usize;
        let page = PageRequest { offset: skipped as u32, ..PageRequest::first(limit) };
        let page = rig.store.list_jobs(&rig.scope, &filter, sort, page).await.unwrap();
        let rest = &expected[skipped..];
        assert_eq!(ids(&page.items), rest[..rest.len().min(limit as usize)], "{filter:?} {sort:?}");
        if !page.total_is_estimate {
            let all = if filter.is_open() && sort.has_all() { 0 } else { expected.len() };
            assert!(all == 0 || page.total == all as u64, "{filter:?} {sort:?}");
        }
        found += expected.len();
    }
    assert!(found > 5_000, "only {found} were found: the filters are too narrow");
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!(counts, model.store.job_counts(&model.scope).await.unwrap());
}

async fn in_state(rig: &Rig, status: JobStatus) -> Vec<JobId> {
    let filter = JobFilter { status: Some(status), ..JobFilter::default() };
    ids(&all_pages(rig, &filter, JobSort::default(), 50).await)
}

pub async fn jobs_in_each_state_are_found_and_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = |name: &str| new_job(name).once_at(60).build();
    let scheduled = rig.add(job("scheduled")).await;
    let running = rig.add(job("running")).await;
    let queued = rig.add(job("queued")).await;
    let retried = rig.add(job("retried")).await;
    let completed = rig.add(job("completed")).await;
    let failed = rig.add(job("failed")).await;
    let unborn = rig.add(new_job("never placed").never().build()).await;
    let paused = rig.add(job("paused")).await;
    let cancelled = rig.add(job("cancelled")).await;
    rig.store.act(&rig.scope, paused.id, Action::Pause, now(1)).await.unwrap();
    rig.store.act(&rig.scope, cancelled.id, Action::Cancel, now(1)).await.unwrap();
    rig.start(running, 60).await;
    rig.queue(queued, 60).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(4_000))).await;
    rig.run_successfully(completed, 60).await;
    let held = rig.start(failed, 60).await;
    rig.finish(rig.end(held, Outcome::Failed, crate::rig::OVER)).await;
    let expected = [
        (JobStatus::Pending, vec![queued.id, retried.id, unborn.id]),
        (JobStatus::Scheduled, vec![scheduled.id]),
        (JobStatus::Running, vec![running.id]),
        (JobStatus::Paused, vec![paused.id]),
        (JobStatus::Completed, vec![completed.id]),
        (JobStatus::Failed, vec![failed.id]),
        (JobStatus::Cancelled, vec![cancelled.id]),
    ];
    for (status, jobs) in expected {
        assert_eq!(in_state(&rig, status).await, jobs, "{status:?}");
    }
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.total, counts.pending, counts.scheduled, counts.running), (9, 3, 1, 1));
    assert_eq!((counts.paused, counts.completed, counts.failed, counts.cancelled), (1, 1, 1, 1));
    assert!(!counts.is_estimate);
}

pub async fn jobs_with_active_attempts_are_found_in_any_state(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = |name: &str| new_job(name).once_at(60).build();
    let (mut waits, mut runs) = (Vec::new(), Vec::new());
    for action in [None, Some(Action::Pause), Some(Action::Cancel)] {
        let known = rig.add(job(&format!("runs {action:?}"))).await;
        rig.start(known, 60).await;
        runs.push(known.id);
        let idle = rig.add(job(&format!("idle {action:?}"))).await;
        for known in [known, idle] {
            if let Some(action) = action.clone() {
                rig.store.act(&rig.scope, known.id, action, now(61)).await.unwrap();
            }
        }
    }
    let queued = rig.add(job("queued")).await;
    rig.queue(queued, 60).await;
    waits.push(queued.id);
    let paused = rig.add(job("paused")).await;
    rig.store.act(&rig.scope, paused.id, Action::Pause, now(61)).await.unwrap();
    rig.trigger(paused, 0, 70).await;
    waits.push(paused.id);
    let retried = rig.add(job("retried")).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(4_000))).await;
    waits.push(retried.id);
    rig.add(new_job("never placed").never().build()).await;
    let done = rig.add(job("done")).await;
    rig.run_successfully(done, 60).await;
    for (active_attempts, expected) in [(Activity::Waits, waits), (Activity::Runs, runs)] {
        let filter = JobFilter { active_attempts: Some(active_attempts), ..JobFilter::default() };
        let listed = all_pages(&rig, &filter, JobSort::default(), 2).await;
        assert_eq!(ids(&listed), expected, "{active_attempts:?}");
        let one = PageRequest::first(1);
        let page = rig.store.list_jobs(&rig.scope, &filter, JobSort::default(), one).await.unwrap();
        assert_eq!((page.total, page.total_is_estimate), (3, false));
    }
}

pub async fn jobs_of_all_tenants_are_counted_by_state(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = |name: &str| new_job(name).once_at(60).build();
    let other = rig.tenant("another").await;
    rig.add_for(&other, job("scheduled")).await;
    rig.add(job("scheduled")).await;
    let queued = rig.add(job("queued")).await;
    rig.queue(queued, 60).await;
    rig.add(new_job("never placed").never().build()).await;
    let completed = rig.add(job("completed")).await;
    rig.run_successfully(completed, 60).await;
    let failed = rig.add(job("failed")).await;
    let held = rig.start(failed, 60).await;
    rig.finish(rig.end(held, Outcome::Failed, crate::rig::OVER)).await;
    for (name, action) in
        [("paused", Action::Pause), ("cancelled", Action::Cancel), ("deleted", Action::Delete)]
    {
        let known = rig.add(job(name)).await;
        rig.store.act(&rig.scope, known.id, action, now(61)).await.unwrap();
    }
    let counts = rig.store.all_job_counts().await.unwrap();
    assert_eq!((counts.total, counts.pending, counts.scheduled, counts.running), (8, 2, 2, 0));
    assert_eq!((counts.paused, counts.completed, counts.failed, counts.cancelled), (1, 1, 1, 1));
    assert!(!counts.is_estimate);
}

fn with(labels: &[(&str, &str)]) -> JobFilter {
    let metadata = labels.iter().map(|(key, value)| label(key, value)).collect();
    JobFilter { metadata, ..JobFilter::default() }
}

async fn found(rig: &Rig, filter: &JobFilter) -> Vec<String> {
    let jobs = all_pages(rig, filter, JobSort::default(), 50).await;
    jobs.into_iter().filter_map(|job| job.about.name).collect()
}

pub async fn metadata_is_found_as_json_writes_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let of = |name: &str, metadata| new_job(name).metadata(metadata).build();
    rig.add_all(vec![
        of("a", json!({"n": 1, "f": 1.5, "t": true, "s": "x", "same": "y"})),
        of("b", json!({"n": "1", "t": "true", "s": "X", "same": "y"})),
        of("c", json!({"in": {"s": "x"}, "list": ["x"], "none": null, "it's \"so\"": "100 %"})),
        of("d", json!("x")),
    ])
    .await;
    assert_eq!(found(&rig, &with(&[("n", "1")])).await, ["a", "b"]);
    assert_eq!(found(&rig, &with(&[("f", "1.5"), ("t", "true")])).await, ["a"]);
    assert_eq!(found(&rig, &with(&[("s", "x"), ("same", "y")])).await, ["a"]);
    assert_eq!(found(&rig, &with(&[("same", "y"), ("s", "X")])).await, ["b"]);
    assert_eq!(found(&rig, &with(&[("it's \"so\"", "100 %")])).await, ["c"]);
    for nothing in [("s", "x "), ("S", "x"), ("none", "null"), ("list", "x"), ("", "")] {
        assert_eq!(found(&rig, &with(&[nothing])).await, Vec::<String>::new(), "{nothing:?}");
    }
}

pub async fn a_removed_label_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = new_job("a").metadata(json!({"team": "red", "kept": 1})).lane(Lane::Batch).build();
    let (mut about, mut definition) = (job.about.clone(), job.definition.clone());
    let known = rig.add(job).await;
    about.metadata = json!({"team": "blue", "kept": 1});
    definition.lane = Lane::Critical;
    definition.executor.kind = "http".into();
    let change =
        JobChange { about: Some(about), definition: Some(definition), ..JobChange::default() };
    rig.store.update(&rig.scope, known.id, change, now(1)).await.unwrap();
    let lane = |lane| JobFilter { lane: Some(lane), ..JobFilter::default() };
    let executor = |kind: &str| JobFilter { executor: Some(kind.into()), ..JobFilter::default() };
    for filter in [with(&[("team", "red")]), lane(Lane::Batch), executor("noop")] {
        assert_eq!(found(&rig, &filter).await, Vec::<String>::new(), "{filter:?}");
    }
    let both = with(&[("team", "blue"), ("kept", "1")]);
    for filter in [both, lane(Lane::Critical), executor("http")] {
        assert_eq!(found(&rig, &filter).await, ["a"], "{filter:?}");
    }
}

pub async fn a_deleted_job_passes_no_filter(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = || new_job("a").source("s").metadata(json!({"team": "red"}));
    let gone = rig.add(job().build()).await;
    judge(&rig, gone, Reason::Violated).await;
    rig.store.delete(&rig.scope, gone.id, now(1)).await.unwrap();
    rig.add(job().build()).await;
    let filters = [
        with(&[("team", "red")]),
        JobFilter { name_prefix: Some("a".into()), ..JobFilter::default() },
        JobFilter { source_id: Some("s".into()), ..JobFilter::default() },
        JobFilter { source_prefix: Some("s".into()), ..JobFilter::default() },
        JobFilter { next_from: Some(at(0)), ..JobFilter::default() },
    ];
    for filter in filters {
        assert_eq!(found(&rig, &filter).await, ["a"], "{filter:?}");
    }
    let errors = JobFilter { condition: Some(Level::Error), ..JobFilter::default() };
    assert_eq!(found(&rig, &errors).await, Vec::<String>::new());
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.total, counts.scheduled, counts.cancelled), (1, 1, 0));
}

pub async fn jobs_of_other_tenants_are_neither_found_nor_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = || new_job("a").source("s").metadata(json!({"team": "red"}));
    let theirs = rig.add_for(&other, job().build()).await;
    judge(&rig, theirs, Reason::Violated).await;
    rig.start(theirs, 60).await;
    let waiting = rig.add_for(&other, job().configuration("2").build()).await;
    rig.store.trigger(&other, waiting.id, plain_trigger(1), now(60)).await.unwrap();
    rig.add_for(&other, job().configuration("3").never().build()).await;
    let mut filters = vec![
        JobFilter::default(),
        with(&[("team", "red")]),
        JobFilter { name_prefix: Some("a".into()), ..JobFilter::default() },
        JobFilter { source_id: Some("s".into()), ..JobFilter::default() },
        JobFilter { source_prefix: Some("s".into()), ..JobFilter::default() },
        JobFilter { next_from: Some(at(0)), ..JobFilter::default() },
        JobFilter { condition: Some(Level::Error), ..JobFilter::default() },
    ];
    let in_state = |status| JobFilter { status: Some(status), ..JobFilter::default() };
    filters.extend(JobStatus::ALL.map(in_state));
    for (filter, by) in filters.iter().flat_map(|filter| ORDERS.map(|by| (filter, by))) {
        let sort = JobSort { by, descending: false };
        let page = rig.store.list_jobs(&rig.scope, filter, sort, PageRequest::first(9)).await;
        let page = page.unwrap();
        assert_eq!((page.items.len(), page.total, page.next), (0, 0, None), "{filter:?}");
    }
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!(counts, evenkeel_store::JobCounts::default());
}
