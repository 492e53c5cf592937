//! Tests the store as a whole: clock, settings, row counts, signals, and a restart.

use std::time::Duration;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{NodeNo, Span, Timestamp};
use evenkeel_store::{Census, FireResult, Now, Ping, Pinged, Signal};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{Rig, claim_of, next_attempt};

pub async fn the_clock_advances(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = rig.store.now().await.unwrap();
    let second = rig.store.now().await.unwrap();
    assert!(first <= second && first > Timestamp::MIN && second < Timestamp::MAX);
}

pub async fn the_database_clock_sets_stored_times(opened: Opened) {
    let rig = Rig::new(opened).await;
    let store = &rig.store;
    let before = store.now().await.unwrap();
    let mut new = new_job("crawl").build();
    new.next_at = Some(before.saturating_sub(Span::from_secs(1)));
    let id = new.id;
    store.register(&rig.scope, vec![new], Now::Database).await.unwrap();
    let job = store.get(&rig.scope, id).await.unwrap().unwrap();
    let looked = store.look_ahead(&[], before, 1, Now::Database).await.unwrap();
    let node = store.join(&crate::fixtures::new_node("other"), Now::Database).await.unwrap();
    let fire = fire_of(&store.load_jobs(&[job.no]).await.unwrap()[0], before, Begin::Claimed);
    let fired = store.fire(node.node, vec![fire], Now::Database).await.unwrap();
    assert_eq!(fired.results, [FireResult::Fired(Fence(1))]);
    let claimed = store.claim(&claim_of(node.node, 1), Now::Database).await.unwrap();
    let ping = Ping { node: node.node, oldest_open: None, long_attempts: Vec::new() };
    let Pinged::Alive { now: pinged, .. } = store.ping(&ping, Now::Database).await.unwrap() else {
        panic!("the node is live")
    };
    let after = store.now().await.unwrap();
    for moment in [job.created_at, looked.now, node.now, fired.now, claimed.now, pinged] {
        assert!(before <= moment && moment <= after, "{before} {moment} {after}");
    }
}

pub async fn by_the_database_clock_nothing_starts_early(opened: Opened) {
    let rig = Rig::new(opened).await;
    let clock = rig.store.now().await.unwrap();
    let mut new = new_job("crawl").build();
    new.next_at = Some(clock.saturating_add(Span::from_secs(3_600)));
    let job = rig.add(new).await;
    let due = rig.due(job).await;
    let fire = fire_of(&due, due.next_at.unwrap(), Begin::Claimed);
    let fired = rig.store.fire(rig.node, vec![fire], Now::Database).await.unwrap();
    assert_eq!(fired.results, [FireResult::Early]);
}

pub async fn the_first_value_of_a_setting_stays(opened: Opened) {
    let rig = Rig::new(opened).await;
    let store = &rig.store;
    assert_eq!(store.setting("colour", "blue").await.unwrap(), "blue");
    assert_eq!(store.setting("colour", "red").await.unwrap(), "blue");
    assert_eq!(store.setting("shape", "").await.unwrap(), "");
    assert_eq!(store.setting("shape", "round").await.unwrap(), "");
}

pub async fn a_census_counts_everything(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(rig.census().await, Census::default());
    let names = ["ended", "runs", "queued", "retries", "triggered", "deleted", "skips"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    rig.run_successfully(jobs[0], 60).await;
    rig.start(jobs[1], 60).await;
    rig.queue(jobs[2], 60).await;
    let held = rig.start(jobs[3], 60).await;
    rig.finish(rig.retry(held, at(900))).await;
    rig.trigger(jobs[4], 0, 60).await;
    rig.store.delete(&rig.scope, jobs[5].id, now(60)).await.unwrap();
    rig.start(jobs[6], 400).await;
    let expected = Census {
        jobs: 6,
        runs: 5,
        running: 2,
        ready: 1,
        delayed: 2,
        skipped_times: 5,
        live: 5,
        at_risk: 1,
    };
    assert_eq!(rig.census().await, expected);
}

/// Announces a signal until the listener receives it, because a single signal may be lost.
async fn hears(rig: &Rig, listener: &evenkeel_store::Signals, signal: Signal) {
    let mut heard = listener.subscribe();
    for _ in 0..100 {
        rig.store.announce(signal).await.unwrap();
        let wait = async {
            while let Ok(got) = heard.recv().await {
                if got == signal {
                    return;
                }
            }
        };
        if tokio::time::timeout(Duration::from_millis(200), wait).await.is_ok() {
            return;
        }
    }
    panic!("{signal:?} was never received");
}

pub async fn a_signal_wakes_listeners(opened: Opened) {
    let rig = Rig::new(opened).await;
    for signal in Signal::ALL {
        hears(&rig, rig.store.signals(), signal).await;
    }
}

pub async fn a_signal_reaches_other_nodes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.second().await;
    for signal in Signal::ALL {
        hears(&rig, other.signals(), signal).await;
    }
}

pub async fn everything_survives_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["runs", "queued", "retries", "ended"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let running = rig.start(jobs[0], 60).await;
    let queued = rig.queue(jobs[1], 60).await;
    let held = rig.start(jobs[2], 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    let ended = rig.run_successfully(jobs[3], 60).await;
    rig.store.setting("colour", "blue").await.unwrap();
    let (census, before) = (rig.census().await, rig.job(jobs[3]).await);
    let (tenant, node) = (rig.scope.tenant, rig.node);

    let rig = rig.restart().await;
    assert_eq!(rig.census().await, census);
    assert_eq!(rig.job(jobs[3]).await, before);
    assert_eq!(rig.store.setting("colour", "red").await.unwrap(), "blue");
    assert_eq!(rig.tenant("main").await.tenant, tenant);
    assert_eq!(rig.run(ended).await.status, AttemptStatus::Completed);
    assert_eq!(rig.look(80, 9).await.changed.len(), 4, "no changed job was returned before");
    let joined = rig.store.join(&crate::fixtures::new_node("node-1"), now(80)).await.unwrap();
    assert_eq!(joined.former, [node]);
    assert_eq!(rig.owned(node).await[0].key, running.key);
    let delayed = rig.delayed(90).await;
    assert_eq!(delayed[0].key, next_attempt(held.key));
    assert_eq!(rig.claim_for(joined.node, 9, 90).await[0].key, queued);
    let next = rig.add(new_job("new").build()).await;
    assert!(next.no > jobs[3].no);
}

pub async fn node_numbers_are_not_reused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut seen: Vec<NodeNo> = vec![rig.node];
    for secs in 1..4 {
        let node = rig.join("node-1", secs).await;
        assert!(!seen.contains(&node));
        rig.store.retire(node).await.unwrap();
        seen.push(node);
    }
}
