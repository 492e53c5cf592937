//! Registration of jobs.

use evenkeel_core::{Shard, Slot};
use evenkeel_store::{JobState, Registered};

use super::dedup::recurring;
use crate::Opened;
use crate::commands::{Commands, done, resume};
use crate::fixtures::{at, new_job, now, unnamed_job};
use crate::rig::{Known, Rig};

pub async fn a_new_job_is_read_back_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut new = new_job("it's a \"job\" — née 🦀").configuration("nightly").source("s-1").build();
    new.about.description = Some("two\nlines".into());
    new.about.url = Some("https://example.com/?a=b&c=%20".into());
    new.about.metadata = serde_json::json!({"team": ["a", "b"], "n": 1.5, "none": null});
    new.definition.payload = serde_json::json!({"deep": {"er": [1, 2, 3]}});
    let job = rig.add(new.clone()).await;
    let found = rig.job(job).await;
    assert_eq!((found.no, found.id, found.tenant), (job.no, new.id, rig.scope.tenant));
    assert_eq!((found.about, found.definition), (new.about, new.definition));
    assert_eq!((found.state, found.generation), (JobState::Active, 1));
    assert_eq!((found.created_at, found.updated_at), (at(0), at(0)));
    assert_eq!((found.next_at, found.last_fired_at), (Some(at(60)), None));
    assert_eq!((found.live, found.waiting, found.executions), (0, 0, 0));
}

pub async fn results_are_in_the_order_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..50).map(|n| new_job(&format!("job {n}")).build()).collect();
    let names: Vec<_> = jobs.iter().map(|job| job.about.name.clone()).collect();
    for (known, name) in rig.add_all(jobs).await.into_iter().zip(names) {
        assert_eq!(rig.job(known).await.about.name, name);
    }
}

pub async fn a_name_that_is_stored_is_taken(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = rig.add(new_job("crawl").build()).await;
    let answers = rig.register(vec![new_job("other").build(), new_job("crawl").build()]).await;
    assert!(matches!(answers[0], Registered::Created { .. }));
    assert_eq!(answers[1], Registered::NameTaken(first.id));
    assert_eq!(rig.census().await.jobs, 2);
}

pub async fn a_name_earlier_in_the_batch_is_taken(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "a", "c", "a"].map(|name| new_job(name).build());
    let first = jobs[0].id;
    let answers = rig.register(jobs.to_vec()).await;
    let created = |answer: &Registered| matches!(answer, Registered::Created { .. });
    let who: Vec<bool> = answers.iter().map(created).collect();
    assert_eq!(who, [true, true, false, true, false]);
    assert_eq!(answers[2], Registered::NameTaken(first));
    assert_eq!(answers[4], Registered::NameTaken(first));
    assert_eq!(rig.census().await.jobs, 3);
}

pub async fn a_name_with_another_configuration_is_free(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(vec![
        new_job("crawl").build(),
        new_job("crawl").configuration("daily").build(),
        new_job("crawl").configuration("nightly").build(),
    ])
    .await;
    let taken = rig.register(vec![new_job("crawl").configuration("daily").build()]).await;
    assert!(matches!(taken[..], [Registered::NameTaken(_)]));
}

pub async fn names_that_differ_in_case_differ(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(vec![new_job("crawl").build(), new_job("Crawl").build()]).await;
}

pub async fn jobs_without_a_name_never_collide(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(vec![unnamed_job().build(), unnamed_job().build()]).await;
    rig.add(unnamed_job().build()).await;
    assert_eq!(rig.census().await.jobs, 3);
}

pub async fn a_job_may_have_no_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("manual").never().build()).await;
    assert_eq!(rig.job(job).await.next_at, None);
    let far = Slot::of(at(9_000_000));
    assert_eq!(rig.store.load_due(Shard::of(job.no), far, None, 10).await.unwrap(), []);
}

pub async fn the_scheduler_is_notified_of_jobs_due_before_the_end_of_the_next_slot(opened: Opened) {
    let rig = Rig::new(opened).await;
    let quarter = 15 * 60;
    let jobs = rig
        .add_all(vec![
            new_job("past").first_at(-5_000).build(),
            new_job("this slot").first_at(60).build(),
            new_job("end of the next slot").first_at(2 * quarter - 1).build(),
            new_job("the slot after").first_at(2 * quarter).build(),
            new_job("never").never().build(),
        ])
        .await;
    let mut returned: Vec<_> = rig.look(0, 100).await.changed.iter().map(|job| job.no).collect();
    returned.sort_unstable();
    assert_eq!(returned, [jobs[0].no, jobs[1].no, jobs[2].no]);
}

pub async fn an_empty_batch_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(rig.register(Vec::new()).await, []);
}

pub async fn internal_numbers_rise_and_are_not_reused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = rig.add(new_job("first").build()).await;
    let second = rig.add(new_job("second").build()).await;
    rig.store.delete(&rig.scope, second.id, now(1)).await.unwrap();
    let third = rig.add(new_job("third").build()).await;
    assert!(first.no < second.no && second.no < third.no);
    assert!(first.no.0 >= 0 && third.no.0 < 1 << 40);
}

pub async fn a_job_registered_as_paused_equals_one_paused_later(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = new_job("crawl").metadata(serde_json::json!({"team": "red"})).build();
    let made = rig.store.register_paused(&rig.scope, new.clone(), now(5)).await.unwrap();
    let Registered::Created { no, number: 1 } = made else { panic!("{made:?}") };
    let found = rig.job(Known { no, id: new.id }).await;
    assert_eq!((found.state, found.next_at), (JobState::Paused, None));
    assert_eq!((found.about, found.definition), (new.about, new.definition));
    assert_eq!((found.created_at, found.updated_at), (at(5), at(5)));
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.total, counts.paused, counts.pending), (1, 1, 0));
    let all = rig.store.all_job_counts().await.unwrap();
    assert_eq!((all.total, all.paused), (1, 1));
    let plan = resume(Some(at(120)));
    let resumed = rig.store.act(&rig.scope, new.id, plan, now(6)).await.unwrap();
    assert_eq!(done(resumed).job.unwrap().next_at, Some(at(120)));
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.paused, counts.scheduled), (0, 1));
}

pub async fn a_job_registered_as_paused_takes_part_in_name_and_key_checks(opened: Opened) {
    let rig = Rig::new(opened).await;
    let paused = async |job| rig.store.register_paused(&rig.scope, job, now(0)).await.unwrap();
    let first = rig.add(new_job("crawl").build()).await;
    assert_eq!(paused(new_job("crawl").build()).await, Registered::NameTaken(first.id));
    let holder = recurring("key");
    let id = holder.id;
    assert!(matches!(paused(holder).await, Registered::Created { .. }));
    assert_eq!(paused(recurring("key")).await, Registered::Duplicate(id));
    let answers = rig.register(vec![recurring("key")]).await;
    assert_eq!(answers, [Registered::Duplicate(id)]);
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.total, counts.paused), (2, 1));
}
