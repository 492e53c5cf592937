//! Changes of jobs.

use evenkeel_core::Definition;
use evenkeel_store::{Action, Applied, Job, JobChange, JobCommand};

use crate::Opened;
use crate::commands::{Commands, job_after};
use crate::fixtures::{at, fresh_id, new_job, now};
use crate::rig::{Known, Rig};

async fn change(rig: &Rig, job: Known, change: JobChange, secs: i64) -> Applied {
    rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap()
}

async fn done(rig: &Rig, job: Known, wanted: JobChange, secs: i64) -> Job {
    job_after(change(rig, job, wanted, secs).await)
}

fn renamed(name: &str) -> JobChange {
    JobChange { about: Some(new_job(name).build().about), ..JobChange::default() }
}

fn moved(secs: i64) -> JobChange {
    JobChange { next_at: Some(Some(at(secs))), ..JobChange::default() }
}

pub async fn a_change_raises_the_generation_and_the_update_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let after = done(&rig, job, moved(90), 5).await;
    assert_eq!((after.generation, after.next_at), (2, Some(at(90))));
    assert_eq!((after.created_at, after.updated_at), (at(0), at(5)));
    assert_eq!(rig.job(job).await, after);
    assert_eq!(rig.due(job).await.generation, 2);
}

pub async fn unchanged_fields_stay(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").source("s").build()).await;
    let before = rig.job(job).await;
    let after = done(&rig, job, JobChange::default(), 5).await;
    assert_eq!(after, Job { generation: 2, updated_at: at(5), ..before });
}

pub async fn each_part_can_be_changed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = new_job("index").every(900).source("s-2").build();
    let wanted = JobChange {
        about: Some(other.about.clone()),
        definition: Some(other.definition.clone()),
        ..JobChange::default()
    };
    let after = done(&rig, job, wanted, 5).await;
    assert_eq!((after.about, after.definition), (other.about, other.definition.clone()));
    let stored = rig.due(job).await.definition;
    assert_eq!(serde_json::from_str::<Definition>(&stored).unwrap(), other.definition);
}

pub async fn the_next_time_can_be_removed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let wanted = JobChange { next_at: Some(None), ..JobChange::default() };
    assert_eq!(done(&rig, job, wanted, 5).await.next_at, None);
    assert_eq!(rig.due(job).await.next_at, None);
}

pub async fn the_expected_generation_must_be_the_current_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let action = Action::Change(Box::new(moved(90)));
    let order = JobCommand { id: job.id, if_generation: Some(1), if_fired: None, action };
    let answer = rig.store.apply_one(&rig.scope, order.clone(), now(5)).await.unwrap();
    assert_eq!(job_after(answer).generation, 2);
    let before = rig.job(job).await;
    let answer = rig.store.apply_one(&rig.scope, order, now(6)).await.unwrap();
    assert_eq!(answer, Applied::Stale(Box::new(before.clone())));
    assert_eq!(rig.job(job).await, before);
}

pub async fn a_next_time_that_is_not_after_the_last_fired_one_is_a_conflict(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let before = rig.job(job).await;
    for secs in [30, 60] {
        let answer = change(&rig, job, moved(secs), 61).await;
        assert_eq!(answer, Applied::Stale(Box::new(before.clone())));
    }
    assert_eq!(rig.job(job).await, before);
    assert_eq!(done(&rig, job, moved(61), 61).await.next_at, Some(at(61)));
}

pub async fn a_skipped_time_counts_as_fired(opened: Opened) {
    let rig = Rig::new(opened).await;
    let skip = evenkeel_core::misfire::MisfirePolicy::Skip;
    let job = rig.add(new_job("crawl").misfire(skip).build()).await;
    let fire =
        crate::fixtures::fire_of(&rig.due(job).await, at(300), crate::fixtures::Begin::Claimed);
    rig.fire(vec![fire], 300).await;
    assert!(matches!(change(&rig, job, moved(180), 301).await, Applied::Stale(_)));
    assert!(matches!(change(&rig, job, moved(181), 301).await, Applied::Done(_)));
}

pub async fn a_name_of_another_job_is_taken(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = rig.add(new_job("first").build()).await;
    let second = rig.add(new_job("second").build()).await;
    let before = rig.job(second).await;
    assert_eq!(change(&rig, second, renamed("first"), 5).await, Applied::NameTaken(first.id));
    assert_eq!(rig.job(second).await, before);
}

pub async fn a_job_may_keep_its_own_name(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(done(&rig, job, renamed("crawl"), 5).await.generation, 2);
}

pub async fn a_changed_name_frees_the_old_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("old").build()).await;
    done(&rig, job, renamed("new"), 5).await;
    rig.add(new_job("old").build()).await;
    let taken = rig.register(vec![new_job("new").build()]).await;
    assert!(matches!(taken[..], [evenkeel_store::Registered::NameTaken(by)] if by == job.id));
}

pub async fn an_unknown_job_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.store.delete(&rig.scope, job.id, now(1)).await.unwrap();
    assert_eq!(change(&rig, job, moved(90), 5).await, Applied::NotFound);
    let nobody = Known { id: fresh_id(), ..job };
    assert_eq!(change(&rig, nobody, moved(90), 5).await, Applied::NotFound);
}

pub async fn the_scheduler_is_notified_of_a_changed_job_that_is_due_soon(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").first_at(90_000).build()).await;
    assert_eq!(rig.look(0, 10).await.changed, []);
    done(&rig, job, moved(300), 5).await;
    let changed = rig.look(5, 10).await.changed;
    assert_eq!(changed, [rig.due(job).await]);
    assert_eq!((changed[0].generation, changed[0].next_at), (2, Some(at(300))));
    done(&rig, job, moved(90_000), 6).await;
    assert_eq!(rig.look(6, 10).await.changed, []);
}

pub async fn a_change_does_not_affect_running_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    done(&rig, job, moved(300), 61).await;
    assert_eq!(rig.job(job).await.live, 1);
    let end = rig.success(held);
    assert_eq!(rig.finish(end).await, evenkeel_store::FinishResult::Done);
}
