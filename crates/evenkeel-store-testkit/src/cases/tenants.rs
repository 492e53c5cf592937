//! Tests that a tenant cannot see or change the data of another tenant (invariant I10).

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{
    Applied, AttemptFilter, JobChange, JobFilter, JobSort, PageRequest, Registered, Triggered,
};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, new_job, now, plain_trigger};
use crate::rig::Rig;

pub async fn a_tenant_keeps_its_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    assert_ne!(other.tenant, rig.scope.tenant);
    assert_eq!(rig.tenant("other").await, other);
    assert_eq!(rig.tenant("main").await.tenant, rig.scope.tenant);
}

pub async fn names_of_other_tenants_are_free(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.add(new_job("crawl").build()).await;
    let answer = rig.store.register(&other, vec![new_job("crawl").build()], now(0)).await.unwrap();
    assert!(matches!(answer[..], [Registered::Created { .. }]));
}

pub async fn a_job_of_another_tenant_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let before = rig.job(job).await;
    let store = &rig.store;
    assert_eq!(store.get(&other, job.id).await.unwrap(), None);
    let change = JobChange { next_at: Some(Some(at(90))), ..JobChange::default() };
    assert_eq!(store.update(&other, job.id, change, now(1)).await.unwrap(), Applied::NotFound);
    assert_eq!(
        store.trigger(&other, job.id, plain_trigger(0), now(1)).await.unwrap(),
        Triggered::NotFound
    );
    assert_eq!(store.delete(&other, job.id, now(1)).await.unwrap(), Applied::NotFound);
    assert_eq!(rig.job(job).await, before);
}

pub async fn lists_of_jobs_hold_only_the_scopes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.add_all(vec![new_job("a").source("s").build(), new_job("b").build()]).await;
    rig.store.register(&other, vec![new_job("ac").source("s").build()], now(0)).await.unwrap();
    for filter in [
        JobFilter::default(),
        JobFilter { name_prefix: Some("a".into()), ..JobFilter::default() },
        JobFilter { source_id: Some("s".into()), ..JobFilter::default() },
    ] {
        let page = rig
            .store
            .list_jobs(&other, &filter, JobSort::default(), PageRequest::first(9))
            .await
            .unwrap();
        let names: Vec<_> = page.items.iter().filter_map(|job| job.about.name.clone()).collect();
        assert_eq!(names, ["ac"]);
        assert!(page.total == 1 || page.total_is_estimate);
    }
}

pub async fn a_run_of_another_tenant_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let ended = rig.run_successfully(job, 60).await;
    let waits = rig.queue(job, 120).await;
    let manual = rig.add(new_job("manual").never().build()).await;
    let triggered = rig.trigger(manual, 0, 121).await;
    for key in [ended, waits, triggered] {
        assert_eq!(rig.store.get_attempt(&other, key).await.unwrap(), None);
    }
    assert_eq!(rig.run(waits).await.status, AttemptStatus::Pending);
}

pub async fn lists_of_attempts_hold_only_the_scopes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    rig.queue(job, 120).await;
    for filter in [AttemptFilter::default(), AttemptFilter { job: Some(job.id) }] {
        let page = rig.store.list_attempts(&other, filter, PageRequest::first(9)).await.unwrap();
        assert_eq!((page.items, page.next), (Vec::new(), None));
        assert!(page.total == 0 || page.total_is_estimate);
    }
}

pub async fn an_update_may_use_a_name_of_another_tenant(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.store.register(&other, vec![new_job("theirs").build()], now(0)).await.unwrap();
    let job = rig.add(new_job("mine").build()).await;
    let change = JobChange { about: Some(new_job("theirs").build().about), ..JobChange::default() };
    let answer = rig.store.update(&rig.scope, job.id, change, now(1)).await.unwrap();
    assert!(matches!(answer, Applied::Done(_)));
}

pub async fn the_scheduler_and_workers_serve_all_tenants(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.add(new_job("mine").build()).await;
    rig.store.register(&other, vec![new_job("theirs").build()], now(0)).await.unwrap();
    let mut tenants: Vec<_> = rig.look(0, 9).await.changed.iter().map(|job| job.tenant).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, [rig.scope.tenant, other.tenant]);
}
