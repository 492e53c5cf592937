use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, Rig, Site, links, now, settings};

const PAGES: usize = 2000;

/// For people: `cargo test --release -p evenkeel-crawler --test crawl -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn how_fast_is_a_site_of_2000_pages() {
    let site = Site::serve(|asked| {
        let Ok(number) = asked.path[1..].parse::<usize>() else { return Answer::status(404) };
        let below = (number * 10 + 1..=number * 10 + 10).filter(|n| *n < PAGES);
        let mut page = links(&format!("page {number}"), below.map(|n| format!("/{n}")));
        page.body.extend("<p>Some words of text that stand for a page. ".repeat(200).bytes());
        page
    })
    .await;
    let every = Duration::from_secs(2);
    let rig =
        Rig::with(evenkeel_crawler::CrawlerSettings { checkpoint_every: every, ..settings() });
    for round in ["new", "unchanged"] {
        let started = now();
        let config = json!({"max_pages": PAGES, "depth": 100});
        let tally = rig.crawl(&site.url("/0"), config).await.tally;
        let took = started.elapsed();
        assert_eq!(tally.crawled, PAGES as u64);
        let rate = PAGES as f64 / took.as_secs_f64();
        println!("{round}: {PAGES} pages in {took:?}, {rate:.0} pages/s");
    }
}
