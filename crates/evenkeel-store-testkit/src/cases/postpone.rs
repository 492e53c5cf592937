//! Tests retries and triggers that are postponed, because they may not start at their due time.

use evenkeel_store::{FireResult, Postpone, RunCancelled};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Rig, next_attempt};

pub async fn a_postponed_attempt_is_due_at_its_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let retried = rig.add(new_job("retried").build()).await;
    let triggered = rig.add(new_job("triggered").build()).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    let trigger = rig.trigger(triggered, 0, 70).await;
    let retry = next_attempt(held.key);
    let batch = [
        Postpone { due: at(90), key: retry, until: at(500) },
        Postpone { due: at(70), key: trigger, until: at(600) },
    ];
    rig.store.postpone(&batch).await.unwrap();
    assert_eq!(rig.delayed(499).await, []);
    let delayed = rig.delayed(600).await;
    let returned: Vec<_> = delayed.iter().map(|delayed| (delayed.due, delayed.key)).collect();
    assert_eq!(returned, [(at(500), retry), (at(600), trigger)]);
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 600).await;
    assert!(matches!(fired[..], [FireResult::Fired(_), FireResult::Fired(_)]), "{fired:?}");
    assert_eq!(rig.census().await.delayed, 0);
}

pub async fn a_postponed_attempt_may_be_brought_forward(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 70).await;
    for (due, until) in [(70, 500), (500, 80)] {
        rig.store.postpone(&[Postpone { due: at(due), key, until: at(until) }]).await.unwrap();
    }
    assert_eq!(rig.delayed(80).await[0].due, at(80));
    assert_eq!(rig.census().await.delayed, 1);
}

pub async fn a_fire_for_the_former_time_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 70).await;
    let before = rig.delayed(70).await;
    rig.store.postpone(&[Postpone { due: at(70), key, until: at(500) }]).await.unwrap();
    assert_eq!(rig.fire_delayed(&before, Begin::Claimed, 700).await, [FireResult::Stale]);
    // If two callers postpone the same trigger, only the first succeeds.
    rig.store.postpone(&[Postpone { due: at(70), key, until: at(900) }]).await.unwrap();
    assert_eq!(rig.delayed(1_000).await[0].due, at(500));
    assert_eq!(rig.job(job).await.live, 1);
}

pub async fn an_attempt_that_no_longer_waits_is_not_postponed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let fired = rig.add(new_job("fired").build()).await;
    let queued = rig.add(new_job("queued").build()).await;
    let cancelled = rig.add(new_job("cancelled").build()).await;
    let waits = rig.add(new_job("waits").build()).await;
    let mut keys = Vec::new();
    for (job, begin) in [(fired, Begin::Claimed), (queued, Begin::Queued)] {
        keys.push(rig.trigger(job, 0, 70).await);
        rig.fire_delayed(&rig.delayed(70).await, begin, 70).await;
    }
    keys.push(rig.trigger(cancelled, 0, 70).await);
    let ended = rig.store.cancel_run(&rig.scope, keys[2], now(70)).await.unwrap();
    assert_eq!(ended, RunCancelled::Withdrawn(keys[2]));
    keys.push(rig.trigger(waits, 0, 70).await);
    let until = at(500);
    let batch: Vec<Postpone> =
        keys.iter().map(|key| Postpone { due: at(70), key: *key, until }).collect();
    rig.store.postpone(&batch).await.unwrap();
    rig.store.postpone(&[]).await.unwrap();
    let delayed = rig.delayed(500).await;
    assert_eq!(delayed.iter().map(|delayed| delayed.key).collect::<Vec<_>>(), [keys[3]]);
    let census = rig.census().await;
    assert_eq!((census.running, census.ready, census.delayed), (1, 1, 1));
}

pub async fn a_postponed_attempt_can_be_withdrawn(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 70).await;
    rig.store.postpone(&[Postpone { due: at(70), key, until: at(500) }]).await.unwrap();
    let ended = rig.store.cancel_run(&rig.scope, key, now(71)).await.unwrap();
    assert_eq!(ended, RunCancelled::Withdrawn(key));
    assert_eq!((rig.delayed(1_000).await, rig.job(job).await.live), (vec![], 0));
}
