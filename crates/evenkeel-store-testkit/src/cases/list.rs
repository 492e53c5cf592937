//! Lists of jobs.

use evenkeel_core::JobNo;
use evenkeel_store::{Job, JobCursor, JobFilter, JobSort, Page, PageRequest};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{new_job, now, unnamed_job};
use crate::rig::Rig;

async fn list(rig: &Rig, filter: JobFilter, page: PageRequest<JobCursor>) -> Page<Job, JobCursor> {
    rig.store.list_jobs(&rig.scope, &filter, JobSort::default(), page).await.unwrap()
}

async fn names(rig: &Rig, filter: JobFilter) -> Vec<String> {
    let page = list(rig, filter, PageRequest::first(100)).await;
    if !page.total_is_estimate {
        assert_eq!(page.total, page.items.len() as u64);
    }
    page.items.into_iter().filter_map(|job| job.about.name).collect()
}

fn starting(prefix: &str) -> JobFilter {
    JobFilter { name_prefix: Some(prefix.into()), ..JobFilter::default() }
}

pub async fn jobs_come_oldest_first_with_all_fields(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["c", "a", "b"].map(|name| new_job(name).build()).to_vec();
    let jobs = rig.add_all(jobs).await;
    rig.start(jobs[1], 60).await;
    let page = list(&rig, JobFilter::default(), PageRequest::first(9)).await;
    for (known, listed) in jobs.iter().zip(&page.items) {
        assert_eq!(&rig.job(*known).await, listed);
    }
    assert_eq!((page.items.len(), page.next), (3, None));
}

pub async fn pages_cover_all_jobs_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..10).map(|n| new_job(&format!("job {n}")).build()).collect();
    let expected: Vec<JobNo> = rig.add_all(jobs).await.iter().map(|job| job.no).collect();
    for limit in [1, 3, 5, 10, 11] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page =
                list(&rig, JobFilter::default(), PageRequest { limit, offset: 0, after }).await;
            assert!(page.items.len() <= limit as usize);
            assert!(page.total == 10 || page.total_is_estimate);
            seen.extend(page.items.iter().map(|job| job.no));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
}

pub async fn the_last_page_has_no_next(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all((0..4).map(|n| new_job(&format!("job {n}")).build()).collect()).await;
    assert_eq!(list(&rig, JobFilter::default(), PageRequest::first(4)).await.next, None);
    assert!(list(&rig, JobFilter::default(), PageRequest::first(3)).await.next.is_some());
}

pub async fn an_offset_skips_the_first_jobs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..6).map(|n| new_job(&format!("job {n}")).build()).collect();
    let all: Vec<JobNo> = rig.add_all(jobs).await.iter().map(|job| job.no).collect();
    let page = |offset, after: Option<JobNo>| {
        let after = after.map(|no| JobCursor { at: 0, no });
        PageRequest { limit: 2, offset, after }
    };
    for (request, expected) in [
        (page(4, None), &all[4..]),
        (page(6, None), &all[6..]),
        (page(1, Some(all[1])), &all[3..5]),
    ] {
        let items = list(&rig, JobFilter::default(), request).await.items;
        assert_eq!(items.iter().map(|job| job.no).collect::<Vec<_>>(), expected);
    }
}

pub async fn a_prefix_is_compared_exactly(opened: Opened) {
    let rig = Rig::new(opened).await;
    let all = ["crawl", "Crawl", "cr%wl", "cr_wl", "xcrawl", "crème", "[c]"];
    rig.add_all(all.map(|name| new_job(name).build()).to_vec()).await;
    rig.add(unnamed_job().build()).await;
    assert_eq!(names(&rig, starting("cr")).await, ["crawl", "cr%wl", "cr_wl", "crème"]);
    assert_eq!(names(&rig, starting("cr%")).await, ["cr%wl"]);
    assert_eq!(names(&rig, starting("cr_")).await, ["cr_wl"]);
    assert_eq!(names(&rig, starting("crè")).await, ["crème"]);
    assert_eq!(names(&rig, starting("[")).await, ["[c]"]);
    assert_eq!(names(&rig, starting("crawler")).await, Vec::<String>::new());
}

pub async fn jobs_of_a_source_can_be_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(vec![
        new_job("a").source("s-1").build(),
        new_job("b").source("s-2").build(),
        new_job("ab").source("s-1").build(),
        new_job("c").build(),
    ])
    .await;
    let of = |source: &str| JobFilter { source_id: Some(source.into()), ..JobFilter::default() };
    assert_eq!(names(&rig, of("s-1")).await, ["a", "ab"]);
    assert_eq!(
        names(&rig, JobFilter { source_id: Some("s-1".into()), ..starting("ab") }).await,
        ["ab"]
    );
    assert_eq!(names(&rig, of("s-")).await, Vec::<String>::new());
}

pub async fn jobs_of_a_target_can_be_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig
        .add_all(vec![
            new_job("a").target(1).build(),
            new_job("b").target(2).build(),
            new_job("ab").target(1).build(),
            new_job("c").build(),
            new_job("gone").target(1).build(),
        ])
        .await;
    rig.store.delete(&rig.scope, jobs[4].id, now(1)).await.unwrap();
    let of = |target| JobFilter { target: Some(target), ..JobFilter::default() };
    assert_eq!(names(&rig, of(1)).await, ["a", "ab"]);
    assert_eq!(names(&rig, JobFilter { target: Some(1), ..starting("ab") }).await, ["ab"]);
    assert_eq!(names(&rig, of(3)).await, Vec::<String>::new());
}

pub async fn a_filtered_list_is_paged_as_well(opened: Opened) {
    let rig = Rig::new(opened).await;
    let name = |n: i32| if n % 2 == 0 { format!("even {n}") } else { format!("odd {n}") };
    rig.add_all((0..10).map(|n| new_job(&name(n)).build()).collect()).await;
    let first = list(&rig, starting("even"), PageRequest::first(3)).await;
    let rest = PageRequest { after: first.next, ..PageRequest::first(3) };
    let second = list(&rig, starting("even"), rest).await;
    assert!(first.total == 5 || first.total_is_estimate);
    assert_eq!((first.items.len(), second.items.len(), second.next), (3, 2, None));
}

pub async fn a_deleted_job_leaves_no_gap_in_a_page(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all((0..4).map(|n| new_job(&format!("{n}")).build()).collect()).await;
    rig.store.delete(&rig.scope, jobs[1].id, now(1)).await.unwrap();
    let page = list(&rig, JobFilter::default(), PageRequest::first(3)).await;
    assert_eq!((page.items.len(), page.next), (3, None));
    assert!(page.total == 3 || page.total_is_estimate);
}
