//! Tests which jobs and delayed attempts the scheduler loads ahead of time.

use evenkeel_core::{JobNo, Shard, Slot};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{at, definition_of, new_job, now};
use crate::rig::{Known, Rig};

async fn of_one_shard(rig: &Rig, count: usize) -> Vec<Known> {
    let shards = usize::from(Shard::COUNT);
    let jobs = (0..=(count - 1) * shards).map(|n| new_job(&format!("job {n}")).build()).collect();
    let all = rig.add_all(jobs).await;
    let shard = Shard::of(all[0].no);
    let same: Vec<Known> = all.into_iter().filter(|job| Shard::of(job.no) == shard).collect();
    assert_eq!(same.len(), count, "numbers are dense");
    same
}

async fn due(rig: &Rig, shard: Shard, until: i64, after: Option<JobNo>, limit: u32) -> Vec<JobNo> {
    let found = rig.store.load_due(shard, Slot::of(at(until)), after, limit).await.unwrap();
    found.iter().map(|job| job.no).collect()
}

pub async fn a_loaded_job_has_all_that_firing_needs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = new_job("crawl").build();
    let job = rig.add(new.clone()).await;
    let until = Slot::of(at(60));
    let loaded = rig.store.load_due(Shard::of(job.no), until, None, 9).await.unwrap();
    assert_eq!(loaded, [rig.due(job).await]);
    assert_eq!((loaded[0].no, loaded[0].tenant), (job.no, rig.scope.tenant));
    assert_eq!((loaded[0].next_at, loaded[0].generation), (Some(at(60)), 1));
    assert_eq!((loaded[0].live, loaded[0].head), (0, None));
    assert_eq!(definition_of(&loaded[0]), new.definition);
}

pub async fn equal_definitions_are_equal_texts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    assert_eq!(rig.due(a).await.definition, rig.due(b).await.definition);
}

pub async fn a_slot_is_loaded_whole_and_with_all_before_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let quarter = 15 * 60;
    for (first_at, found) in
        [(-90_000, true), (0, true), (quarter - 1, true), (quarter, false), (90_000, false)]
    {
        let job = rig.add(new_job(&format!("{first_at}")).first_at(first_at).build()).await;
        let here = due(&rig, Shard::of(job.no), 1, None, 9).await.contains(&job.no);
        assert_eq!(here, found, "{first_at}");
    }
}

pub async fn due_jobs_come_by_number_and_page_by_page(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = of_one_shard(&rig, 5).await;
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    let shard = Shard::of(numbers[0]);
    assert_eq!(due(&rig, shard, 60, None, 100).await, numbers);
    assert_eq!(due(&rig, shard, 60, None, 2).await, numbers[..2]);
    assert_eq!(due(&rig, shard, 60, Some(numbers[1]), 2).await, numbers[2..4]);
    assert_eq!(due(&rig, shard, 60, Some(numbers[3]), 2).await, numbers[4..]);
    assert_eq!(due(&rig, shard, 60, Some(numbers[4]), 2).await, []);
}

pub async fn other_shards_are_left_out(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..3).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    for job in &jobs {
        assert_eq!(due(&rig, Shard::of(job.no), 60, None, 9).await, [job.no]);
        let returned = rig.store.look_ahead(&[Shard::of(job.no)], at(60), 9, now(0)).await.unwrap();
        assert_eq!(returned.changed.iter().map(|job| job.no).collect::<Vec<_>>(), [job.no]);
    }
    rig.trigger(jobs[1], 0, 5).await;
    let others = [Shard::of(jobs[0].no), Shard::of(jobs[2].no)];
    let look = rig.store.look_ahead(&others, at(60), 9, now(6)).await.unwrap();
    assert_eq!((look.delayed, look.changed), (Vec::new(), Vec::new()));
}

pub async fn a_fired_job_is_found_in_the_slot_of_its_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").every(3_600).build()).await;
    rig.run_successfully(job, 60).await;
    let shard = Shard::of(job.no);
    assert_eq!(due(&rig, shard, 60, None, 9).await, []);
    assert_eq!(due(&rig, shard, 3_660, None, 9).await, [job.no]);
}

pub async fn given_jobs_are_loaded_as_they_are_now(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..4).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    rig.start(jobs[0], 60).await;
    rig.store.delete(&rig.scope, jobs[2].id, now(1)).await.unwrap();
    let asked = [jobs[2].no, jobs[0].no, jobs[1].no, JobNo(jobs[3].no.0 + 1_000)];
    let mut loaded = rig.store.load_jobs(&asked).await.unwrap();
    loaded.sort_by_key(|job| job.no);
    let numbers: Vec<JobNo> = loaded.iter().map(|job| job.no).collect();
    assert_eq!(numbers, [jobs[0].no, jobs[1].no]);
    assert_eq!((loaded[0].live, loaded[0].next_at), (1, Some(at(120))));
    assert!(loaded[0].head.is_some());
    assert_eq!(rig.store.load_jobs(&[]).await.unwrap(), []);
}

pub async fn changed_jobs_are_returned_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let look = rig.look(3, 10).await;
    assert_eq!((look.now, look.changed), (at(3), vec![rig.due(job).await]));
    assert_eq!(rig.look(4, 10).await.changed, []);
}

pub async fn changes_beyond_the_limit_are_returned_the_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..5).map(|n| new_job(&format!("job {n}")).build()).collect();
    let mut expected: Vec<JobNo> = rig.add_all(jobs).await.iter().map(|job| job.no).collect();
    let mut returned = Vec::new();
    for count in [2, 2, 1, 0] {
        let changed = rig.look(0, 2).await.changed;
        assert_eq!(changed.len(), count);
        returned.extend(changed.iter().map(|job| job.no));
    }
    returned.sort_unstable();
    expected.sort_unstable();
    assert_eq!(returned, expected);
}

pub async fn no_shards_have_no_changes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.trigger(job, 0, 1).await;
    let look = rig.store.look_ahead(&[], at(60), 9, now(2)).await.unwrap();
    assert_eq!((look.now, look.changed, look.delayed), (at(2), Vec::new(), Vec::new()));
    assert_eq!(rig.look(3, 9).await.changed.len(), 1);
}
