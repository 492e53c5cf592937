//! Tests targets, which are the websites or other things that jobs work on.

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, JobChange, NewJob, NewTarget, PageRequest, Scope,
    StaleTarget, Target, TargetFields,
};

use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, new_job, now};
use crate::rig::{Known, Rig};

fn fields(source_id: &str) -> TargetFields {
    TargetFields {
        source_id: Some(source_id.into()),
        name: Some(format!("the {source_id} — née 🦀")),
        url: Some(format!("https://example.com/{source_id}?a=b&c=%20")),
    }
}

fn numbered(number: i64) -> NewTarget {
    NewTarget { number: Some(number), fields: TargetFields::default() }
}

async fn make_for(rig: &Rig, scope: &Scope, new: NewTarget, secs: i64) -> Target {
    match rig.store.create_target(scope, new, now(secs)).await.unwrap() {
        CreatedTarget::Created(target) => target,
        CreatedTarget::Exists(target) => panic!("it was there: {target:?}"),
    }
}

async fn make(rig: &Rig, new: NewTarget) -> Target {
    make_for(rig, &rig.scope, new, 0).await
}

async fn find(rig: &Rig, number: i64) -> Option<Target> {
    rig.store.get_targets(&rig.scope, &[number]).await.unwrap().remove(0)
}

fn about(name: &str, target: i64) -> NewJob {
    let mut job = new_job(name).build();
    job.about.target = Some(target);
    job
}

/// Returns the targets for which no run has succeeded since `secs`, read in one scan.
async fn stale_since(rig: &Rig, secs: i64) -> Vec<StaleTarget> {
    let found = rig.store.stale_targets(at(secs), None, 100).await.unwrap();
    assert_eq!(found.next, None);
    found.targets
}

pub async fn a_new_target_is_read_back_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let made = make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    let expected = Target {
        number: 1,
        fields: fields("a"),
        last_success_at: None,
        jobs: 0,
        generation: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    assert_eq!(made, expected);
    let found = rig.store.get_targets(&rig.scope, &[7, 1, 0, 1]).await.unwrap();
    assert_eq!(found, [None, Some(expected.clone()), None, Some(expected)]);
}

pub async fn target_numbers_start_at_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(make(&rig, NewTarget::default()).await.number);
    }
    assert_eq!(numbers, [1, 2, 3]);
    let gone = rig.store.delete_target(&rig.scope, 3, false).await.unwrap();
    assert_eq!(gone, DeletedTarget::Done { detached: 0 });
    assert!(make(&rig, NewTarget::default()).await.number > 3);
}

pub async fn a_chosen_number_is_skipped(opened: Opened) {
    let rig = Rig::new(opened).await;
    for chosen in [40, 2, 3, 5] {
        assert_eq!(make(&rig, numbered(chosen)).await.number, chosen);
    }
    let mut given = Vec::new();
    for _ in 0..4 {
        given.push(make(&rig, NewTarget::default()).await.number);
    }
    assert_eq!(given, [1, 4, 6, 7]);
}

pub async fn chosen_numbers_do_not_use_up_the_stores(opened: Opened) {
    let rig = Rig::new(opened).await;
    for chosen in [9_007_199_254_740_991, i64::MAX - 1] {
        assert_eq!(make(&rig, numbered(chosen)).await.number, chosen);
    }
    assert_eq!(make(&rig, NewTarget::default()).await.number, 1);
    let there = NewTarget { number: None, fields: fields("a") };
    make(&rig, there.clone()).await;
    let again = rig.store.create_target(&rig.scope, there, now(0)).await.unwrap();
    assert!(matches!(again, CreatedTarget::Exists(_)));
    assert_eq!(make(&rig, NewTarget::default()).await.number, 3);
}

pub async fn urls_are_read_alone(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    make(&rig, numbered(2)).await;
    let other = rig.tenant("other").await;
    let urls = rig.store.target_urls(&rig.scope, &[1, 2, 7, 1]).await.unwrap();
    assert_eq!(urls, [(1, fields("a").url), (2, None)].into());
    assert_eq!(rig.store.target_urls(&other, &[1, 2]).await.unwrap().len(), 0);
}

pub async fn a_taken_number_or_source_returns_its_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = make(&rig, NewTarget { number: Some(5), fields: fields("a") }).await;
    let second = make(&rig, NewTarget { number: None, fields: fields("b") }).await;
    for (new, there) in [
        (numbered(5), &first),
        (NewTarget { number: None, fields: fields("a") }, &first),
        (NewTarget { number: Some(9), fields: fields("b") }, &second),
    ] {
        let answer = rig.store.create_target(&rig.scope, new, now(9)).await.unwrap();
        assert_eq!(answer, CreatedTarget::Exists(there.clone()));
    }
    let all = rig.store.list_targets(&rig.scope, PageRequest::first(9)).await.unwrap();
    assert_eq!((all.total, all.items.len()), (2, 2));
}

pub async fn targets_are_listed_by_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    for number in [3, 1, 9, 4, 7] {
        make(&rig, numbered(number)).await;
    }
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest { after, ..PageRequest::first(2) };
        let page = rig.store.list_targets(&rig.scope, request).await.unwrap();
        assert_eq!((page.total, page.total_is_estimate), (5, false));
        pages.push(page.items.iter().map(|target| target.number).collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec![1, 3], vec![4, 7], vec![9]]);
    let later = PageRequest { offset: 3, ..PageRequest::first(9) };
    let later = rig.store.list_targets(&rig.scope, later).await.unwrap();
    assert_eq!(later.items.iter().map(|target| target.number).collect::<Vec<_>>(), [7, 9]);
}

pub async fn a_change_replaces_all_fields(opened: Opened) {
    let rig = Rig::new(opened).await;
    let made = make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    let new = TargetFields { url: Some("https://example.org/".into()), ..TargetFields::default() };
    let changed =
        rig.store.change_target(&rig.scope, 1, Some(1), new.clone(), now(5)).await.unwrap();
    let expected = Target { fields: new, generation: 2, updated_at: at(5), ..made };
    assert_eq!(changed, ChangedTarget::Done(expected.clone()));
    assert_eq!(find(&rig, 1).await, Some(expected));
}

pub async fn a_change_for_another_generation_is_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let made = make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    let none = TargetFields::default;
    let stale = rig.store.change_target(&rig.scope, 1, Some(2), none(), now(5)).await.unwrap();
    assert_eq!(stale, ChangedTarget::Stale(made.clone()));
    let lost = rig.store.change_target(&rig.scope, 2, None, none(), now(5)).await.unwrap();
    assert_eq!(lost, ChangedTarget::NotFound);
    assert_eq!(find(&rig, 1).await, Some(made));
}

pub async fn a_source_belongs_to_one_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    make(&rig, NewTarget { number: None, fields: fields("b") }).await;
    let change = async |number, source| {
        let changed =
            rig.store.change_target(&rig.scope, number, None, fields(source), now(1)).await;
        changed.unwrap()
    };
    assert_eq!(change(2, "a").await, ChangedTarget::SourceTaken(1));
    assert!(matches!(change(2, "b").await, ChangedTarget::Done(_)));
    assert!(matches!(change(1, "c").await, ChangedTarget::Done(_)));
    assert!(matches!(change(2, "a").await, ChangedTarget::Done(_)));
}

pub async fn a_job_names_its_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(4)).await;
    let job = rig.add(about("crawl", 4)).await;
    rig.add(new_job("other").build()).await;
    assert_eq!(rig.job(job).await.about.target, Some(4));
    assert_eq!(find(&rig, 4).await.unwrap().jobs, 1);
    // The store does not check whether the target of a new job exists.
    let lost = rig.add(about("lost", 99)).await;
    assert_eq!(rig.job(lost).await.about.target, Some(99));
    assert_eq!(find(&rig, 99).await, None);
}

pub async fn a_change_of_a_job_may_name_another_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    make(&rig, numbered(2)).await;
    let job = rig.add(about("crawl", 1)).await;
    for target in [Some(2), None, Some(1)] {
        let mut about = rig.job(job).await.about;
        about.target = target;
        let change = JobChange { about: Some(about), ..JobChange::default() };
        rig.store.update(&rig.scope, job.id, change, now(1)).await.unwrap();
        assert_eq!(rig.job(job).await.about.target, target);
        let jobs = [find(&rig, 1).await.unwrap().jobs, find(&rig, 2).await.unwrap().jobs];
        assert_eq!(jobs, [u64::from(target == Some(1)), u64::from(target == Some(2))]);
    }
    let later = JobChange { next_at: Some(Some(at(90))), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, later, now(2)).await.unwrap();
    assert_eq!(rig.job(job).await.about.target, Some(1));
}

pub async fn a_target_in_use_is_not_deleted(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    let jobs = rig.add_all(vec![about("a", 1), about("b", 1)]).await;
    let refused = rig.store.delete_target(&rig.scope, 1, false).await.unwrap();
    assert_eq!(refused, DeletedTarget::InUse(2));
    assert_eq!(find(&rig, 1).await.unwrap().jobs, 2);
    assert_eq!(rig.job(jobs[0]).await.about.target, Some(1));
    let lost = rig.store.delete_target(&rig.scope, 2, true).await.unwrap();
    assert_eq!(lost, DeletedTarget::NotFound);
}

pub async fn jobs_are_detached_on_request(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    make(&rig, numbered(2)).await;
    let jobs = rig.add_all(vec![about("a", 1), about("b", 1), about("c", 2)]).await;
    let gone = rig.store.delete_target(&rig.scope, 1, true).await.unwrap();
    assert_eq!(gone, DeletedTarget::Done { detached: 2 });
    let mut named = Vec::new();
    for job in jobs.iter().copied() {
        named.push(rig.job(job).await.about.target);
    }
    assert_eq!(named, [None, None, Some(2)]);
    let mut generations = Vec::new();
    for job in jobs {
        generations.push(rig.job(job).await.generation);
    }
    assert_eq!(generations, [2, 2, 1]);
    let left = rig.store.list_targets(&rig.scope, PageRequest::first(9)).await.unwrap();
    assert_eq!((left.total, left.items.len()), (1, 1));
    make(&rig, numbered(1)).await;
    assert_eq!(find(&rig, 1).await.unwrap().jobs, 0);
}

pub async fn deleted_jobs_do_not_keep_a_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    let job = rig.add(about("a", 1)).await;
    rig.store.delete(&rig.scope, job.id, now(1)).await.unwrap();
    assert_eq!(find(&rig, 1).await.unwrap().jobs, 0);
    let gone = rig.store.delete_target(&rig.scope, 1, false).await.unwrap();
    assert_eq!(gone, DeletedTarget::Done { detached: 0 });
}

/// Adds two jobs with the same target, both of which succeed.
async fn with_success(rig: &Rig) -> [Known; 2] {
    make(rig, numbered(1)).await;
    let jobs = rig.add_all(vec![about("a", 1), about("b", 1)]).await;
    rig.run_successfully(jobs[0], 60).await;
    rig.run_successfully(jobs[1], 61).await;
    [jobs[0], jobs[1]]
}

pub async fn the_last_success_is_the_latest_of_its_jobs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = with_success(&rig).await;
    let ends = [rig.job(jobs[0]).await, rig.job(jobs[1]).await];
    let last = ends.iter().filter_map(|job| job.history.last_good_end_at).max();
    assert!(last.is_some());
    assert_eq!(find(&rig, 1).await.unwrap().last_success_at, last);
}

pub async fn the_success_of_a_deleted_job_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = with_success(&rig).await;
    let before = find(&rig, 1).await.unwrap().last_success_at;
    for job in jobs {
        rig.store.delete(&rig.scope, job.id, now(90)).await.unwrap();
    }
    let after = find(&rig, 1).await.unwrap();
    assert_eq!((after.last_success_at, after.jobs), (before, 0));
}

async fn aim(rig: &Rig, job: Known, target: Option<i64>, secs: i64) {
    let mut about = rig.job(job).await.about;
    about.target = target;
    let change = JobChange { about: Some(about), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap();
}

async fn successes(rig: &Rig) -> [Option<Timestamp>; 2] {
    let of = async |number| find(rig, number).await.unwrap().last_success_at;
    [of(1).await, of(2).await]
}

pub async fn a_success_stays_with_the_target_it_was_for(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    make(&rig, numbered(2)).await;
    let job = rig.add(about("a", 1)).await;
    rig.run_successfully(job, 60).await;
    let first = rig.job(job).await.history.last_good_end_at;
    assert!(first.is_some());
    aim(&rig, job, Some(2), 100).await;
    assert_eq!(successes(&rig).await, [first, None]);
    let stale: Vec<i64> = stale_since(&rig, 10_000).await.iter().map(|it| it.number).collect();
    assert_eq!(stale, [1, 2]);
    rig.run_successfully(job, 120).await;
    let second = rig.job(job).await.history.last_good_end_at;
    assert!(second > first);
    assert_eq!(successes(&rig).await, [first, second]);
    // The job gets its first target again; its success for the second target stays with that
    // target.
    aim(&rig, job, Some(1), 130).await;
    assert_eq!(successes(&rig).await, [first, second]);
    aim(&rig, job, None, 140).await;
    assert_eq!(successes(&rig).await, [first, second]);
    // A change of other fields of the job does not change the last success of a target.
    let later = JobChange { next_at: Some(Some(at(900))), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, later, now(150)).await.unwrap();
    assert_eq!(successes(&rig).await, [first, second]);
}

pub async fn a_job_without_executor_runs_for_no_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    let none = new_job("none").executor("none").target(1).first_at(300).build();
    let able = new_job("able").target(1).first_at(500).build();
    let jobs = rig.add_all(vec![none, able]).await;
    let found = stale_since(&rig, 1_000).await[0];
    assert_eq!((found.job, found.next_at), (Some(jobs[1].id), Some(at(500))));
    rig.store.delete(&rig.scope, jobs[1].id, now(20)).await.unwrap();
    let found = stale_since(&rig, 1_000).await[0];
    assert_eq!((found.job, found.next_at), (None, None));
}

pub async fn jobs_of_a_target_are_read_in_pages(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = |n| about(&format!("job {n}"), 1);
    let jobs = rig.add_all((0..5).map(new).collect()).await;
    rig.add(about("other", 2)).await;
    rig.store.delete(&rig.scope, jobs[1].id, now(1)).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = rig.store.jobs_of_target(&rig.scope, 1, after, 2).await.unwrap();
        after = page.last().map(|(no, _)| *no);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    let expected = [0, 2, 3, 4].map(|n: usize| (jobs[n].no, jobs[n].id));
    assert_eq!(found, expected);
}

pub async fn tenants_do_not_see_targets_of_others(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let mine = make(&rig, NewTarget { number: None, fields: fields("a") }).await;
    rig.add(about("crawl", 1)).await;
    let store = &rig.store;
    assert_eq!(store.get_targets(&other, &[1]).await.unwrap(), [None]);
    assert_eq!(store.list_targets(&other, PageRequest::first(9)).await.unwrap().total, 0);
    assert_eq!(store.jobs_of_target(&other, 1, None, 9).await.unwrap(), []);
    let changed = store.change_target(&other, 1, None, fields("b"), now(1)).await.unwrap();
    assert_eq!(changed, ChangedTarget::NotFound);
    let deleted = store.delete_target(&other, 1, true).await.unwrap();
    assert_eq!(deleted, DeletedTarget::NotFound);
    let theirs = make_for(&rig, &other, NewTarget { number: None, fields: fields("a") }, 0).await;
    assert_eq!((theirs.number, theirs.jobs), (1, 0));
    assert_eq!(find(&rig, 1).await, Some(Target { jobs: 1, ..mine }));
}

pub async fn a_target_without_success_since_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    with_success(&rig).await;
    let last = find(&rig, 1).await.unwrap().last_success_at.unwrap();
    let found = rig.store.stale_targets(last, None, 9).await.unwrap();
    assert_eq!(found.targets, []);
    let found = stale_since(&rig, 10_000).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, found[0].last_success_at), (1, Some(last)));
}

pub async fn a_target_without_success_counts_from_its_creation(opened: Opened) {
    let rig = Rig::new(opened).await;
    make_for(&rig, &rig.scope, numbered(1), 100).await;
    assert_eq!(stale_since(&rig, 100).await, []);
    let found = stale_since(&rig, 101).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].job, found[0].next_at, found[0].is_live), (None, None, false));
}

pub async fn a_stale_target_names_the_job_to_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, numbered(1)).await;
    let mut later = about("later", 1);
    later.next_at = Some(at(500));
    let mut soon = about("soon", 1);
    soon.next_at = Some(at(300));
    let jobs = rig.add_all(vec![later, soon]).await;
    let found = stale_since(&rig, 1_000).await[0];
    assert_eq!((found.tenant, found.number), (rig.scope.tenant, 1));
    assert_eq!((found.job, found.next_at), (Some(jobs[0].id), Some(at(300))));
    assert!(!found.is_live);
    rig.trigger(jobs[1], 0, 10).await;
    assert!(stale_since(&rig, 1_000).await[0].is_live);
    rig.store.delete(&rig.scope, jobs[1].id, now(20)).await.unwrap();
    let pause = evenkeel_store::Action::Pause;
    rig.store.act(&rig.scope, jobs[0].id, pause, now(20)).await.unwrap();
    let found = stale_since(&rig, 1_000).await[0];
    assert_eq!((found.job, found.next_at, found.is_live), (None, None, false));
}

pub async fn stale_targets_are_found_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for number in 1..=3 {
        make(&rig, numbered(number)).await;
        make_for(&rig, &other, numbered(number), if number == 2 { 5_000 } else { 0 }).await;
    }
    let mut all: Vec<(TenantNo, i64)> = Vec::new();
    let (mut after, mut steps) = (None, 0);
    loop {
        let found = rig.store.stale_targets(at(1_000), after, 2).await.unwrap();
        all.extend(found.targets.iter().map(|target| (target.tenant, target.number)));
        steps += 1;
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    let (mine, theirs) = (rig.scope.tenant, other.tenant);
    let mut expected = vec![(mine, 1), (mine, 2), (mine, 3), (theirs, 1), (theirs, 3)];
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert!(steps <= 4);
}

pub async fn concurrent_creations_of_a_target_succeed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    let answers = at_once(&rig, 8, |n, store| async move {
        let new = if n % 2 == 0 { numbered(7) } else { NewTarget::default() };
        let answer = store.create_target(&scope, new, now(0)).await.unwrap();
        (n % 2 == 0, answer)
    })
    .await;
    let made = |wanted: bool| {
        let made = answers.iter().filter(|(chosen, answer)| {
            *chosen == wanted && matches!(answer, CreatedTarget::Created(_))
        });
        made.count()
    };
    assert_eq!((made(true), made(false)), (1, 4));
    let all = rig.store.list_targets(&scope, PageRequest::first(20)).await.unwrap();
    assert_eq!((all.total, all.items.len()), (5, 5));
}
