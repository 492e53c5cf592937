//! Tests when queued attempts may be claimed, and by which nodes.

use evenkeel_core::blackout::Blackout;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, JobNo, Shard, Span};
use evenkeel_store::{
    Claim, ClaimWindow, ClosedAttempt, FireResult, JobChange, Start, WaitingAttempt, WaitsFor,
};

use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now, place_of};
use crate::rig::{Known, Rig, claim_of, delayed_fire_of, next_attempt};

const ALWAYS: ClaimWindow = ClaimWindow { from: None, until: None };

fn window(from: Option<i64>, until: Option<i64>) -> ClaimWindow {
    ClaimWindow { from: from.map(at), until: until.map(at) }
}

/// Queues, at 60 s, an attempt of the job that may be claimed only within `window`.
async fn queue(rig: &Rig, job: JobBuilder, window: ClaimWindow) -> (Known, AttemptKey) {
    let job = rig.add(job.build()).await;
    let mut fire = fire_of(&rig.due(job).await, at(60), Begin::Queued);
    open(&mut fire.start.as_mut().unwrap().1, window);
    assert!(matches!(rig.fire(vec![fire], 60).await[..], [FireResult::Fired(_)]));
    (job, AttemptKey::regular(job.no, at(60)))
}

fn open(start: &mut Start, window: ClaimWindow) {
    let Start::Queued(entry) = start else { panic!("not queued") };
    (entry.open_from, entry.open_until) = (window.from, window.until);
}

async fn claim(rig: &Rig, capacity: usize, secs: i64) -> Vec<JobNo> {
    rig.claim(capacity, secs).await.iter().map(|attempt| attempt.key.job_no).collect()
}

async fn closed_of(rig: &Rig, shards: &[Shard], limit: u32, secs: i64) -> Vec<ClosedAttempt> {
    rig.store.find_closed_windows(shards, limit, now(secs)).await.unwrap()
}

async fn closed(rig: &Rig, secs: i64) -> Vec<AttemptKey> {
    let shards: Vec<Shard> = Shard::all().collect();
    let mut keys: Vec<AttemptKey> =
        closed_of(rig, &shards, 1_000, secs).await.iter().map(|one| one.key).collect();
    keys.sort_unstable();
    keys
}

pub async fn an_attempt_is_not_claimed_before_its_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = queue(&rig, new_job("crawl"), window(Some(100), None)).await;
    assert_eq!(claim(&rig, 10, 99).await, []);
    assert_eq!(claim(&rig, 10, 100).await, [job.no]);
}

pub async fn an_attempt_is_not_claimed_after_its_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (first, _) = queue(&rig, new_job("first"), window(None, Some(100))).await;
    assert_eq!(claim(&rig, 10, 99).await, [first.no]);
    let (_, key) = queue(&rig, new_job("second"), window(Some(61), Some(100))).await;
    for secs in [100, 100_000] {
        assert_eq!(claim(&rig, 10, secs).await, []);
    }
    assert_eq!(rig.census().await.ready, 1);
    assert_eq!(rig.run(key).await.status, evenkeel_core::attempt::AttemptStatus::Pending);
}

pub async fn an_attempt_outside_its_window_is_not_counted_as_queued(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue(&rig, new_job("open"), window(None, Some(900))).await;
    let (_, key) = queue(&rig, new_job("later"), window(Some(900), None)).await;
    let pools = ["default".to_owned()];
    assert_eq!(rig.store.count_queued(&pools, 10).await.unwrap(), 1);
    rig.store.set_claim_windows(&[(key, ALWAYS)]).await.unwrap();
    assert_eq!(rig.store.count_queued(&pools, 10).await.unwrap(), 2);
}

pub async fn closed_attempts_do_not_block_those_behind_them(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..30 {
        let ahead = new_job(&format!("closed {n}")).priority(90);
        let shut = if n % 2 == 0 { window(None, Some(61)) } else { window(Some(900), None) };
        queue(&rig, ahead, shut).await;
    }
    let mut behind = Vec::new();
    for n in 0..3 {
        let (job, _) = queue(&rig, new_job(&format!("open {n}")).priority(10), ALWAYS).await;
        behind.push(job.no);
    }
    assert_eq!(claim(&rig, 2, 70).await, behind[..2]);
    assert_eq!(claim(&rig, 2, 70).await, behind[2..]);
    assert_eq!(claim(&rig, 2, 70).await, []);
}

pub async fn closed_attempts_use_no_guaranteed_capacity(opened: Opened) {
    let rig = Rig::new(opened).await;
    let in_lane = |name: &str, lane| new_job(name).lane(lane);
    queue(&rig, in_lane("shut", Lane::Batch), window(None, Some(61))).await;
    let (first, _) = queue(&rig, in_lane("first", Lane::Critical), ALWAYS).await;
    let (second, _) = queue(&rig, in_lane("second", Lane::Critical), ALWAYS).await;
    let wanted = Claim { guaranteed: [1, 0, 1], ..claim_of(rig.node, 2) };
    let claimed = rig.store.claim(&wanted, now(70)).await.unwrap().attempts;
    let jobs: Vec<JobNo> = claimed.iter().map(|attempt| attempt.key.job_no).collect();
    assert_eq!(jobs, [first.no, second.no]);
}

pub async fn a_closed_attempt_is_returned_with_all_that_its_next_window_needs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = queue(&rig, new_job("crawl"), ALWAYS).await;
    let held = rig.claim_one(60).await;
    rig.finish(rig.success(held)).await;
    let mut fire = fire_of(&rig.due(job).await, at(120), Begin::Queued);
    open(&mut fire.start.as_mut().unwrap().1, window(None, Some(150)));
    rig.fire(vec![fire], 120).await;
    let shard = [Shard::of(job.no)];
    assert_eq!(closed_of(&rig, &shard, 10, 149).await, []);
    let expected = [ClosedAttempt {
        key: AttemptKey::regular(job.no, at(120)),
        average_good_duration: Some(Span::from_secs(5)),
        definition: rig.due(job).await.definition,
    }];
    // Every call of `find_closed_windows` returns the attempt again until it gets a new claim
    // window.
    for secs in [150, 151] {
        assert_eq!(closed_of(&rig, &shard, 10, secs).await, expected);
    }
}

pub async fn an_open_or_future_window_is_not_returned_as_closed(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue(&rig, new_job("always"), ALWAYS).await;
    queue(&rig, new_job("later"), window(Some(900), None)).await;
    queue(&rig, new_job("later, for a while"), window(Some(900), Some(1_000))).await;
    queue(&rig, new_job("for a while"), window(None, Some(1_000))).await;
    let (_, shut) = queue(&rig, new_job("closed"), window(None, Some(80))).await;
    assert_eq!(closed(&rig, 100).await, [shut]);
}

pub async fn closed_attempts_are_returned_by_shard_up_to_a_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut keys = Vec::new();
    for n in 0..5 {
        let (_, key) = queue(&rig, new_job(&format!("job {n}")), window(None, Some(80))).await;
        keys.push(key);
    }
    assert_eq!(closed(&rig, 100).await, keys);
    let one = closed_of(&rig, &[Shard::of(keys[2].job_no)], 10, 100).await;
    assert_eq!(one.iter().map(|one| one.key).collect::<Vec<_>>(), [keys[2]]);
    let shards: Vec<Shard> = Shard::all().collect();
    assert_eq!(closed_of(&rig, &shards, 3, 100).await.len(), 3);
    assert_eq!(closed_of(&rig, &[], 10, 100).await, []);
}

pub async fn an_attempt_is_claimed_in_its_new_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, key) = queue(&rig, new_job("crawl"), window(None, Some(80))).await;
    rig.store.set_claim_windows(&[(key, window(Some(200), Some(300)))]).await.unwrap();
    assert_eq!(closed(&rig, 250).await, []);
    assert_eq!(claim(&rig, 10, 199).await, []);
    assert_eq!(claim(&rig, 10, 300).await, []);
    assert_eq!(closed(&rig, 300).await, [key]);
    rig.store.set_claim_windows(&[(key, ALWAYS)]).await.unwrap();
    assert_eq!(claim(&rig, 10, 300).await, [job.no]);
}

pub async fn a_new_window_does_not_change_the_order(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (first, shut) = queue(&rig, new_job("first").priority(9), window(None, Some(61))).await;
    let (second, _) = queue(&rig, new_job("second").priority(5), ALWAYS).await;
    rig.store.set_claim_windows(&[(shut, ALWAYS)]).await.unwrap();
    assert_eq!(claim(&rig, 10, 70).await, [first.no, second.no]);
}

pub async fn an_attempt_that_left_the_queue_gets_no_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (claimed, key) = queue(&rig, new_job("claimed"), window(None, Some(80))).await;
    rig.claim_one(70).await;
    let (other, shut) = queue(&rig, new_job("other"), window(None, Some(80))).await;
    let never = AttemptKey::regular(claimed.no, at(999));
    let batch = [key, never, shut].map(|key| (key, ALWAYS));
    rig.store.set_claim_windows(&batch).await.unwrap();
    rig.store.set_claim_windows(&[]).await.unwrap();
    assert_eq!(claim(&rig, 10, 90).await, [other.no]);
    let census = rig.census().await;
    assert_eq!((census.ready, census.running, census.runs), (0, 2, 2));
}

pub async fn retries_and_requeued_attempts_have_windows(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let mut back = rig.requeue_of(held, job, false).await;
    let place = place_of(&mut back);
    (place.open_from, place.open_until) = (Some(at(100)), Some(at(110)));
    assert!(rig.requeue(back, 70).await);
    assert_eq!(claim(&rig, 10, 99).await, []);
    assert_eq!(closed(&rig, 110).await, [held.key]);
    let held = rig.claim_one(100).await;
    rig.finish(rig.retry(held, at(120))).await;
    let mut delayed = delayed_fire_of(&rig.delayed(120).await[0], Begin::Queued);
    open(&mut delayed.start, window(Some(200), Some(210)));
    rig.store.fire_delayed(rig.node, vec![delayed], now(120)).await.unwrap();
    assert_eq!(claim(&rig, 10, 199).await, []);
    assert_eq!(closed(&rig, 210).await, [next_attempt(held.key)]);
    assert_eq!(claim(&rig, 10, 200).await, [job.no]);
}

pub async fn a_node_gets_no_attempt_that_excludes_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let named = |name: &str| Claim { node_name: name.into(), ..claim_of(rig.node, 10) };
    let claim = async |name: &str| -> Vec<JobNo> {
        let claimed = rig.store.claim(&named(name), now(70)).await.unwrap().attempts;
        claimed.iter().map(|attempt| attempt.key.job_no).collect()
    };
    let (one, _) = queue(&rig, new_job("one").not_on(&["crawler-1"]).priority(9), ALWAYS).await;
    let (both, _) =
        queue(&rig, new_job("both").not_on(&["crawler-1", "crawler-2"]).priority(8), ALWAYS).await;
    let (none, _) = queue(&rig, new_job("none").priority(7), ALWAYS).await;
    assert_eq!(claim("crawler-1").await, [none.no]);
    assert_eq!(claim("crawler-1").await, []);
    assert_eq!(claim("crawler-2").await, [one.no]);
    // Node names must match exactly.
    let (other, _) =
        queue(&rig, new_job("other").not_on(&["Crawler-3", "crawler-33"]), ALWAYS).await;
    assert_eq!(claim("crawler-3").await, [both.no, other.no]);
}

pub async fn excluded_attempts_do_not_block_those_behind_them(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..20 {
        queue(&rig, new_job(&format!("job {n}")).not_on(&["node-1"]).priority(90), ALWAYS).await;
    }
    let (behind, _) = queue(&rig, new_job("behind").priority(1), ALWAYS).await;
    assert_eq!(claim(&rig, 1, 70).await, [behind.no]);
    assert_eq!(claim(&rig, 1, 70).await, []);
}

pub async fn requeued_and_retried_attempts_exclude_nodes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").not_on(&["node-1"]).build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, false).await;
    assert!(rig.requeue(back, 70).await);
    assert_eq!(claim(&rig, 10, 71).await, []);
    let elsewhere = Claim { node_name: "node-2".into(), ..claim_of(rig.node, 10) };
    let held = rig.store.claim(&elsewhere, now(71)).await.unwrap().attempts;
    let held = crate::rig::Held { key: held[0].key, fence: held[0].fence };
    rig.finish(rig.retry(held, at(80))).await;
    rig.fire_delayed(&rig.delayed(80).await, Begin::Queued, 80).await;
    assert_eq!(claim(&rig, 10, 81).await, []);
    assert_eq!(rig.store.claim(&elsewhere, now(81)).await.unwrap().attempts.len(), 1);
}

pub async fn concurrent_claims_and_new_windows_lose_and_double_no_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut keys = Vec::new();
    for n in 0..40 {
        let when = if n % 2 == 0 { window(None, Some(100)) } else { window(None, Some(65)) };
        let (_, key) = queue(&rig, new_job(&format!("job {n}")), when).await;
        keys.push((key, window(None, Some(200))));
    }
    let node = rig.node;
    let claimed = at_once(&rig, 4, |n, store| {
        let keys = keys.clone();
        async move {
            if n < 2 {
                store.set_claim_windows(&keys).await.unwrap();
                return Vec::new();
            }
            store.claim(&claim_of(node, 100), now(70)).await.unwrap().attempts
        }
    })
    .await;
    let mut given: Vec<AttemptKey> = claimed.into_iter().flatten().map(|one| one.key).collect();
    given.extend(rig.claim(100, 70).await.iter().map(|one| one.key));
    given.sort_unstable();
    assert_eq!(given, keys.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    let census = rig.census().await;
    assert_eq!((census.ready, census.running), (0, 40));
}

/// Returns a daily blackout from `start` to `end`; all cases begin at 17:45.
fn blackout(start: &str, end: &str) -> Blackout {
    serde_json::from_value(serde_json::json!({ "start": start, "end": end })).unwrap()
}

/// Changes the blackouts and excluded nodes in the job's definition.
async fn redefine(rig: &Rig, job: Known, to: JobBuilder, secs: i64) {
    let change = JobChange { definition: Some(to.build().definition), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap();
}

async fn window_of(rig: &Rig, job: Known) -> ClaimWindow {
    let returned = rig.waiting_of(&rig.scope, job.id).await;
    match returned[..] {
        [WaitingAttempt { waits_for: WaitsFor::Worker { window, .. }, .. }] => window,
        ref other => panic!("{other:?}"),
    }
}

pub async fn a_new_definition_sets_the_window_of_queued_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = queue(&rig, new_job("crawl"), ALWAYS).await;
    let (other, _) = queue(&rig, new_job("other"), window(Some(70), None)).await;
    let mut dark = new_job("crawl").build();
    dark.definition.blackout_periods = vec![blackout("17:45:00", "18:45:00")];
    let average = Span::from_secs(5);
    let expected = ClaimWindow::of(&dark.definition, average, at(65));
    assert_eq!(expected.from, Some(at(3_600)));
    let change = JobChange { definition: Some(dark.definition), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(65)).await.unwrap();
    assert_eq!(window_of(&rig, job).await, expected);
    assert_eq!(claim(&rig, 10, 69).await, []);
    assert_eq!(window_of(&rig, other).await, window(Some(70), None));
    redefine(&rig, job, new_job("crawl"), 66).await;
    assert_eq!(window_of(&rig, job).await, ALWAYS);
    assert_eq!(claim(&rig, 10, 69).await, [job.no]);
}

pub async fn a_new_definition_sets_the_excluded_nodes_of_queued_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = queue(&rig, new_job("crawl"), ALWAYS).await;
    redefine(&rig, job, new_job("crawl").not_on(&["node-1"]), 61).await;
    assert_eq!(claim(&rig, 10, 62).await, []);
    // A new job name does not change the claim window.
    let about = Some(new_job("renamed").build().about);
    let renamed = JobChange { about, ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, renamed, now(63)).await.unwrap();
    assert_eq!(claim(&rig, 10, 64).await, []);
    redefine(&rig, job, new_job("crawl"), 65).await;
    assert_eq!(claim(&rig, 10, 66).await, [job.no]);
}

pub async fn the_average_duration_decides_whether_a_run_fits_before_a_blackout(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    rig.queue(job, 120).await;
    let mut dark = new_job("crawl").build().definition;
    dark.blackout_periods = vec![blackout("18:00:00", "19:00:00")];
    dark.avoid_blackout = true;
    let expected = ClaimWindow::of(&dark, Span::from_secs(5), at(125));
    assert_eq!(expected, window(None, Some(895)));
    let change = JobChange { definition: Some(dark), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(125)).await.unwrap();
    assert_eq!(window_of(&rig, job).await, expected);
}
