//! Tests the totals of attempts by outcome, and groups of similar failures.

use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, Span, TenantNo};
use evenkeel_store::{FailureDelta, FailureGroup, PageRequest, RunStatsDelta, RunTotals, Scope};

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{at, new_job, new_node, now};
use crate::rig::{Known, Rig};

fn one_of_each(tenant: TenantNo, running: u32) -> RunStatsDelta {
    RunStatsDelta {
        tenant,
        completed: 1,
        failed: 2,
        timed_out: 3,
        cancelled: 4,
        retries: 5,
        stolen: 6,
        success_duration: Span::from_secs(7),
        running,
    }
}

fn failures(scope: &Scope, error: &str, count: u64, job: Known, secs: i64) -> FailureDelta {
    FailureDelta {
        tenant: scope.tenant,
        fingerprint: Fingerprint::of(error),
        count,
        newest: AttemptKey::regular(job.no, at(secs)),
        at: at(secs + 5),
        error: error.into(),
    }
}

async fn run_totals(rig: &Rig, scope: &Scope) -> RunTotals {
    rig.store.run_totals(scope).await.unwrap()
}

async fn list(rig: &Rig, scope: &Scope, limit: u32) -> Vec<FailureGroup> {
    let (mut groups, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(limit) };
        let page = rig.store.list_failures(scope, page).await.unwrap();
        groups.extend(page.items);
        after = page.next;
        if after.is_none() {
            assert_eq!(page.total, groups.len() as u64);
            return groups;
        }
    }
}

pub async fn reports_of_nodes_add_up(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    assert_eq!(run_totals(&rig, &rig.scope).await, RunTotals::default());
    let second = rig.join("node-2", 0).await;
    let mine = one_of_each(rig.scope.tenant, 1);
    let theirs = one_of_each(other.tenant, 9);
    rig.store.add_run_stats(rig.node, vec![mine, theirs], vec![], vec![], at(1)).await.unwrap();
    rig.store
        .add_run_stats(second, vec![one_of_each(rig.scope.tenant, 2)], vec![], vec![], at(3))
        .await
        .unwrap();
    rig.store.add_run_stats(rig.node, vec![mine], vec![], vec![], at(2)).await.unwrap();
    let expected = RunTotals {
        completed: 3,
        failed: 6,
        timed_out: 9,
        cancelled: 12,
        retries: 15,
        stolen: 18,
        success_duration: Span::from_secs(21),
        running: 3,
        at: Some(at(3)),
    };
    assert_eq!(run_totals(&rig, &rig.scope).await, expected);
    let theirs = run_totals(&rig, &other).await;
    assert_eq!((theirs.completed, theirs.success_duration), (1, Span::from_secs(7)));
}

pub async fn running_attempts_are_those_of_the_last_report(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store
        .add_run_stats(rig.node, vec![one_of_each(rig.scope.tenant, 5)], vec![], vec![], at(1))
        .await
        .unwrap();
    assert_eq!(run_totals(&rig, &rig.scope).await.running, 5);
    rig.store.add_run_stats(rig.node, vec![], vec![], vec![], at(2)).await.unwrap();
    let left = run_totals(&rig, &rig.scope).await;
    assert_eq!((left.running, left.completed, left.at), (0, 1, Some(at(2))));
}

pub async fn running_attempts_of_a_lost_node_do_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let lost = rig.join("node-2", 0).await;
    rig.store
        .add_run_stats(lost, vec![one_of_each(rig.scope.tenant, 5)], vec![], vec![], at(1))
        .await
        .unwrap();
    assert_eq!(run_totals(&rig, &rig.scope).await.running, 5);
    // The node joins again, so its former node number is dead.
    rig.store.join(&new_node("node-2"), now(2)).await.unwrap();
    let left = run_totals(&rig, &rig.scope).await;
    assert_eq!((left.running, left.completed), (0, 1));
}

pub async fn failures_are_grouped_by_fingerprint(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(vec![new_job("a").build(), new_job("b").build()]).await;
    let first = vec![
        failures(&rig.scope, "no route to 10.0.0.1", 2, jobs[0], 60),
        failures(&rig.scope, "out of memory", 1, jobs[0], 90),
    ];
    rig.store.add_run_stats(rig.node, vec![], first, vec![], at(100)).await.unwrap();
    let second = vec![failures(&rig.scope, "no route to 10.0.0.2", 3, jobs[1], 120)];
    rig.store.add_run_stats(rig.node, vec![], second, vec![], at(200)).await.unwrap();
    // A report of an older failure changes only the count of its failure group.
    let late = vec![failures(&rig.scope, "no route to 10.0.0.3", 1, jobs[0], 70)];
    rig.store.add_run_stats(rig.node, vec![], late, vec![], at(300)).await.unwrap();
    let expected = FailureGroup {
        fingerprint: Fingerprint::of("no route to 1.1.1.1"),
        count: 6,
        first_at: at(100),
        last_at: at(125),
        error: "no route to 10.0.0.2".into(),
        newest: AttemptKey::regular(jobs[1].no, at(120)),
        job: Some(jobs[1].id),
        job_name: Some("b".into()),
    };
    let listed = list(&rig, &rig.scope, 10).await;
    assert_eq!(listed[0], expected);
    assert_eq!((listed[1].error.as_str(), listed[1].count), ("out of memory", 1));
}

pub async fn failures_of_a_deleted_job_stay_without_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("a").build()).await;
    let failed = vec![failures(&rig.scope, "oh", 1, job, 60)];
    rig.store.add_run_stats(rig.node, vec![], failed, vec![], at(100)).await.unwrap();
    rig.store.delete(&rig.scope, job.id, now(110)).await.unwrap();
    let listed = list(&rig, &rig.scope, 10).await;
    assert_eq!((listed.len(), listed[0].job, &listed[0].job_name), (1, None, &None));
}

pub async fn failures_are_listed_newest_first_page_by_page(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("a").build()).await;
    // The error texts differ in letters, because fingerprints ignore digits.
    let name = |n: u8| format!("error {}", char::from(b'a' + n).to_string().repeat(3));
    let all: Vec<FailureDelta> =
        (0..20).map(|n| failures(&rig.scope, &name(n), 1, job, i64::from(n / 4))).collect();
    let theirs = failures(&other, "error zzz", 1, job, 3);
    let batch = all.iter().cloned().chain([theirs]).collect();
    rig.store.add_run_stats(rig.node, vec![], batch, vec![], at(100)).await.unwrap();
    for limit in [1, 3, 20, 100] {
        let listed = list(&rig, &rig.scope, limit).await;
        assert_eq!(listed.len(), 20, "pages of {limit}");
        assert!(listed.is_sorted_by(|one, other| one.last_at >= other.last_at));
    }
    let page = PageRequest { offset: 18, ..PageRequest::first(9) };
    let page = rig.store.list_failures(&rig.scope, page).await.unwrap();
    assert_eq!((page.items.len(), page.total, page.next), (2, 20, None));
    assert_eq!(list(&rig, &other, 9).await[0].job, None);
}

pub async fn old_failures_are_pruned_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("a").build()).await;
    let batch = (0..5).map(|n| {
        let name = "x".repeat(n + 1);
        failures(&rig.scope, &name, 1, job, 10 * n as i64)
    });
    rig.store.add_run_stats(rig.node, vec![], batch.collect(), vec![], at(100)).await.unwrap();
    let before = at(35);
    assert_eq!(rig.store.prune_failures(before, 2).await.unwrap(), 2);
    assert_eq!(list(&rig, &rig.scope, 9).await.len(), 3);
    assert_eq!(rig.store.prune_failures(before, 2).await.unwrap(), 1);
    assert_eq!(rig.store.prune_failures(before, 2).await.unwrap(), 0);
    assert_eq!(list(&rig, &rig.scope, 9).await.len(), 2);
}
