use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use evenkeel_crawler::{CrawlerSettings, Ended, Ending};
use serde_json::{Value, json};

use crate::support::{Answer, Rig, Site, links, settings};

/// Starts a site of ten pages, with or without ETags.
async fn ten_pages(with_etags: bool) -> (Site, Arc<Mutex<Vec<String>>>) {
    let texts: Arc<Mutex<Vec<String>>> =
        Arc::new(Mutex::new((0..10).map(|n| format!("text {n}")).collect()));
    let (content, noise) = (Arc::clone(&texts), AtomicUsize::new(0));
    let site = Site::serve(move |asked| {
        let Ok(number) = asked.path[1..].parse::<usize>() else { return Answer::status(404) };
        let texts = content.lock().unwrap();
        let Some(text) = texts.get(number) else { return Answer::status(404) };
        let etag = format!("\"{text}\"");
        if with_etags && asked.headers.get("if-none-match").is_some_and(|have| *have == *etag) {
            return Answer::status(304);
        }
        let noise = noise.fetch_add(1, Ordering::SeqCst);
        let mut page = links(text, (0..texts.len()).map(|n| format!("/{n}")));
        page.body.extend(format!("<script>served = {noise}</script>").bytes());
        if with_etags { page.with("etag", etag) } else { page }
    })
    .await;
    (site, texts)
}

#[tokio::test]
async fn second_crawl_of_an_unchanged_site_indexes_nothing() {
    for with_etags in [true, false] {
        let (site, _) = ten_pages(with_etags).await;
        let rig = Rig::new();
        let first = rig.crawl(&site.url("/0"), json!({})).await.counts;
        assert_eq!((first.crawled, first.indexed), (10, 10));
        let second = rig.crawl(&site.url("/0"), json!({})).await.counts;
        assert_eq!((second.crawled, second.indexed), (10, 0), "{with_etags}");
        let seen = rig.archive.seen.lock().unwrap().len();
        assert_eq!(seen, if with_etags { 10 } else { 0 });
        assert_eq!(rig.archive.pages.lock().unwrap().len(), 10);
    }
}

#[tokio::test]
async fn changed_page_is_saved_and_a_removed_page_deleted() {
    for with_etags in [true, false] {
        let (site, texts) = ten_pages(with_etags).await;
        let rig = Rig::new();
        rig.crawl(&site.url("/0"), json!({})).await;
        {
            let mut texts = texts.lock().unwrap();
            texts[3] = "news".into();
            texts.pop();
        }
        let ended = rig.crawl(&site.url("/0"), json!({})).await;
        assert_eq!(ended.ending, Ending::Completed);
        assert_eq!(ended.counts.indexed, 1);
        assert_eq!(rig.archive.page("/3").text, "news");
        // With ETags, the crawl follows the stored links of page 0, gets a 404 for page 9 and
        // deletes page 9. Without ETags, no page links to page 9, so the archive keeps it.
        let paths = rig.archive.paths();
        assert_eq!(paths.len(), if with_etags { 9 } else { 10 }, "{paths:?}");
    }
}

#[tokio::test]
async fn pages_are_read_again_when_the_fields_change() {
    let (site, _) = ten_pages(true).await;
    let rig = Rig::new();
    rig.crawl(&site.url("/0"), json!({})).await;
    for (fields, indexed) in [(json!({"t": "p"}), 10), (json!({"t": "p"}), 0), (json!({}), 10)] {
        let ended = rig.crawl(&site.url("/0"), json!({"fields": fields})).await;
        assert_eq!(ended.counts.indexed, indexed, "{fields}");
    }
    rig.crawl(&site.url("/0"), json!({"fields": {"t": "p"}})).await;
    assert_eq!(rig.archive.page("/3").fields, json!({"t": "text 3"}));
}

#[tokio::test]
async fn missing_page_is_deleted_when_it_is_requested() {
    let there = Arc::new(AtomicUsize::new(1));
    let switch = Arc::clone(&there);
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/" => links("home", ["/a", "/b", "/c"]),
        "/a" | "/b" | "/c" if switch.load(Ordering::SeqCst) == 1 => links(&asked.path, ["/"]),
        "/a" => Answer::status(410),
        "/b" => Answer::redirect("/d"),
        "/c" => Answer::html("<meta name=robots content=noindex>"),
        "/d" => links("d", ["/"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/a", "/b", "/c"]);
    there.store(0, Ordering::SeqCst);
    let counts = rig.crawl(&site.url("/"), json!({})).await.counts;
    assert_eq!(rig.archive.paths(), ["/", "/d"]);
    assert_eq!((counts.gone, counts.indexed), (1, 1));
}

#[tokio::test]
async fn new_links_of_an_unchanged_page_are_followed_even_after_a_304() {
    let version = Arc::new(AtomicUsize::new(1));
    let switch = Arc::clone(&version);
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/" => {
            let version = switch.load(Ordering::SeqCst);
            let etag = format!("\"{version}\"");
            if asked.headers.get("if-none-match").is_some_and(|have| *have == *etag) {
                return Answer::status(304);
            }
            links("home", (0..version).map(|n| format!("/{n}"))).with("etag", etag)
        }
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        // The first request for `/1` fails, and the retry succeeds.
        "/1" if asked.before == 0 => Answer::status(503),
        path => links(path, ["/"]),
    })
    .await;
    let settings = CrawlerSettings { error_pause: Default::default(), ..settings() };
    let rig = Rig::with(settings);
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/0"]);
    version.store(2, Ordering::SeqCst);
    assert_eq!(rig.crawl(&site.url("/"), json!({"max_pages": 1})).await.counts.indexed, 0);
    // The archive still has the old links of the page `/`, but the third crawl must not rely on
    // these links.
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/0", "/1"]);
}

#[tokio::test]
async fn copies_are_counted_and_saved_once_in_any_order() {
    for order in [["/longer", "/b"], ["/b", "/longer"]] {
        let site = Site::serve(move |asked| match asked.path.as_str() {
            "/" => links("home", order),
            "/b" | "/longer" => Answer::html("<title>same</title>the same text"),
            _ => Answer::status(404),
        })
        .await;
        let rig = Rig::new();
        let first = rig.crawl(&site.url("/"), json!({"connections": 1})).await.counts;
        assert_eq!(rig.archive.paths(), ["/", "/b"], "{order:?}");
        assert_eq!((first.crawled, first.indexed, first.copies), (3, 2, 1));
        let second = rig.crawl(&site.url("/"), json!({})).await.counts;
        assert_eq!((second.crawled, second.indexed), (3, 0));
    }
}

#[tokio::test]
async fn copy_saved_in_an_earlier_batch_is_replaced() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => {
            let others = (0..40).map(|n| format!("/other/{n}"));
            links("home", std::iter::once("/much-longer".into()).chain(others).chain(["/b".into()]))
        }
        "/b" | "/much-longer" => Answer::html("<title>same</title>the same text"),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let counts = rig.crawl(&site.url("/"), json!({"connections": 1})).await.counts;
    assert!(rig.listener.has("/much-longer new"));
    assert!(!rig.archive.paths().contains(&"/much-longer".to_string()));
    assert_eq!(counts.indexed as usize, rig.archive.paths().len());
}

#[tokio::test]
async fn page_that_names_its_original_is_not_saved() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/a?print=1", "/foreign", "/x", "/y"]),
        "/a?print=1" => Answer::html("<link rel=canonical href='/a'>print"),
        "/a" => Answer::html("<link rel=canonical href='/a'>original"),
        "/foreign" => Answer::html("<link rel=canonical href='http://example.org/'>foreign"),
        // Two pages name each other as canonical page, and one of them is kept.
        "/x" => Answer::html("<link rel=canonical href='/y'>x"),
        "/y" => Answer::html("<link rel=canonical href='/x'>y"),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let counts = rig.crawl(&site.url("/"), json!({"connections": 1})).await.counts;
    assert_eq!(rig.archive.paths(), ["/", "/a", "/foreign", "/y"]);
    assert_eq!(counts.copies, 2);
}

#[tokio::test]
async fn pages_are_saved_in_bounded_batches_and_reported() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", (0..100).map(|n| format!("/{n}"))),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => Answer::html(format!(
            "<title>{path}</title><meta name=description content=about><p class=n>{path}</p>{}",
            "word ".repeat(5000)
        ))
        .with("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    })
    .await;
    let slow = CrawlerSettings { checkpoint_every: std::time::Duration::MAX, ..settings() };
    let rig = Rig::with(slow);
    let ended = rig.crawl(&site.url("/"), json!({"fields": {"n": ".n"}})).await;
    assert_eq!(ended.counts.indexed, 101);
    let page = rig.archive.page("/42");
    assert_eq!((page.status, page.content_type.as_str(), page.depth), (200, "text/html", 1));
    assert_eq!(page.fields, json!({"n": "/42"}));
    assert_eq!(page.metadata, json!({"description": "about"}));
    assert_eq!(page.last_modified.as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    // Each page has 25 KB, so the limit in bytes determines how many pages are saved together.
    let batches = rig.archive.batches.lock().unwrap();
    assert!(batches.iter().all(|count| *count <= 11), "{batches:?}");
    let progress = rig.listener.progress.lock().unwrap().clone();
    assert_eq!((progress.done, progress.total), (Some(101), Some(101)));
    assert_eq!((progress.items_processed, progress.items_saved), (Some(101), Some(101)));
    assert_eq!(progress.message.as_deref(), Some("101 pages done, 0 queued"));
}

#[tokio::test]
async fn crawl_continues_when_the_page_limit_is_reached() {
    let (site, _) = ten_pages(false).await;
    let mut rig = Rig::new();
    let archive = crate::support::MemoryArchive { pages_max: Some(4), ..Default::default() };
    rig.archive = Arc::new(archive);
    let Ended { ending, counts } = rig.crawl(&site.url("/0"), json!({})).await;
    assert_eq!((counts.crawled, counts.indexed, counts.no_room), (10, 4, 6));
    let Ending::PartlyFailed(text) = ending else { panic!("{ending:?}") };
    assert!(text.contains("6 pages") && text.contains("max_store_mb"), "{text}");
    assert!(rig.listener.has("max_store_mb is reached"));
}

#[tokio::test]
async fn new_and_changed_pages_are_exported() {
    let (site, texts) = ten_pages(false).await;
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::with(CrawlerSettings { export_dir: Some(dir.path().to_owned()), ..settings() });
    let read = || {
        let text = std::fs::read_to_string(dir.path().join("run-1.ndjson")).unwrap();
        let parse = |line| serde_json::from_str::<Value>(line).unwrap();
        text.lines().map(parse).collect::<Vec<_>>()
    };
    rig.crawl(&site.url("/0"), json!({"ndjson": true})).await;
    assert_eq!(read().len(), 10);
    texts.lock().unwrap()[3] = "news".into();
    rig.crawl(&site.url("/0"), json!({"ndjson": true})).await;
    // Repeating the same run appends to its export file; the last line of a page counts.
    let lines = read();
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[10]["text"], "news");
}
