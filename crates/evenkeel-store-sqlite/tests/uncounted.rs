//! Jobs from before load was counted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use evenkeel_core::{JobId, JobNo, Shard, Slot, Span};
use evenkeel_store::{Action, JobChange, Moved, NewJob};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::balance::{
    all_placements, all_rhythms, assert_counted, batch_of, begin_one, move_to,
};
use evenkeel_store_testkit::fixtures::{at, new_job, now};
use evenkeel_store_testkit::orders::{Orders, done};
use evenkeel_store_testkit::rig::{Known, Rig};

/// The tables as they were.
const BEFORE: [&str; 8] = [
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_notes.sql"),
    include_str!("../migrations/0003_pages.sql"),
    include_str!("../migrations/0004_schedules.sql"),
    include_str!("../migrations/0005_control.sql"),
    include_str!("../migrations/0006_lists.sql"),
    include_str!("../migrations/0007_requests.sql"),
    include_str!("../migrations/0008_access.sql"),
];

/// A file from before, with the tenants `before` and `main`.
fn old_file(path: &Path) -> rusqlite::Connection {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch(
        "CREATE TABLE schema_migration (
             version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT",
    )
    .unwrap();
    for (version, script) in (1..).zip(BEFORE) {
        raw.execute_batch(script).unwrap();
        raw.execute("INSERT INTO schema_migration VALUES (?1, 0)", [version]).unwrap();
    }
    raw.execute_batch("INSERT INTO tenant (name, job_count) VALUES ('before', 0), ('main', 0)")
        .unwrap();
    raw
}

/// A job as it was registered then.
fn put(raw: &rusqlite::Connection, tenant: i32, job: &NewJob, active: bool) -> Known {
    let definition = serde_json::to_string(&job.definition).unwrap();
    put_text(raw, tenant, job, &definition, active)
}

fn put_text(
    raw: &rusqlite::Connection,
    tenant: i32,
    job: &NewJob,
    definition: &str,
    active: bool,
) -> Known {
    let JobId(id) = job.id;
    raw.execute(
        "INSERT INTO job (id, tenant_no, standing, name, about, definition, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 5, 5)",
        rusqlite::params![
            id.as_bytes(),
            tenant,
            !active,
            job.about.name,
            serde_json::to_string(&job.about).unwrap(),
            definition,
        ],
    )
    .unwrap();
    let no = JobNo(raw.last_insert_rowid());
    let next_at = job.next_at.filter(|_| active);
    raw.execute(
        "INSERT INTO job_state (job_no, tenant_no, shard, active, next_at, slot, average_us)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 7000000)",
        rusqlite::params![
            no.0,
            tenant,
            Shard::of(no).0,
            active,
            next_at.map(|at| at.as_micros()),
            next_at.map(|at| Slot::of(at).0),
        ],
    )
    .unwrap();
    Known { no, id: job.id }
}

async fn open(path: &Path) -> Rig {
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(path)).await.unwrap());
    Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await
}

async fn count_all(rig: &Rig) -> u32 {
    let mut found = 0;
    loop {
        match rig.store.count_uncounted(2).await.unwrap() {
            0 => return found,
            some => found += some,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_counted_a_few_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let raw = old_file(&path);
    for n in 0..5 {
        put(&raw, 2, &new_job(&format!("{n}")).every(3600).first_at(900 * n).build(), true);
    }
    let mut stated = new_job("stated").build();
    stated.definition.cost = Some(Span::from_secs(3));
    put(&raw, 2, &stated, true);
    put(&raw, 2, &new_job("paused").build(), false);
    put_text(&raw, 1, &new_job("not readable").build(), "not readable", true);
    drop(raw);
    let rig = open(&path).await;
    assert_eq!(all_rhythms(&*rig.store).await, []);
    let placements = all_placements(&*rig.store, &rig.scope).await;
    assert!(placements.iter().all(|placement| placement.rhythm.is_none()));
    assert_eq!(placements.len(), 6);
    assert_eq!(rig.store.count_uncounted(3).await.unwrap(), 3);
    assert_eq!(all_rhythms(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 3);
    assert_eq!(count_all(&rig).await, 5);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(all_rhythms(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 6);
    let seven = Span::from_secs(7);
    let placements = all_placements(&*rig.store, &rig.scope).await;
    assert_eq!(placements[0].cost, seven, "what its runs take");
    assert_eq!(count_all(&rig).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_them_before_is_counted_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let raw = old_file(&path);
    let job = |name| new_job(name).every(3600).first_at(3600).build();
    let names = ["paused", "changed", "deleted", "moved", "fired", "as it was"];
    let jobs = names.map(|name| put(&raw, 2, &job(name), true));
    let once = put(&raw, 2, &new_job("once").once_at(3600).build(), true);
    drop(raw);
    let rig = open(&path).await;
    let act = async |job: Known, action| {
        done(rig.store.act(&rig.scope, job.id, action, now(1)).await.unwrap());
    };
    act(jobs[0], Action::Pause).await;
    let changed = Some(new_job("").every(900).build().definition);
    let changed = JobChange { definition: changed, ..JobChange::default() };
    act(jobs[1], Action::Change(Box::new(changed))).await;
    act(jobs[2], Action::Delete).await;
    let rebalance = begin_one(&rig, 1, 1).await;
    let moves = vec![move_to(&rig.job(jobs[3]).await, at(5400))];
    let moved = rig.store.move_jobs(&rig.scope, batch_of(rebalance, 0, moves), now(1)).await;
    assert_eq!(moved.unwrap(), Moved::Done(vec![true]));
    rig.run_well(jobs[4], 3600).await;
    rig.run_well(once, 3600).await;
    // Those that were moved, fired, or left alone; a command counts what it changes.
    assert_eq!(count_all(&rig).await, 3);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(all_rhythms(&*rig.store).await.iter().map(|one| one.jobs).sum::<u64>(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_repairs_counts_of_jobs_that_have_no_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let rig = open(&path).await;
    let new = |name, secs| new_job(name).every(secs).build();
    let jobs = vec![new("hourly", 3600), new("stays", 3600), new("daily", 86_400)];
    let jobs = rig.add_all(jobs).await;
    let raw = rusqlite::Connection::open(&path).unwrap();
    let spoil = "UPDATE job_state SET next_at = NULL, slot = NULL WHERE job_no IN (?1, ?2)";
    assert_eq!(raw.execute(spoil, [jobs[0].no.0, jobs[2].no.0]).unwrap(), 2);
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 2);
    assert_counted(&*rig.store, &[rig.scope]).await;
    let left: Vec<u64> = all_rhythms(&*rig.store).await.iter().map(|one| one.jobs).collect();
    assert_eq!(left, [1]);
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 0);
}
