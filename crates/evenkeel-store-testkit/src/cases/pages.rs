//! Web pages that crawls store.

use evenkeel_core::PageId;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_store::{PageFilter, PageQuota, StoredPage};
use serde_json::json;

use super::page_lists::{all_urls, list_all};
use crate::Opened;
use crate::commands::{Commands, gone};
use crate::fixtures::{at, new_job, now};
use crate::rig::{Known, Rig};

/// A quota that no case exceeds.
pub(super) const PLENTY: u64 = 1 << 40;

/// Returns the page quota of a job of the first tenant.
pub(super) fn shelf(rig: &Rig, job: Known, bytes_max: u64) -> PageQuota {
    PageQuota { tenant: rig.scope.tenant, job: job.no, bytes_max }
}

/// Returns a page of a job with only a title and a text.
pub(super) fn page(job: Known, url: &str, title: &str, text: &str) -> PageContent {
    let mut content_hash = [0; 32];
    // This simple hash is good enough to distinguish the pages of one test case.
    for (n, byte) in title.bytes().chain([0]).chain(text.bytes()).enumerate() {
        let sum: u8 = content_hash[n % 32];
        content_hash[n % 32] = sum.wrapping_mul(31).wrapping_add(byte).wrapping_add(1);
    }
    PageContent {
        id: PageId::of(job.no, url),
        url: url.into(),
        status: 200,
        content_type: "text/html".into(),
        etag: None,
        last_modified: None,
        content_hash,
        depth: 1,
        title: (!title.is_empty()).then(|| title.into()),
        text: text.into(),
        links: Vec::new(),
        metadata: json!({}),
        fields: json!({}),
    }
}

/// Saves pages of a job with a sufficient quota.
pub(super) async fn keep(rig: &Rig, job: Known, pages: Vec<PageContent>, secs: i64) -> Vec<Kept> {
    rig.store.save_pages(shelf(rig, job, PLENTY), pages, now(secs)).await.unwrap()
}

async fn keep_in(rig: &Rig, job: Known, room: u64, pages: &[&PageContent]) -> Vec<Kept> {
    let pages = pages.iter().map(|page| (*page).clone()).collect();
    rig.store.save_pages(shelf(rig, job, room), pages, now(1)).await.unwrap()
}

async fn get(rig: &Rig, id: PageId) -> Option<StoredPage> {
    rig.store.get_page(&rig.scope, id).await.unwrap()
}

async fn text_of(rig: &Rig, id: PageId) -> String {
    get(rig, id).await.unwrap().content.text
}

fn full_page(job: Known) -> PageContent {
    PageContent {
        status: 203,
        content_type: "application/xhtml+xml".into(),
        etag: Some("W/\"1\"".into()),
        last_modified: Some("Tue, 01 Jan 2030 00:00:00 GMT".into()),
        depth: 65_535,
        links: vec!["https://example.com/b?x=%20".into(), "https://example.com/ü".into()],
        metadata: json!({"description": "it's \"so\"", "n": [1, null, {"deep": true}]}),
        fields: json!({"price": ["1 €", "2 €"]}),
        ..page(job, "https://example.com/a", "A ‘title’", "A text,\nin lines.")
    }
}

pub async fn a_page_is_read_back_as_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let full = full_page(job);
    let bare = page(job, "https://example.com/bare", "", "");
    assert_eq!(keep(&rig, job, vec![full.clone(), bare.clone()], 5).await, [Kept::New; 2]);
    for content in [full, bare] {
        let expected = StoredPage {
            job: job.id,
            content: content.clone(),
            first_seen_at: at(5),
            changed_at: at(5),
            seen_at: at(5),
        };
        assert_eq!(get(&rig, content.id).await, Some(expected));
    }
}

pub async fn an_unknown_page_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(get(&rig, PageId::of(job.no, "u")).await, None);
}

pub async fn an_empty_batch_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(keep(&rig, job, Vec::new(), 1).await, []);
    assert_eq!(rig.store.known_pages(job.no, &[]).await.unwrap(), []);
    rig.store.see_pages(job.no, &[], now(1)).await.unwrap();
    assert_eq!(rig.store.prune_pages(job.no, &[]).await.unwrap(), 0);
    assert_eq!(rig.store.clear_pages(0).await.unwrap(), 0);
}

pub async fn results_distinguish_new_changed_and_unchanged_pages_in_order(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (a, b) = (page(job, "a", "", "one"), page(job, "b", "", "two"));
    assert_eq!(keep(&rig, job, vec![a.clone(), b.clone()], 1).await, [Kept::New; 2]);
    let changed = page(job, "b", "", "three");
    let batch = vec![changed.clone(), page(job, "c", "", "four"), a];
    assert_eq!(keep(&rig, job, batch, 2).await, [Kept::Changed, Kept::New, Kept::Unchanged]);
    assert_eq!(text_of(&rig, b.id).await, "three");
}

pub async fn a_changed_page_keeps_its_number_and_its_first_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let first = vec![page(job, "a", "", "one"), page(job, "b", "", "two")];
    keep(&rig, job, first, 1).await;
    let full = PageContent { id: PageId::of(job.no, "a"), url: "a".into(), ..full_page(job) };
    assert_eq!(keep(&rig, job, vec![full.clone()], 7).await, [Kept::Changed]);
    let found = get(&rig, full.id).await.unwrap();
    assert_eq!((found.first_seen_at, found.changed_at, found.seen_at), (at(1), at(7), at(7)));
    assert_eq!(found.content, full);
    assert_eq!(all_urls(&rig, PageFilter::default()).await, ["a", "b"]);
}

pub async fn an_unchanged_page_is_only_marked_as_seen(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let before = full_page(job);
    keep(&rig, job, vec![before.clone()], 1).await;
    // Only the content hash decides whether a page has changed.
    let again = PageContent {
        etag: Some("\"2\"".into()),
        last_modified: None,
        text: "other".into(),
        status: 200,
        ..before.clone()
    };
    assert_eq!(keep(&rig, job, vec![again], 9).await, [Kept::Unchanged]);
    let found = get(&rig, before.id).await.unwrap();
    assert_eq!((found.first_seen_at, found.changed_at, found.seen_at), (at(1), at(1), at(9)));
    let expected = PageContent { etag: Some("\"2\"".into()), last_modified: None, ..before };
    assert_eq!(found.content, expected);
}

pub async fn marking_a_page_as_seen_changes_only_its_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let (a, b) = (full_page(job), page(job, "b", "", "two"));
    keep(&rig, job, vec![a.clone(), b.clone()], 1).await;
    let unknown = PageId::of(job.no, "unknown");
    rig.store.see_pages(job.no, &[a.id, unknown], now(9)).await.unwrap();
    rig.store.see_pages(other.no, &[b.id], now(9)).await.unwrap();
    let found = get(&rig, a.id).await.unwrap();
    assert_eq!((found.changed_at, found.seen_at, found.content), (at(1), at(9), a));
    assert_eq!(get(&rig, b.id).await.unwrap().seen_at, at(1));
    assert_eq!(get(&rig, unknown).await, None);
}

pub async fn known_pages_have_all_that_a_crawl_needs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let (a, b) = (full_page(job), page(job, "b", "", "two"));
    let theirs = page(other, "c", "", "three");
    keep(&rig, job, vec![a.clone(), b.clone()], 1).await;
    keep(&rig, other, vec![theirs.clone()], 1).await;
    let asked = [b.id, PageId::of(job.no, "unknown"), theirs.id, a.id];
    let mut known = rig.store.known_pages(job.no, &asked).await.unwrap();
    known.sort_by_key(|page| page.id != a.id);
    let of = |page: PageContent| KnownPage {
        id: page.id,
        etag: page.etag,
        last_modified: page.last_modified,
        content_hash: page.content_hash,
        links: page.links,
    };
    assert_eq!(known, [of(a), of(b)]);
}

pub async fn a_page_that_does_not_fit_is_skipped(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (a, b, c) = (
        page(job, "a", "", &"x".repeat(400)),
        page(job, "b", "", &"y".repeat(400)),
        page(job, "c", "", "small"),
    );
    // The quota is one byte too small for the pages a and b, but page c fits after page a.
    let room = a.size() + b.size() - 1;
    let kept = keep_in(&rig, job, room, &[&a, &b, &c]).await;
    assert_eq!(kept, [Kept::New, Kept::NoRoom, Kept::New]);
    assert_eq!(get(&rig, b.id).await, None);
    assert_eq!(all_urls(&rig, PageFilter::default()).await, ["a", "c"]);
    assert_eq!(keep_in(&rig, job, room + 1 + c.size(), &[&b]).await, [Kept::New]);
}

pub async fn a_page_that_outgrows_the_quota_keeps_its_old_content(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let before = page(job, "a", "", &"x".repeat(400));
    assert_eq!(keep_in(&rig, job, before.size(), &[&before]).await, [Kept::New]);
    let larger = page(job, "a", "", &"y".repeat(401));
    assert_eq!(keep_in(&rig, job, before.size(), &[&larger]).await, [Kept::NoRoom]);
    assert_eq!(get(&rig, before.id).await.unwrap().content, before);
    // An unchanged page needs no additional quota.
    assert_eq!(keep_in(&rig, job, 0, &[&before]).await, [Kept::Unchanged]);
}

pub async fn a_full_job_may_change_a_page_that_does_not_grow(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (a, b) = (page(job, "a", "", &"x".repeat(400)), page(job, "b", "", &"y".repeat(400)));
    let room = a.size() + b.size();
    assert_eq!(keep_in(&rig, job, room, &[&a, &b]).await, [Kept::New; 2]);
    let same_size = page(job, "b", "", &"z".repeat(400));
    assert_eq!(keep_in(&rig, job, room, &[&same_size]).await, [Kept::Changed]);
    let smaller = page(job, "a", "", &"x".repeat(300));
    // A smaller page is accepted even if the quota is below the stored size.
    assert_eq!(keep_in(&rig, job, 10, &[&smaller]).await, [Kept::Changed]);
    assert_eq!(text_of(&rig, a.id).await, smaller.text);
    // Exactly the space that the smaller page has freed is available for another page.
    let empty = page(job, "c", "", "").size() as usize;
    let larger = page(job, "c", "", &"w".repeat(101 - empty));
    let fitting = page(job, "c", "", &"w".repeat(100 - empty));
    assert_eq!(keep_in(&rig, job, room, &[&larger]).await, [Kept::NoRoom]);
    assert_eq!(keep_in(&rig, job, room, &[&fitting]).await, [Kept::New]);
}

pub async fn each_job_has_its_own_quota(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (one, two) = (rig.add(new_job("1").build()).await, rig.add(new_job("2").build()).await);
    let (a, b) = (page(one, "a", "", "text"), page(two, "a", "", "text"));
    assert_ne!(a.id, b.id);
    assert_eq!(keep_in(&rig, one, a.size(), &[&a]).await, [Kept::New]);
    assert_eq!(keep_in(&rig, two, b.size(), &[&b]).await, [Kept::New]);
}

pub async fn a_deleted_page_frees_its_space(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let (a, b) = (page(job, "a", "", "some text"), page(job, "b", "", "more text"));
    let room = a.size() + b.size();
    keep_in(&rig, job, room, &[&a, &b]).await;
    assert_eq!(rig.store.prune_pages(other.no, &[a.id]).await.unwrap(), 0);
    let twice = [a.id, PageId::of(job.no, "unknown"), a.id];
    assert_eq!(rig.store.prune_pages(job.no, &twice).await.unwrap(), 1);
    assert_eq!(rig.store.prune_pages(job.no, &twice).await.unwrap(), 0);
    assert_eq!(get(&rig, a.id).await, None);
    assert_eq!(rig.store.known_pages(job.no, &[a.id]).await.unwrap(), []);
    assert_eq!(list_all(&rig, "some").await, Vec::<String>::new());
    assert_eq!(list_all(&rig, "more").await, ["b"]);
    // The quota is exactly the size of page a, so page a fits again and no other page does.
    let more = page(job, "c", "", "");
    assert_eq!(keep_in(&rig, job, room, &[&a, &more]).await, [Kept::New, Kept::NoRoom]);
}

pub async fn pages_of_a_deleted_job_are_hidden_and_cleared_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all((0..4).map(|n| new_job(&format!("{n}")).build()).collect()).await;
    for job in &jobs {
        let pages = (0..5).map(|n| page(*job, &format!("{n}"), "", "common text")).collect();
        keep(&rig, *job, pages, 1).await;
    }
    assert_eq!(rig.store.clear_pages(100).await.unwrap(), 0);
    for job in &jobs[1..] {
        let deleted = rig.store.delete(&rig.scope, job.id, now(2)).await.unwrap();
        assert_eq!(deleted, gone(Vec::new()));
    }
    let gone = PageId::of(jobs[1].no, "0");
    assert_eq!(get(&rig, gone).await, None);
    assert_eq!(all_urls(&rig, PageFilter::default()).await.len(), 5);
    assert_eq!(list_all(&rig, "common").await.len(), 5);
    let of_job = PageFilter { job: Some(jobs[1].id), ..PageFilter::default() };
    assert_eq!(all_urls(&rig, of_job).await, Vec::<String>::new());
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.push(rig.store.clear_pages(4).await.unwrap());
    }
    assert_eq!(steps, [4, 4, 4, 3, 0]);
    assert_eq!(rig.store.known_pages(jobs[1].no, &[gone]).await.unwrap(), []);
    assert_eq!(all_urls(&rig, PageFilter::default()).await.len(), 5);
}

pub async fn deleted_jobs_without_pages_do_not_hide_those_that_have_some(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all((0..12).map(|n| new_job(&format!("{n}")).build()).collect()).await;
    for (n, job) in jobs.iter().enumerate() {
        let kept = page(*job, "a", "", "text");
        keep(&rig, *job, vec![kept.clone()], 1).await;
        if n < 9 {
            assert_eq!(rig.store.prune_pages(job.no, &[kept.id]).await.unwrap(), 1);
        }
        rig.store.delete(&rig.scope, job.id, now(2)).await.unwrap();
    }
    // Only three of the deleted jobs still have a page.
    assert_eq!(rig.store.clear_pages(2).await.unwrap(), 2);
    assert_eq!(rig.store.clear_pages(2).await.unwrap(), 1);
    assert_eq!(rig.store.clear_pages(2).await.unwrap(), 0);
}

pub async fn a_deleted_or_foreign_job_stores_no_pages(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let (a, b) = (page(job, "a", "", "text"), page(job, "b", "", "text"));
    let theirs = PageQuota { tenant: other.tenant, ..shelf(&rig, job, PLENTY) };
    let kept = rig.store.save_pages(theirs, vec![a.clone()], now(1)).await.unwrap();
    assert_eq!(kept, [Kept::NoRoom]);
    keep(&rig, job, vec![a.clone()], 1).await;
    rig.store.delete(&rig.scope, job.id, now(2)).await.unwrap();
    assert_eq!(keep(&rig, job, vec![a, b], 3).await, [Kept::NoRoom; 2]);
    assert_eq!(rig.store.clear_pages(9).await.unwrap(), 1);
}

pub async fn unsupported_characters_become_spaces(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let dirty = "a\0b\u{2}c\u{3}d";
    let found = PageContent {
        etag: Some(dirty.into()),
        links: vec![dirty.into()],
        metadata: json!({ dirty: [dirty] }),
        fields: json!({ "x": dirty }),
        ..page(job, "u", dirty, dirty)
    };
    assert_eq!(keep(&rig, job, vec![found.clone()], 1).await, [Kept::New]);
    let expected = PageContent {
        etag: Some("a b c d".into()),
        title: Some("a b c d".into()),
        text: "a b c d".into(),
        links: vec!["a b c d".into()],
        metadata: json!({ "a b c d": ["a b c d"] }),
        fields: json!({ "x": "a b c d" }),
        ..found.clone()
    };
    assert_eq!(get(&rig, found.id).await.unwrap().content, expected);
    assert_eq!(list_all(&rig, "\"b c\"").await, ["u"]);
}

pub async fn concurrent_batches_do_not_exceed_the_quota(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let second = rig.second().await;
    let text = "t".repeat(100);
    let one = page(job, "00", "", &text).size();
    let batches = (0..10).map(|n| {
        let pages = (0..4).map(|m| page(job, &format!("{n}{m}"), "", &text)).collect();
        let store = if n % 2 == 0 { &rig.store } else { &second };
        store.save_pages(shelf(&rig, job, one * 15), pages, now(1))
    });
    let kept = futures::future::try_join_all(batches).await.unwrap().concat();
    assert_eq!(kept.iter().filter(|kept| **kept == Kept::New).count(), 15);
    assert_eq!(all_urls(&rig, PageFilter::default()).await.len(), 15);
}

pub async fn a_deletion_while_pages_are_stored_leaves_none(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all((0..8).map(|n| new_job(&format!("{n}")).build()).collect()).await;
    let second = rig.second().await;
    for job in jobs {
        let pages = (0..5).map(|n| page(job, &format!("{n}"), "", "text")).collect();
        let (kept, deleted, cleared) = futures::join!(
            rig.store.save_pages(shelf(&rig, job, PLENTY), pages, now(1)),
            second.delete(&rig.scope, job.id, now(1)),
            second.clear_pages(100),
        );
        deleted.unwrap();
        let new = kept.unwrap().iter().filter(|kept| **kept == Kept::New).count() as u64;
        let left = rig.store.clear_pages(100).await.unwrap();
        assert_eq!(cleared.unwrap() + left, new);
    }
    assert_eq!(all_urls(&rig, PageFilter::default()).await, Vec::<String>::new());
}

pub async fn pages_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let kept = full_page(job);
    keep(&rig, job, vec![kept.clone()], 1).await;
    let rig = rig.restart().await;
    assert_eq!(get(&rig, kept.id).await.unwrap().content, kept);
    assert_eq!(list_all(&rig, "lines").await, [kept.url]);
}
