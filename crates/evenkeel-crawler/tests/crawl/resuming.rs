use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_crawler::{CrawlerSettings, Ending};
use serde_json::json;

use crate::support::{Answer, Remains, Rig, Site, links, settings, until};

const PAGES: usize = 150;

/// Returns a page of a tree in which each page links to ten pages below it.
fn page(path: &str) -> Answer {
    let Ok(number) = path[1..].parse::<usize>() else { return Answer::status(404) };
    let below = (number * 10 + 1..=number * 10 + 10).filter(|n| *n < PAGES);
    links(&format!("page {number}"), below.map(|n| format!("/{n}")))
}

async fn tree() -> Site {
    Site::serve(|asked| page(&asked.path)).await
}

#[tokio::test]
async fn dropped_crawl_resumes_from_its_checkpoint_and_covers_all() {
    // The test site answers only the first `answered` requests, so each crawl is interrupted before
    // it is complete.
    let answered = Arc::new(AtomicUsize::new(0));
    let (limit, count) = (Arc::clone(&answered), AtomicUsize::new(0));
    let site = Site::serve(move |asked| {
        let answer = page(&asked.path);
        let is_late = answer.status == 200
            && count.fetch_add(1, Ordering::SeqCst) >= limit.load(Ordering::SeqCst);
        Answer { hold: if is_late { Duration::from_secs(600) } else { Duration::ZERO }, ..answer }
    })
    .await;
    let rig = Rig::new();
    let mut checkpoint = None;
    let mut lives = 0;
    let ended = loop {
        let mut crawl = rig.begin(&site.url("/0"), json!({}), checkpoint.take());
        let enough = if lives < 8 { 15 * (lives + 1) } else { usize::MAX };
        answered.store(enough, Ordering::SeqCst);
        tokio::select! {
            ended = crawl.run() => break ended,
            () = until("enough is asked", || site.asked().len() > enough) => {}
        }
        // Every second crawl ends as in a crash, so the next crawl gets only the last checkpoint
        // that the crashed crawl saved.
        checkpoint = if lives % 2 == 0 {
            Some(crawl.save_interrupted().await)
        } else {
            rig.listener.last_checkpoint()
        };
        assert!(checkpoint.is_some());
        lives += 1;
    };
    assert_eq!(lives, 8);
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!((ended.counts.visited, ended.counts.crawled), (PAGES as u64, PAGES as u64));
    assert_eq!(rig.archive.paths().len(), PAGES);
    // A page may be fetched twice if a crawl ended before a checkpoint recorded it as finished.
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    site.asked().into_iter().for_each(|path| *times.entry(path).or_default() += 1);
    assert_eq!(times.len(), PAGES);
    assert!(times.values().sum::<usize>() < 2 * PAGES, "{times:?}");
}

#[tokio::test]
async fn dropped_crawl_sends_no_more_requests() {
    let site = Site::serve(|asked| {
        let is_late = asked.path == "/0" && asked.before == 0;
        let hold = Duration::from_secs(if is_late { 600 } else { 0 });
        Answer { hold, ..page(&asked.path) }
    })
    .await;
    let rig = Rig::with(CrawlerSettings { connections_per_host: 1, ..settings() });
    let mut crawl = rig.begin(&site.url("/0"), json!({"sitemaps": false}), None);
    tokio::select! {
        ended = crawl.run() => panic!("{ended:?}"),
        () = until("the start is asked for", || !site.asked().is_empty()) => {}
    }
    let saved =
        tokio::time::timeout(Duration::from_secs(2), crawl.save_interrupted()).await.unwrap();
    assert_eq!(site.asked().len(), 1);
    // After the first crawl was dropped, the only connection to this host is free again.
    let mut other = rig.begin(&site.url("/0"), json!({"sitemaps": false}), Some(saved));
    let run = tokio::time::timeout(Duration::from_secs(60), other.run());
    assert_eq!(run.await.expect("it is not held up").counts.crawled, PAGES as u64);
    drop(crawl);
}

#[tokio::test]
async fn slow_archive_does_not_delay_the_end() {
    let site = tree().await;
    let rig = Rig::new();
    rig.archive.is_slow.store(true, Ordering::SeqCst);
    let mut crawl = rig.begin(&site.url("/0"), json!({}), None);
    tokio::select! {
        ended = crawl.run() => panic!("{ended:?}"),
        () = until("a page is to be kept", || rig.archive.keeps.load(Ordering::SeqCst) > 0) => {}
    }
    let saved =
        tokio::time::timeout(Duration::from_secs(20), crawl.save_interrupted()).await.unwrap();
    assert!(rig.archive.paths().is_empty());
    rig.archive.is_slow.store(false, Ordering::SeqCst);
    let mut crawl = rig.begin(&site.url("/0"), json!({}), Some(saved));
    assert_eq!(crawl.run().await.counts.crawled, PAGES as u64);
    assert_eq!(rig.archive.paths().len(), PAGES);
}

#[tokio::test]
async fn crawl_dropped_during_sitemaps_reads_them_later() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/sitemap.xml" if asked.before == 0 => {
            Answer { hold: Duration::from_secs(600), ..Answer::status(404) }
        }
        "/sitemap.xml" => Answer::html("<urlset><url><loc>/only-there</loc></url></urlset>"),
        "/robots.txt" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let mut crawl = rig.begin(&site.url("/"), json!({}), None);
    tokio::select! {
        ended = crawl.run() => panic!("{ended:?}"),
        () = async {
            until("the sitemap is asked for", || site.times_asked("/sitemap.xml") > 0).await;
            let told = || rig.listener.times_told.load(Ordering::SeqCst);
            let before = told();
            until("progress is told in the meantime", || told() > before + 1).await;
        } => {}
    }
    let saved =
        tokio::time::timeout(Duration::from_secs(20), crawl.save_interrupted()).await.unwrap();
    let mut crawl = rig.begin(&site.url("/"), json!({}), Some(saved));
    assert_eq!(crawl.run().await.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/only-there"]);
}

#[tokio::test]
async fn checkpoint_of_another_configuration_is_ignored() {
    let site = tree().await;
    let rig = Rig::new();
    rig.crawl(&site.url("/0"), json!({})).await;
    let checkpoint = rig.listener.last_checkpoint().unwrap();
    for data in [checkpoint, b"rubbish".to_vec()] {
        let rig = Rig::new();
        let mut crawl = rig.begin(&site.url("/0"), json!({"max_pages": 5}), Some(data));
        assert_eq!(crawl.run().await.counts.visited, 5);
        assert!(rig.listener.has("the checkpoint is not used"));
    }
}

#[tokio::test]
async fn pages_are_saved_before_a_checkpoint_omits_them() {
    let site = tree().await;
    let rig = Rig::new();
    *rig.listener.watched.lock().unwrap() = Some(Arc::clone(&rig.archive));
    rig.crawl(&site.url("/0"), json!({})).await;
    let remains = std::mem::take(&mut *rig.listener.remains.lock().unwrap());
    assert!(remains.len() > 50, "{}", remains.len());
    for Remains { checkpoint, pages } in remains.into_iter().step_by(13) {
        let rig = Rig::new();
        *rig.archive.pages.lock().unwrap() = pages;
        let mut crawl = rig.begin(&site.url("/0"), json!({}), Some(checkpoint));
        assert_eq!(crawl.run().await.counts.visited, PAGES as u64);
        assert_eq!(rig.archive.paths().len(), PAGES);
    }
}

#[tokio::test]
async fn failed_crawl_starts_from_the_beginning() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" if asked.before < 3 => Answer::status(500),
        "/" => links("home", ["/a"]),
        "/a" => links("a", ["/"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let failed = rig.crawl(&site.url("/"), json!({})).await;
    assert!(matches!(failed.ending, Ending::Failed { hopeless: false, .. }), "{failed:?}");
    let checkpoint = rig.listener.last_checkpoint();
    let mut crawl = rig.begin(&site.url("/"), json!({}), checkpoint);
    let ended = crawl.run().await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!((ended.counts.crawled, ended.counts.failed), (2, 0));
}

#[tokio::test]
async fn crawl_without_its_archive_stops_and_can_resume() {
    let site = tree().await;
    let rig = Rig::with(CrawlerSettings { checkpoint_every: Duration::ZERO, ..settings() });
    rig.archive.is_down.store(true, Ordering::SeqCst);
    let ended = rig.crawl(&site.url("/0"), json!({})).await;
    let Ending::Failed { error, hopeless: false } = ended.ending else { panic!("{ended:?}") };
    assert!(error.contains("the store is away"), "{error}");
    rig.archive.is_down.store(false, Ordering::SeqCst);
    let mut crawl = rig.begin(&site.url("/0"), json!({}), rig.listener.last_checkpoint());
    assert_eq!(crawl.run().await.counts.crawled, PAGES as u64);
}
