//! Tests job lists that are too long to be read as a whole.

use std::collections::BTreeSet;

use evenkeel_core::{JobId, JobSearch, Slot};
use evenkeel_store::{Job, JobFilter, JobSort, LIST_SCAN_MAX, PageRequest, SortBy};

use serde_json::json;

use crate::Opened;
use crate::fixtures::{JobBuilder, new_job, now};
use crate::paging::{ORDERS, all_pages, ids, index_all, model};
use crate::rig::Rig;

/// More jobs than the store scans for one list page.
const MANY: u32 = LIST_SCAN_MAX + 500;

async fn add_many(rig: &Rig, jobs: &[evenkeel_store::NewJob]) {
    for (n, batch) in jobs.chunks(2_100).enumerate() {
        rig.store.register(&rig.scope, batch.to_vec(), now(n as i64)).await.unwrap();
    }
}

fn many(build: impl Fn(u32, JobBuilder) -> JobBuilder) -> Vec<evenkeel_store::NewJob> {
    // The job names are mixed, so that sorting by name gives another order than sorting by
    // creation.
    let name = |n: u32| format!("job {}", n.wrapping_mul(7919) % MANY);
    (0..MANY).map(|n| build(n, new_job(&name(n))).build()).collect()
}

pub async fn a_long_list_is_walked_in_its_order(opened: Opened) {
    let (rig, model) = (Rig::new(opened).await, model().await);
    let executor = |n: u32| if n.is_multiple_of(3) { "http" } else { "noop" };
    let jobs = many(|n, job| {
        let job = job.executor(executor(n)).source(&format!("s-{}", n % 2));
        let job = job.target(i64::from(n % 3));
        let job = job.metadata(json!({"tier": n % 4, "tail": n > 9_000}));
        job.first_at(60 + i64::from(n.wrapping_mul(31) % 40_000))
    });
    add_many(&rig, &jobs).await;
    index_all(&rig).await;
    add_many(&model, &jobs).await;
    let search = |text| Some(JobSearch::parse(text).unwrap());
    let filters = [
        JobFilter::default(),
        JobFilter { executor: Some("http".into()), ..JobFilter::default() },
        JobFilter { name_prefix: Some("job".into()), ..JobFilter::default() },
        JobFilter { source_id: Some("s-1".into()), ..JobFilter::default() },
        JobFilter { metadata: vec![("tier".into(), "2".into())], ..JobFilter::default() },
        JobFilter { target: Some(2), ..JobFilter::default() },
        JobFilter {
            metadata: vec![("tail".into(), "true".into()), ("tier".into(), "1".into())],
            source_id: Some("s-1".into()),
            executor: Some("http".into()),
            ..JobFilter::default()
        },
        JobFilter {
            name_prefix: Some("job 7".into()),
            executor: Some("noop".into()),
            ..JobFilter::default()
        },
        // All jobs, many jobs and few jobs match.
        JobFilter { search: search("job"), ..JobFilter::default() },
        JobFilter {
            search: search("job s-1"),
            executor: Some("http".into()),
            ..JobFilter::default()
        },
        JobFilter { search: search("777 true"), ..JobFilter::default() },
    ];
    for filter in &filters {
        for (by, descending) in ORDERS.into_iter().flat_map(|by| [(by, false), (by, true)]) {
            let sort = JobSort { by, descending };
            let page = PageRequest::first(MANY);
            let expected = model.store.list_jobs(&model.scope, filter, sort, page).await.unwrap();
            let listed = all_pages(&rig, filter, sort, 900).await;
            assert!(ids(&listed) == ids(&expected.items), "{filter:?} {sort:?}");
        }
    }
    let far = |offset| PageRequest { offset, ..PageRequest::first(50) };
    for (filter, by, offset) in
        [(&filters[0], SortBy::Updated, 7_000), (&filters[3], SortBy::Created, 2_000)]
    {
        let (sort, page) = (JobSort { by, descending: true }, far(offset));
        let listed = rig.store.list_jobs(&rig.scope, filter, sort, page).await.unwrap();
        let expected = model.store.list_jobs(&model.scope, filter, sort, page).await.unwrap();
        assert_eq!(ids(&listed.items), ids(&expected.items));
        assert_eq!((listed.total, listed.total_is_estimate), (expected.total, false));
    }
}

pub async fn a_rare_job_in_a_long_list_is_found_page_by_page(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = many(|n, job| if n == MANY - 2 { job.executor("rare") } else { job });
    add_many(&rig, &jobs).await;
    let filter = JobFilter { executor: Some("rare".into()), ..JobFilter::default() };
    let first =
        rig.store.list_jobs(&rig.scope, &filter, JobSort::default(), PageRequest::first(9)).await;
    let first = first.unwrap();
    assert!(first.items.len() == 1 || (first.next.is_some() && first.total_is_estimate));
    let found = all_pages(&rig, &filter, JobSort::default(), 9).await;
    assert_eq!(ids(&found), [jobs[MANY as usize - 2].id]);
}

pub async fn a_crowded_slot_is_walked_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    // All jobs except twenty are in one time slot; ten jobs are in earlier slots and ten in later
    // slots.
    let jobs = many(|n, job| match n {
        0..10 => job.first_at(60 + i64::from(n)),
        10..20 => job.first_at(9_000 + i64::from(n)),
        _ => job.first_at(900 + i64::from(n % 900)),
    });
    add_many(&rig, &jobs).await;
    for descending in [false, true] {
        let sort = JobSort { by: SortBy::NextRun, descending };
        let listed = all_pages(&rig, &JobFilter::default(), sort, 700).await;
        let slots: Vec<Slot> =
            listed.iter().filter_map(|job: &Job| job.next_at).map(Slot::of).collect();
        let in_order =
            if descending { slots.is_sorted_by(|a, b| a >= b) } else { slots.is_sorted() };
        assert!(in_order, "{descending}");
        let seen: BTreeSet<JobId> = listed.iter().map(|job| job.id).collect();
        assert_eq!((seen.len(), listed.len()), (jobs.len(), jobs.len()));
    }
}
