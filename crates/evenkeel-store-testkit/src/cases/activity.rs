//! Tests the activity per tenant and time slot.

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{NodeNo, Slot, Span};
use evenkeel_store::{ActivityDelta, Scope, SlotActivity};

use crate::Opened;
use crate::fixtures::at;
use crate::rig::Rig;

/// Returns counts that differ in every field and depend on `n`.
fn counts(n: u64) -> ActivityCounts {
    let mut counts = ActivityCounts { fired: 100 * n, ..ActivityCounts::default() };
    for (times, outcome) in (n..).zip(Outcome::ALL) {
        for _ in 0..times {
            counts.add_ended(outcome, Span::from_micros(1_000_001 * n));
        }
    }
    for (times, reason) in (10 * n..).zip(SkipReason::ALL) {
        counts.skipped.add(reason, times);
    }
    for (times, millis) in (n..).zip([1, 20, 70, 200, 400, 700, 3_000, 20_000, 60_000, 600_000]) {
        for _ in 0..times {
            counts.lateness.record(Span::from_millis(millis + n));
        }
    }
    counts
}

fn delta(scope: &Scope, slot: i32, counts: ActivityCounts) -> ActivityDelta {
    ActivityDelta { tenant: scope.tenant, slot: Slot(slot), counts }
}

async fn add(rig: &Rig, node: NodeNo, activity: Vec<ActivityDelta>) {
    rig.store.add_run_stats(node, vec![], vec![], activity, at(1)).await.unwrap();
}

async fn list(rig: &Rig, scope: &Scope, from: i32, until: i32, limit: u32) -> Vec<SlotActivity> {
    rig.store.list_activity(scope, Slot(from), Slot(until), limit).await.unwrap()
}

fn slots(found: &[SlotActivity]) -> Vec<i32> {
    found.iter().map(|found| found.slot.0).collect()
}

/// Adds one fired run in each of the time slots.
async fn fire_in(rig: &Rig, scope: &Scope, slots: impl IntoIterator<Item = i32>) {
    let fired = ActivityCounts { fired: 1, ..ActivityCounts::default() };
    let activity = slots.into_iter().map(|slot| delta(scope, slot, fired)).collect();
    add(rig, rig.node, activity).await;
}

pub async fn every_count_is_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    add(&rig, rig.node, vec![delta(&rig.scope, 7, counts(3))]).await;
    let found = list(&rig, &rig.scope, 0, 9, 9).await;
    assert_eq!(found, [SlotActivity { slot: Slot(7), counts: counts(3) }]);
}

pub async fn activity_of_several_nodes_adds_up(opened: Opened) {
    let rig = Rig::new(opened).await;
    let second = rig.join("node-2", 0).await;
    for (n, node) in (1..).zip([rig.node, second, rig.node]) {
        let other_slot = delta(&rig.scope, 8, counts(1));
        add(&rig, node, vec![delta(&rig.scope, 7, counts(n)), other_slot]).await;
    }
    let (mut seventh, mut eighth) = (counts(1), counts(1));
    (2..=3).for_each(|n| seventh.merge(&counts(n)));
    (2..=3).for_each(|_| eighth.merge(&counts(1)));
    let found = list(&rig, &rig.scope, 0, 9, 9).await;
    let expected =
        [(7, seventh), (8, eighth)].map(|(slot, counts)| SlotActivity { slot: Slot(slot), counts });
    assert_eq!(found, expected);
}

pub async fn reports_of_two_nodes_at_once_lose_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let second = rig.join("node-2", 0).await;
    let other = rig.tenant("other").await;
    let report = async |node| {
        for _ in 0..20 {
            let activity = vec![delta(&rig.scope, 7, counts(1)), delta(&other, 7, counts(1))];
            add(&rig, node, activity).await;
        }
    };
    futures::join!(report(rig.node), report(second));
    for scope in [rig.scope, other] {
        let found = list(&rig, &scope, 0, 9, 9).await;
        assert_eq!((found.len(), found[0].counts.fired), (1, 4_000));
        assert_eq!(found[0].counts.lateness.count(), 40 * counts(1).lateness.count());
    }
}

pub async fn largest_lateness_is_kept(opened: Opened) {
    let rig = Rig::new(opened).await;
    for secs in [3, 900, 2] {
        let mut late = ActivityCounts::default();
        late.lateness.record(Span::from_secs(secs));
        add(&rig, rig.node, vec![delta(&rig.scope, 7, late)]).await;
    }
    let found = list(&rig, &rig.scope, 0, 9, 9).await;
    assert_eq!(found[0].counts.lateness.max(), Some(Span::from_secs(900)));
}

pub async fn activity_is_listed_oldest_first_within_bounds(opened: Opened) {
    let rig = Rig::new(opened).await;
    fire_in(&rig, &rig.scope, [9, 3, 5, 4, 12]).await;
    assert_eq!(slots(&list(&rig, &rig.scope, 0, 100, 99).await), [3, 4, 5, 9, 12]);
    assert_eq!(slots(&list(&rig, &rig.scope, 4, 12, 99).await), [4, 5, 9]);
    assert_eq!(slots(&list(&rig, &rig.scope, 4, 100, 2).await), [4, 5]);
    assert_eq!(list(&rig, &rig.scope, 6, 9, 99).await, []);
}

pub async fn activity_of_another_tenant_is_not_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    fire_in(&rig, &rig.scope, [3]).await;
    fire_in(&rig, &other, [4, 5]).await;
    assert_eq!(slots(&list(&rig, &rig.scope, 0, 9, 9).await), [3]);
    assert_eq!(slots(&list(&rig, &other, 0, 9, 9).await), [4, 5]);
}

pub async fn old_activity_is_pruned_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    fire_in(&rig, &rig.scope, 0..4).await;
    fire_in(&rig, &other, 1..3).await;
    let prune = async || rig.store.prune_activity(Slot(3), 2).await.unwrap();
    assert_eq!(prune().await, 2);
    // The oldest time slot is slot 0 of one tenant, followed by slot 1 of either tenant.
    let left = [list(&rig, &rig.scope, 0, 9, 9).await, list(&rig, &other, 0, 9, 9).await];
    assert_eq!(left[0].len() + left[1].len(), 4);
    assert_ne!(left[0][0].slot, Slot(0));
    assert_eq!((prune().await, prune().await, prune().await), (2, 1, 0));
    assert_eq!(slots(&list(&rig, &rig.scope, 0, 9, 9).await), [3]);
    assert_eq!(list(&rig, &other, 0, 9, 9).await, []);
}
