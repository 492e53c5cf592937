//! Tests lists of web pages, which are sorted by page number.

use evenkeel_core::SearchQuery;
use evenkeel_core::page::Kept;
use evenkeel_store::{Page, PageFilter, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};

use super::pages::{keep, page};
use crate::Opened;
use crate::fixtures::{at, new_job, now};
use crate::rig::{Known, Rig};

pub(super) async fn list(
    rig: &Rig,
    filter: &PageFilter,
    page: PageRequest<PageNo>,
) -> Page<PageHit, PageNo> {
    rig.store.list_pages(&rig.scope, filter, page).await.unwrap()
}

fn urls(page: Page<PageHit, PageNo>) -> Vec<String> {
    page.items.into_iter().map(|hit| hit.url).collect()
}

/// Returns the URLs of all pages that pass a filter, in list order.
pub(super) async fn all_urls(rig: &Rig, filter: PageFilter) -> Vec<String> {
    let page = list(rig, &filter, PageRequest::first(10_000)).await;
    assert_eq!((page.total, page.total_is_estimate), (page.items.len() as u64, false));
    assert_eq!(page.next, None);
    urls(page)
}

pub(super) fn query(text: &str) -> PageFilter {
    let query = Some(SearchQuery::parse(text).unwrap());
    PageFilter { query, ..PageFilter::default() }
}

/// Returns the URLs of all pages that a search finds, best match first.
pub(super) async fn list_all(rig: &Rig, text: &str) -> Vec<String> {
    all_urls(rig, query(text)).await
}

fn starting(prefix: &str) -> PageFilter {
    PageFilter { url_prefix: Some(prefix.into()), ..PageFilter::default() }
}

async fn keep_urls(rig: &Rig, job: Known, urls: &[&str]) {
    let pages = urls.iter().map(|url| page(job, url, "", "common text")).collect();
    keep(rig, job, pages, 1).await;
}

pub async fn a_listed_page_is_as_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let before = page(job, "a", "Title", "before");
    keep(&rig, job, vec![before.clone()], 1).await;
    keep(&rig, job, vec![page(job, "a", "Title", "now")], 2).await;
    rig.store.see_pages(job.no, &[before.id], now(3)).await.unwrap();
    let expected = PageHit {
        id: before.id,
        job: job.id,
        url: "a".into(),
        title: Some("Title".into()),
        snippet: "now".into(),
        changed_at: at(2),
        seen_at: at(3),
    };
    assert_eq!(list(&rig, &PageFilter::default(), PageRequest::first(9)).await.items, [expected]);
}

pub async fn a_list_shows_the_beginning_of_each_text(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let long = format!("  It  begins\nhere {}", "and goes on ".repeat(1_000));
    keep(&rig, job, vec![page(job, "long", "", &long), page(job, "none", "", "")], 1).await;
    let items = list(&rig, &PageFilter::default(), PageRequest::first(9)).await.items;
    let shown = &items[0].snippet;
    assert!(shown.starts_with("It begins here and goes on"), "{shown}");
    assert!(shown.ends_with('…') && (100..=201).contains(&shown.chars().count()), "{shown}");
    assert!(shown.trim_end_matches('…').ends_with([' ', 'd', 's', 'n']), "cut in a word: {shown}");
    assert_eq!(items[1].snippet, "");
}

pub async fn lists_cover_all_pages_exactly_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (one, two) = (rig.add(new_job("1").build()).await, rig.add(new_job("2").build()).await);
    let mut expected = Vec::new();
    for n in 0..5 {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        keep_urls(&rig, one, &[&a]).await;
        keep_urls(&rig, two, &[&b]).await;
        expected.extend([a, b]);
    }
    for (filter, expected) in [
        (PageFilter::default(), expected.clone()),
        (PageFilter { job: Some(two.id), ..PageFilter::default() }, every_second(&expected)),
        (starting("b"), every_second(&expected)),
    ] {
        for limit in [1, 3, 5, 10, 11] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let request = PageRequest { limit, offset: 0, after };
                let page = list(&rig, &filter, request).await;
                assert!(page.items.len() <= limit as usize);
                assert_eq!(page.total, expected.len() as u64);
                after = page.next;
                seen.extend(urls(page));
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{filter:?} by {limit}");
        }
    }
}

fn every_second(all: &[String]) -> Vec<String> {
    all.iter().skip(1).step_by(2).cloned().collect()
}

pub async fn an_offset_skips_the_first_pages(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    keep_urls(&rig, job, &["0", "1", "2", "3", "4"]).await;
    let filter = PageFilter::default();
    let of = |offset, after| PageRequest { limit: 2, offset, after };
    assert_eq!(urls(list(&rig, &filter, of(3, None)).await), ["3", "4"]);
    assert_eq!(urls(list(&rig, &filter, of(5, None)).await), Vec::<String>::new());
    let second = list(&rig, &filter, of(0, None)).await.next;
    assert_eq!(urls(list(&rig, &filter, of(1, second)).await), ["3", "4"]);
}

pub async fn pages_can_be_listed_by_the_beginning_of_their_url(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    keep_urls(&rig, job, &["http://a/x", "http://a/%", "http://a/_", "http://a/[", "HTTP://a/x"])
        .await;
    keep_urls(&rig, other, &["http://a/x\\y", "http://b/ü"]).await;
    for (prefix, expected) in [
        ("http://a/x", &["http://a/x", "http://a/x\\y"][..]),
        ("http://a/%", &["http://a/%"]),
        ("http://a/_", &["http://a/_"]),
        ("http://a/[", &["http://a/["]),
        ("http://a/x\\", &["http://a/x\\y"]),
        ("http://b/ü", &["http://b/ü"]),
        ("http://a/x/", &[]),
        ("%", &[]),
    ] {
        assert_eq!(all_urls(&rig, starting(prefix)).await, expected, "{prefix}");
        let found = all_urls(&rig, PageFilter { query: query("text").query, ..starting(prefix) });
        assert_eq!(found.await, expected, "{prefix} with words");
    }
    let both = PageFilter { job: Some(other.id), ..starting("http://a/x") };
    assert_eq!(all_urls(&rig, both).await, ["http://a/x\\y"]);
}

pub async fn one_tenant_finds_no_page_of_another(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    keep_urls(&rig, job, &["http://a/1", "http://a/2"]).await;
    let words = query("common -rare");
    for filter in [
        PageFilter::default(),
        PageFilter { job: Some(job.id), ..PageFilter::default() },
        starting("http"),
        words.clone(),
        PageFilter { job: Some(job.id), ..words },
    ] {
        let theirs = rig.store.list_pages(&other, &filter, PageRequest::first(9)).await.unwrap();
        assert_eq!((theirs.items, theirs.total, theirs.next), (Vec::new(), 0, None), "{filter:?}");
        assert_eq!(all_urls(&rig, filter).await.len(), 2);
    }
    let id = page(job, "http://a/1", "", "").id;
    assert_eq!(rig.store.get_page(&other, id).await.unwrap(), None);
    assert!(rig.store.get_page(&rig.scope, id).await.unwrap().is_some());
}

pub async fn a_thousand_pages_are_stored_in_batches_and_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let all: Vec<_> = (0..1_000)
        .map(|n| {
            let text = format!("page number {n} {}", "of many words on it ".repeat(20));
            page(job, &format!("{n:04}"), &format!("Page {n}"), &text)
        })
        .collect();
    for batch in all.chunks(50) {
        assert_eq!(keep(&rig, job, batch.to_vec(), 1).await, vec![Kept::New; batch.len()]);
    }
    let expected: Vec<String> = (0..1_000).map(|n| format!("{n:04}")).collect();
    assert_eq!(all_urls(&rig, PageFilter::default()).await, expected);
    assert_eq!(list_all(&rig, "\"number 777\"").await, ["0777"]);
    let mut found = Vec::new();
    for offset in (0..1_000).step_by(SEARCH_LIMIT_MAX as usize) {
        let request = PageRequest { limit: SEARCH_LIMIT_MAX, offset, after: None };
        let page = list(&rig, &query("many words"), request).await;
        assert_eq!((page.total, page.total_is_estimate), (1_000, false));
        found.extend(urls(page));
    }
    found.sort_unstable();
    assert_eq!(found, expected);
    for batch in all.chunks(100) {
        assert_eq!(keep(&rig, job, batch.to_vec(), 2).await, vec![Kept::Unchanged; batch.len()]);
    }
}
