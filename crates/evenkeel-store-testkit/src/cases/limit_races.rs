//! Many hands at once, under limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use evenkeel_core::aging::Aging;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{LimitKey, Limits};
use evenkeel_core::{JobNo, RunKey};
use evenkeel_store::{Claim, Finish, FinishResult, LimitPlace, Store};

use super::limits::all_rooms;
use super::races::at_once;
use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{ALPHA, Held, Rig, claim_of};

/// Who runs under which limit, as far as workers know: each of them enters it after the claim and
/// leaves before the end.
#[derive(Default)]
struct Watch {
    running: BTreeMap<LimitKey, u32>,
    most: BTreeMap<LimitKey, u32>,
    done: usize,
}

const RUNS: usize = 300;
const KEYS: usize = 5;

async fn work(store: Arc<dyn Store>, claim: Claim, watch: Arc<Mutex<Watch>>, good_end: Finish) {
    let mut idle = 0;
    while watch.lock().unwrap().done < RUNS {
        let claimed = store.claim(&claim, now(100)).await.unwrap().attempts;
        idle = if claimed.is_empty() { idle + 1 } else { 0 };
        assert!(idle < 20_000, "nothing goes on");
        if claimed.is_empty() {
            // As whoever keeps house does.
            store.unpark_all(all_rooms(), now(100)).await.unwrap();
            tokio::task::yield_now().await;
            continue;
        }
        {
            let mut watch = watch.lock().unwrap();
            for limit in claimed.iter().flat_map(|attempt| &attempt.places) {
                let running = watch.running.entry(*limit).or_default();
                *running += 1;
                let running = *running;
                let most = watch.most.entry(*limit).or_default();
                *most = running.max(*most);
            }
        }
        tokio::task::yield_now().await;
        {
            let mut watch = watch.lock().unwrap();
            for limit in claimed.iter().flat_map(|attempt| &attempt.places) {
                *watch.running.entry(*limit).or_default() -= 1;
            }
        }
        let ends: Vec<_> = claimed
            .iter()
            .map(|attempt| Finish {
                key: attempt.key,
                fence: attempt.fence,
                started_at: attempt.key.scheduled_at,
                ..good_end.clone()
            })
            .collect();
        let count = ends.len();
        let results = store.finish(claim.node, ends, ALPHA).await.unwrap();
        assert!(results.iter().all(|result| *result == FinishResult::Done));
        let places = claimed.iter().flat_map(|attempt| {
            attempt.places.iter().map(|limit| LimitPlace { limit: *limit, run: attempt.key })
        });
        let places: Vec<LimitPlace> = places.collect();
        store.unpark(&places, Aging::default(), now(100)).await.unwrap();
        watch.lock().unwrap().done += count;
    }
}

pub async fn workers_at_once_never_exceed_a_limit_and_all_runs_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..RUNS).map(|n| {
        let job = new_job(&format!("job {n}")).priority((n % 90) as u8);
        // Some have no key, and are under the tenant's limit alone.
        match n % (KEYS + 1) {
            KEYS => job.build(),
            key => job.limited(&key.to_string(), 1 + key as u32).build(),
        }
    });
    let jobs = rig.add_all(jobs.collect()).await;
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    let due = rig.store.load_jobs(&numbers).await.unwrap();
    let fires = due.iter().map(|job| fire_of(job, at(60), Begin::Queued)).collect();
    rig.fire(fires, 60).await;
    let nodes = [rig.node, rig.join("node-2", 0).await];
    let watch = Arc::new(Mutex::new(Watch::default()));
    let some = RunKey::regular(numbers[0], at(60));
    let good_end = rig.good_end(Held { key: some, fence: Fence::NONE });
    let limits = Limits { tenant: Some(12), ..Limits::default() };
    at_once(&rig, 8, |n, store| {
        let room = 1 + 3 * (n % 3);
        let claim = Claim { limits: limits.clone(), ..claim_of(nodes[n % 2], room) };
        work(store, claim, Arc::clone(&watch), good_end.clone())
    })
    .await;
    let watch = std::mem::take(&mut *watch.lock().unwrap());
    assert_eq!(watch.done, RUNS);
    let tenant = LimitKey::of_tenant(rig.scope.tenant);
    assert!(watch.most[&tenant] <= 12, "{:?}", watch.most);
    for key in 0..KEYS {
        let limit = super::limits::key_of(&rig, &key.to_string());
        assert!(watch.most[&limit] <= 1 + key as u32, "key {key}: {:?}", watch.most);
    }
    let census = rig.census().await;
    assert_eq!((census.ready, census.running, census.live), (0, 0, 0));
}
