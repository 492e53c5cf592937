//! Tests that lists show due jobs that no worker has claimed as pending, unless a blackout delays
//! them.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{Action, JobFilter, JobSort, NewJob, Now, PageRequest};
use serde_json::json;

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{JobBuilder, new_job, now};
use crate::paging::{ORDERS, all_pages, ids};
use crate::rig::{Known, Rig};

fn minutes(from: Timestamp, count: i64) -> Timestamp {
    let span = Span::from_secs(60 * count.unsigned_abs());
    if count < 0 { from.saturating_sub(span) } else { from.saturating_add(span) }
}

/// Returns the job with its next scheduled time at `next_at`.
fn due_at(job: JobBuilder, next_at: Timestamp) -> NewJob {
    NewJob { next_at: Some(next_at), ..job.build() }
}

/// Returns the job with a daily blackout between the times of day of `from` and `until`.
fn in_blackout(mut job: NewJob, from: Timestamp, until: Timestamp) -> NewJob {
    let time = |at: Timestamp| {
        let minute = at.as_micros().div_euclid(60_000_000).rem_euclid(24 * 60);
        format!("{:02}:{:02}:00", minute / 60, minute % 60)
    };
    let period = json!({"start": time(from), "end": time(until)});
    job.definition.blackout_periods = vec![serde_json::from_value(period).unwrap()];
    job
}

async fn in_state(rig: &Rig, status: JobStatus, sort: JobSort) -> Vec<JobId> {
    let filter = JobFilter { status: Some(status), ..JobFilter::default() };
    ids(&all_pages(rig, &filter, sort, 2).await)
}

pub async fn a_due_job_is_pending_unless_a_blackout_holds_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let today = rig.store.now().await.unwrap();
    let due = rig.add(due_at(new_job("due"), minutes(today, -10))).await;
    let long_due = rig.add(due_at(new_job("long due"), minutes(today, -5000))).await;
    let later = rig.add(due_at(new_job("later"), minutes(today, 10))).await;
    let held = due_at(new_job("held"), minutes(today, -10));
    let held = rig.add(in_blackout(held, minutes(today, -20), minutes(today, 20))).await;
    let opened = due_at(new_job("opened"), minutes(today, -180));
    let opened = rig.add(in_blackout(opened, minutes(today, -240), minutes(today, -60))).await;
    let mut named = due_at(new_job("names it"), minutes(today, -10));
    named.definition.payload = json!({"blackout_periods": [{"start": "00:00:00"}]});
    let named = rig.add(named).await;
    let paused = rig.add(due_at(new_job("paused"), minutes(today, -10))).await;
    rig.store.act(&rig.scope, paused.id, Action::Pause, now(0)).await.unwrap();
    let other = rig.tenant("other").await;
    rig.add_for(&other, due_at(new_job("due"), minutes(today, -10))).await;

    let pending = [due, long_due, opened, named].map(|known| known.id);
    let scheduled = [later, held].map(|known| known.id);
    for sort in ORDERS.map(|by| JobSort { by, descending: false }) {
        let mut found = in_state(&rig, JobStatus::Pending, sort).await;
        found.sort_unstable_by_key(|id| pending.iter().position(|known| known == id));
        assert_eq!(found, pending, "{sort:?}");
        let mut found = in_state(&rig, JobStatus::Scheduled, sort).await;
        found.sort_unstable_by_key(|id| scheduled.iter().position(|known| known == id));
        assert_eq!(found, scheduled, "{sort:?}");
    }
    let filter = JobFilter { status: Some(JobStatus::Pending), ..JobFilter::default() };
    let first = PageRequest::first(1);
    let page = rig.store.list_jobs(&rig.scope, &filter, JobSort::default(), first).await.unwrap();
    assert_eq!((page.total, page.total_is_estimate, page.items.len()), (4, false, 1));
    for (known, status) in [(due, JobStatus::Pending), (held, JobStatus::Scheduled)] {
        let (job, now) = rig.store.get_with_now(&rig.scope, known.id).await.unwrap().unwrap();
        assert_eq!(job.status(now), status);
    }
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.pending, counts.scheduled, counts.paused), (4, 2, 1));
    let all = rig.store.all_job_counts().await.unwrap();
    assert_eq!((all.pending, all.scheduled, all.paused, all.is_estimate), (5, 2, 1, false));
}

pub async fn a_due_job_that_was_fired_is_counted_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let today = rig.store.now().await.unwrap();
    let queued = rig.add(due_at(new_job("queued"), minutes(today, -10))).await;
    rig.store
        .trigger(&rig.scope, queued.id, crate::fixtures::plain_trigger(1), Now::At(today))
        .await
        .unwrap();
    let state = async |status| in_state(&rig, status, JobSort::default()).await;
    let Known { id, .. } = queued;
    assert_eq!(
        (state(JobStatus::Pending).await, state(JobStatus::Scheduled).await),
        (vec![id], vec![])
    );
    let counts = rig.store.job_counts(&rig.scope).await.unwrap();
    assert_eq!((counts.total, counts.pending, counts.scheduled), (1, 1, 0));
    let all = rig.store.all_job_counts().await.unwrap();
    assert_eq!((all.total, all.pending, all.scheduled), (1, 1, 0));
}
