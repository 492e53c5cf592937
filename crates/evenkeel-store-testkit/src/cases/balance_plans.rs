//! Tests rebalances from the plan to the result, and stored balance scores.

use evenkeel_core::Timestamp;
use evenkeel_core::balance::Move;
use evenkeel_store::{
    BeganRebalance, PARTS_PRUNED, PageRequest, Rebalance, RebalancePart, RebalanceState,
    SavedScore, Scope, StoreError,
};
use uuid::Uuid;

use super::races::at_once;
use crate::Opened;
use crate::balance::{batch_of, begin_one, move_to, new_plan, parts_of};
use crate::fixtures::{at, new_job, now};
use crate::rig::Rig;

async fn keep(rig: &Rig, plan: &Rebalance) {
    rig.store.plan_rebalance(&rig.scope, plan.clone(), parts_of(plan)).await.unwrap();
}

async fn kept(rig: &Rig, id: Uuid) -> Rebalance {
    rig.store.get_rebalance(&rig.scope, id).await.unwrap().unwrap()
}

/// Begins a rebalance, unless another rebalance has moved jobs within the last ten seconds.
async fn try_to_begin(rig: &Rig, id: Uuid, secs: i64) -> Option<BeganRebalance> {
    rig.store.begin_rebalance(&rig.scope, id, at(secs - 10), now(secs)).await.unwrap()
}

/// Begins a rebalance; the store must accept the call.
async fn begin(rig: &Rig, id: Uuid, secs: i64) -> Rebalance {
    match try_to_begin(rig, id, secs).await {
        Some(BeganRebalance::Now(begun)) => begun,
        other => panic!("{other:?}"),
    }
}

/// Tries to begin a rebalance, which must be rejected, and returns the rebalance that prevents it.
async fn in_the_way(rig: &Rig, id: Uuid, secs: i64) -> Rebalance {
    match try_to_begin(rig, id, secs).await {
        Some(BeganRebalance::Other(other)) => other,
        other => panic!("{other:?}"),
    }
}

async fn end(rig: &Rig, id: Uuid, state: RebalanceState, secs: i64) -> Option<Rebalance> {
    rig.store.end_rebalance(&rig.scope, id, state, now(secs)).await.unwrap()
}

async fn listed(rig: &Rig, scope: &Scope) -> Vec<Uuid> {
    let page = rig.store.list_rebalances(scope, PageRequest::first(100)).await.unwrap();
    assert_eq!((page.total, page.next), (page.items.len() as u64, None));
    page.items.iter().map(|one| one.id).collect()
}

pub async fn a_plan_is_read_back_as_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plan = Rebalance { undoes: Some(Uuid::max()), ..new_plan(3, 5) };
    keep(&rig, &plan).await;
    let rig = rig.restart().await;
    assert_eq!(kept(&rig, plan.id).await, plan);
    for (part, moves) in parts_of(&plan).into_iter().enumerate() {
        let found = rig.store.rebalance_part(&rig.scope, plan.id, part as u32).await.unwrap();
        assert_eq!(found, Some(RebalancePart { moves, made: None }));
    }
    assert_eq!(rig.store.rebalance_part(&rig.scope, plan.id, 3).await.unwrap(), None);
    assert_eq!(rig.store.get_rebalance(&rig.scope, Uuid::nil()).await.unwrap(), None);
}

pub async fn a_plan_may_have_no_moves(opened: Opened) {
    let rig = Rig::new(opened).await;
    let id = begin_one(&rig, 0, 5).await;
    let done = end(&rig, id, RebalanceState::Done, 6).await.unwrap();
    assert_eq!((done.state, done.parts, done.parts_done), (RebalanceState::Done, 0, 0));
}

pub async fn a_planned_rebalance_begins_and_ends(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plan = new_plan(1, 5);
    keep(&rig, &plan).await;
    let begun = begin(&rig, plan.id, 7).await;
    let running = RebalanceState::Running;
    assert_eq!(begun, Rebalance { state: running, touched_at: Some(at(7)), ..plan.clone() });
    assert_eq!(kept(&rig, plan.id).await, begun);
    let done = end(&rig, plan.id, RebalanceState::Done, 9).await.unwrap();
    let expected = Rebalance { state: RebalanceState::Done, ended_at: Some(at(9)), ..begun };
    assert_eq!(done, expected);
    assert_eq!(kept(&rig, plan.id).await, done);
    // A finished rebalance cannot begin again.
    assert_eq!(in_the_way(&rig, plan.id, 10).await, done);
    assert_eq!(end(&rig, plan.id, RebalanceState::Stopped, 11).await.unwrap(), done);
    assert_eq!(kept(&rig, plan.id).await, done);
}

pub async fn a_stopped_rebalance_may_continue(opened: Opened) {
    let rig = Rig::new(opened).await;
    let id = begin_one(&rig, 2, 5).await;
    rig.store.move_jobs(&rig.scope, batch_of(id, 0, Vec::new()), now(6)).await.unwrap();
    let stopped = end(&rig, id, RebalanceState::Stopped, 7).await.unwrap();
    assert_eq!((stopped.state, stopped.ended_at), (RebalanceState::Stopped, Some(at(7))));
    let begun = begin(&rig, id, 8).await;
    assert_eq!((begun.state, begun.ended_at), (RebalanceState::Running, None));
    assert_eq!((begun.parts_done, begun.touched_at), (1, Some(at(8))));
}

pub async fn a_rebalance_that_did_not_begin_does_not_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plan = new_plan(1, 5);
    keep(&rig, &plan).await;
    for state in [RebalanceState::Stopped, RebalanceState::Done] {
        assert_eq!(end(&rig, plan.id, state, 6).await.unwrap(), plan);
    }
    assert_eq!(kept(&rig, plan.id).await, plan);
    assert_eq!(end(&rig, Uuid::nil(), RebalanceState::Done, 6).await, None);
}

pub async fn a_tenant_has_one_running_rebalance(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = begin_one(&rig, 1, 100).await;
    let plan = new_plan(1, 101);
    keep(&rig, &plan).await;
    // The first rebalance last moved jobs at 100 s, so it counts as running at 109 s and as silent
    // at 110 s.
    assert_eq!(in_the_way(&rig, plan.id, 109).await, kept(&rig, first).await);
    assert_eq!(kept(&rig, plan.id).await, plan);
    let begun = begin(&rig, plan.id, 110).await;
    assert_eq!((begun.id, begun.state), (plan.id, RebalanceState::Running));
    let silent = kept(&rig, first).await;
    assert_eq!((silent.state, silent.ended_at), (RebalanceState::Stopped, Some(at(110))));
    let other = rig.tenant("other").await;
    let theirs = new_plan(1, 101);
    rig.store.plan_rebalance(&other, theirs.clone(), parts_of(&theirs)).await.unwrap();
    let begun = rig.store.begin_rebalance(&other, theirs.id, at(0), now(111)).await.unwrap();
    assert_eq!(begun.unwrap().into_inner().id, theirs.id);
    assert_eq!(try_to_begin(&rig, Uuid::nil(), 112).await, None);
}

pub async fn a_silent_rebalance_may_be_begun_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let id = begin_one(&rig, 2, 100).await;
    assert_eq!(in_the_way(&rig, id, 109).await.touched_at, Some(at(100)));
    let begun = begin(&rig, id, 110).await;
    assert_eq!((begun.state, begun.touched_at), (RebalanceState::Running, Some(at(110))));
    rig.store.move_jobs(&rig.scope, batch_of(id, 0, Vec::new()), now(115)).await.unwrap();
    assert_eq!(in_the_way(&rig, id, 124).await.touched_at, Some(at(115)));
}

pub async fn an_undo_marks_the_other_rebalance_when_it_begins(opened: Opened) {
    let rig = Rig::new(opened).await;
    let done = begin_one(&rig, 1, 5).await;
    end(&rig, done, RebalanceState::Done, 6).await;
    let undo = Rebalance { undoes: Some(done), ..new_plan(1, 7) };
    keep(&rig, &undo).await;
    assert_eq!(kept(&rig, done).await.undone_by, None);
    let begun = begin(&rig, undo.id, 8).await;
    assert_eq!((begun.undoes, begun.undone_by), (Some(done), None));
    let undone = kept(&rig, done).await;
    assert_eq!((undone.undone_by, undone.state), (Some(undo.id), RebalanceState::Done));
}

pub async fn a_silent_rebalance_may_be_undone(opened: Opened) {
    let rig = Rig::new(opened).await;
    let left = begin_one(&rig, 2, 100).await;
    let undo = Rebalance { undoes: Some(left), ..new_plan(1, 105) };
    keep(&rig, &undo).await;
    assert_eq!(in_the_way(&rig, undo.id, 109).await.id, left);
    assert_eq!(kept(&rig, left).await.undone_by, None);
    assert_eq!(begin(&rig, undo.id, 200).await.id, undo.id);
    let undone = kept(&rig, left).await;
    assert_eq!((undone.undone_by, undone.state), (Some(undo.id), RebalanceState::Stopped));
    // A rebalance that was undone does not continue.
    end(&rig, undo.id, RebalanceState::Done, 201).await;
    assert_eq!(in_the_way(&rig, left, 300).await, undone);
    assert_eq!(kept(&rig, left).await, undone);
}

pub async fn a_partly_undone_rebalance_may_be_undone_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let done = begin_one(&rig, 1, 5).await;
    end(&rig, done, RebalanceState::Done, 6).await;
    let undos: Vec<Rebalance> =
        (0..4).map(|n| Rebalance { undoes: Some(done), ..new_plan(1, 7 + n) }).collect();
    for undo in &undos {
        keep(&rig, undo).await;
    }
    // The first undo is stopped, the second skips a job that has changed, and the third moves all
    // jobs back.
    begin(&rig, undos[0].id, 10).await;
    assert_eq!(in_the_way(&rig, undos[1].id, 11).await.id, undos[0].id);
    end(&rig, undos[0].id, RebalanceState::Stopped, 12).await;
    begin(&rig, undos[1].id, 13).await;
    assert_eq!(kept(&rig, done).await.undone_by, Some(undos[1].id));
    let job = rig.add(new_job("crawl").every(3600).first_at(3600).build()).await;
    let (one, profile) = move_to(&rig.job(job).await, at(4500));
    let changed = Move { generation: 7, ..one };
    let batch = batch_of(undos[1].id, 0, vec![(changed, profile)]);
    rig.store.move_jobs(&rig.scope, batch, now(14)).await.unwrap();
    let second = end(&rig, undos[1].id, RebalanceState::Done, 15).await.unwrap();
    assert_eq!((second.changed, second.is_complete()), (1, false));
    begin(&rig, undos[2].id, 16).await;
    let third = end(&rig, undos[2].id, RebalanceState::Done, 17).await.unwrap();
    assert!(third.is_complete());
    // After a rebalance was undone completely, neither a new nor a stopped undo of it can begin.
    assert_eq!(in_the_way(&rig, undos[3].id, 18).await, third);
    assert_eq!(in_the_way(&rig, undos[0].id, 19).await, third);
    assert_eq!(kept(&rig, done).await.undone_by, Some(third.id));
}

pub async fn concurrent_begins_of_one_rebalance_succeed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plan = new_plan(1, 5);
    keep(&rig, &plan).await;
    let (scope, id) = (rig.scope, plan.id);
    let answers = at_once(&rig, 6, |_, store| async move {
        store.begin_rebalance(&scope, id, at(0), now(9)).await.unwrap()
    })
    .await;
    let begun = answers.iter().filter(|one| matches!(one, Some(BeganRebalance::Now(_)))).count();
    assert_eq!(begun, 1, "{answers:?}");
    assert!(answers.into_iter().all(|one| one.unwrap().into_inner().id == id));
}

pub async fn concurrent_begins_leave_one_running_rebalance(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plans: Vec<Rebalance> = (0..6).map(|n| new_plan(1, n)).collect();
    for plan in &plans {
        keep(&rig, plan).await;
    }
    let scope = rig.scope;
    let answers = at_once(&rig, plans.len(), |n, store| {
        let id = plans[n].id;
        async move {
            let answer = store.begin_rebalance(&scope, id, at(0), now(9)).await;
            answer.unwrap().map(|one| one.into_inner().id)
        }
    })
    .await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    assert_eq!(listed(&rig, &scope).await.len(), 1);
}

pub async fn started_rebalances_are_listed_newest_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut ids = Vec::new();
    for secs in [5, 5, 7, 9, 11] {
        let id = begin_one(&rig, 1, secs).await;
        ids.push((at(secs), id));
        end(&rig, id, RebalanceState::Stopped, secs).await;
    }
    begin(&rig, ids[1].1, 99).await;
    end(&rig, ids[0].1, RebalanceState::Done, 99).await;
    keep(&rig, &new_plan(1, 6)).await;
    ids.sort_unstable_by(|one, other| other.cmp(one));
    let expected: Vec<Uuid> = ids.iter().map(|(_, id)| *id).collect();
    assert_eq!(listed(&rig, &rig.scope).await, expected);
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(2) };
        let page = rig.store.list_rebalances(&rig.scope, page).await.unwrap();
        assert_eq!(page.total, 5);
        for one in &page.items {
            assert_eq!(kept(&rig, one.id).await, *one);
        }
        paged.extend(page.items.iter().map(|one| one.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, expected);
    let page = PageRequest { offset: 3, ..PageRequest::first(1) };
    let page = rig.store.list_rebalances(&rig.scope, page).await.unwrap();
    assert_eq!((page.items[0].id, page.next), (expected[3], Some(ids[3])));
}

pub async fn tenants_do_not_see_rebalances_of_others(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let id = begin_one(&rig, 1, 5).await;
    let before = kept(&rig, id).await;
    let store = &rig.store;
    assert_eq!(store.get_rebalance(&other, id).await.unwrap(), None);
    assert_eq!(store.rebalance_part(&other, id, 0).await.unwrap(), None);
    assert_eq!(store.begin_rebalance(&other, id, at(99), now(99)).await.unwrap(), None);
    let done = RebalanceState::Done;
    assert_eq!(store.end_rebalance(&other, id, done, now(9)).await.unwrap(), None);
    assert!(listed(&rig, &other).await.is_empty());
    let undo = Rebalance { undoes: Some(id), ..new_plan(1, 7) };
    store.plan_rebalance(&other, undo.clone(), parts_of(&undo)).await.unwrap();
    store.begin_rebalance(&other, undo.id, at(0), now(9)).await.unwrap();
    assert_eq!(kept(&rig, id).await, before);
}

fn score(hour: i64, score: f64) -> SavedScore {
    let hour = at(hour * 3600);
    SavedScore { hour, score, next_score: 0.5, cost_score: 0.25, peak: 7.0, mean: 3.5, jobs: 99 }
}

async fn scores(rig: &Rig, scope: &Scope, from: i64, until: i64, limit: u32) -> Vec<SavedScore> {
    let (from, until) = (at(from * 3600), at(until * 3600));
    rig.store.scores(scope, from, until, limit).await.unwrap()
}

pub async fn the_first_score_of_an_hour_stays(opened: Opened) {
    let rig = Rig::new(opened).await;
    let tenant = rig.scope.tenant;
    assert!(rig.store.save_score(tenant, score(1, 0.125)).await.unwrap());
    assert!(!rig.store.save_score(tenant, score(1, 0.75)).await.unwrap());
    assert!(rig.store.save_score(tenant, score(2, 0.75)).await.unwrap());
    let rig = rig.restart().await;
    assert_eq!(scores(&rig, &rig.scope, 0, 9, 9).await, [score(1, 0.125), score(2, 0.75)]);
}

pub async fn scores_are_returned_by_time_within_the_range(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for hour in [4, 1, 3, 2, 5] {
        rig.store.save_score(rig.scope.tenant, score(hour, 0.5)).await.unwrap();
    }
    rig.store.save_score(other.tenant, score(3, 0.75)).await.unwrap();
    let hours = |found: Vec<SavedScore>| -> Vec<Timestamp> {
        found.iter().map(|score| score.hour).collect()
    };
    let expected =
        |hours: &[i64]| -> Vec<Timestamp> { hours.iter().map(|hour| at(hour * 3600)).collect() };
    assert_eq!(hours(scores(&rig, &rig.scope, 2, 5, 9).await), expected(&[2, 3, 4]));
    assert_eq!(hours(scores(&rig, &rig.scope, 0, 9, 2).await), expected(&[1, 2]));
    assert_eq!(scores(&rig, &other, 0, 9, 9).await, [score(3, 0.75)]);
}

pub async fn old_scores_and_plans_are_pruned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for hour in 1..=5 {
        rig.store.save_score(rig.scope.tenant, score(hour, 0.5)).await.unwrap();
    }
    let running = begin_one(&rig, 1, 1).await;
    rig.store.move_jobs(&rig.scope, batch_of(running, 0, Vec::new()), now(99)).await.unwrap();
    let plans: Vec<Rebalance> = (2..=5).map(|secs| new_plan(2, secs)).collect();
    for plan in &plans {
        keep(&rig, plan).await;
    }
    let theirs = new_plan(1, 1);
    rig.store.plan_rebalance(&other, theirs.clone(), parts_of(&theirs)).await.unwrap();
    let forget =
        |hours: i64, secs: i64, limit| rig.store.prune_balance(at(hours * 3600), at(secs), limit);
    let count = async |deleted| -> u64 { Result::<u64, StoreError>::unwrap(deleted) };
    // Deletes the balance scores of the hours before hour 3 and the plans that were created before
    // 2 s.
    assert_eq!(count(forget(3, 2, 100).await).await, 3);
    assert_eq!(scores(&rig, &rig.scope, 0, 9, 9).await.len(), 3);
    assert_eq!(rig.store.get_rebalance(&other, theirs.id).await.unwrap(), None);
    assert_eq!(rig.store.rebalance_part(&other, theirs.id, 0).await.unwrap(), None);
    // The oldest balance scores and plans are deleted first, up to `limit` of each.
    assert_eq!(count(forget(9, 5, 2).await).await, 4);
    assert_eq!(scores(&rig, &rig.scope, 0, 9, 9).await, [score(5, 0.5)]);
    for (plan, is_there) in plans.iter().zip([false, false, true, true]) {
        let found = rig.store.get_rebalance(&rig.scope, plan.id).await.unwrap();
        assert_eq!(found.is_some(), is_there);
        let part = rig.store.rebalance_part(&rig.scope, plan.id, 1).await.unwrap();
        // The batches of a rebalance plan may be deleted before the plan itself.
        assert!(part.is_none() || is_there);
    }
    let newest = rig.store.rebalance_part(&rig.scope, plans[3].id, 1).await.unwrap();
    assert!(newest.is_some());
    assert_eq!(count(forget(0, 99, 100).await).await, 2);
    // A running rebalance is kept.
    assert_eq!(kept(&rig, running).await.state, RebalanceState::Running);
    end(&rig, running, RebalanceState::Done, 9).await;
    // A rebalance that ran is kept longer than a rebalance plan that never ran.
    assert_eq!(count(forget(0, 99, 100).await).await, 0);
    assert_eq!(count(forget(0, 99 + 7 * 86_400, 100).await).await, 1);
}

pub async fn a_large_plan_is_pruned_in_several_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let plans = [new_plan(PARTS_PRUNED + 7, 5), new_plan(1, 6)];
    for plan in &plans {
        keep(&rig, plan).await;
    }
    let mut steps = 0;
    while rig.store.prune_balance(at(0), at(9), 2).await.unwrap() >= 2 {
        steps += 1;
        assert!(steps < 9, "the loop does not end");
    }
    for plan in &plans {
        assert_eq!(rig.store.get_rebalance(&rig.scope, plan.id).await.unwrap(), None);
        for part in [0, plan.parts - 1] {
            let part = rig.store.rebalance_part(&rig.scope, plan.id, part).await.unwrap();
            assert_eq!(part, None);
        }
    }
}

pub async fn a_rebalance_that_was_abandoned_is_pruned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let left = begin_one(&rig, 2, 10).await;
    rig.store.move_jobs(&rig.scope, batch_of(left, 0, Vec::new()), now(20)).await.unwrap();
    let week = 7 * 86_400;
    for (before, deleted) in [(99, 0), (week + 20, 0), (week + 21, 1), (week + 99, 0)] {
        let found = rig.store.prune_balance(at(0), at(before), 100).await.unwrap();
        assert_eq!(found, deleted, "{before}");
    }
    assert_eq!(rig.store.get_rebalance(&rig.scope, left).await.unwrap(), None);
    assert_eq!(rig.store.rebalance_part(&rig.scope, left, 0).await.unwrap(), None);
}
