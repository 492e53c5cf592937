//! Crawls a local site and stores its pages.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use evenkeel_core::Definition;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_engine::StorePages;
use evenkeel_executors::{CrawlExecutor, CrawlerSettings};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::json;
use tokio::net::TcpListener;

use super::counting::CountingExecutor;
use super::report::CrawlFigures;
use super::{sleep_until, start, start_time, until_ended};
use crate::machine;
use crate::run::Bench;

const LINKS: usize = 20;

pub(super) async fn measure(bench: &mut Bench, pages: usize) -> anyhow::Result<CrawlFigures> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/0", listener.local_addr()?);
    let page = move |Path(number): Path<usize>| async move {
        if number < pages { Ok(Html(html(number, pages))) } else { Err(StatusCode::NOT_FOUND) }
    };
    let router = Router::new().route("/{number}", get(page));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let outbound = Outbound::new(OutboundSettings {
        allow_networks: vec!["127.0.0.0/8".parse()?],
        decompress: true,
        ..OutboundSettings::default()
    })?;
    let library = StorePages::new(Arc::clone(&bench.parts().0.store));
    let crawler = CrawlExecutor::new(outbound, CrawlerSettings::default(), library);
    let executor = CountingExecutor::new(Arc::new(crawler));
    let at = start_time(bench, 1).await?;
    let progress = bench.progress(1, "registering");
    let config = json!({
        "url": url, "depth": 100, "max_pages": pages, "delay_ms": 0, "sitemaps": false,
        "max_store_mb": 1000,
    });
    let like = |definition: Definition| Definition {
        executor: ExecutorSpec { kind: "crawl".into(), config: config.clone() },
        ..definition
    };
    bench.registrar(&progress).at_once(1, at, like).await?;
    progress.finish_and_clear();
    let engine = start(bench, &executor).await?;
    sleep_until(bench, at).await?;
    let began = bench.monotonic();
    until_ended(bench, &executor, 1).await?;
    let took = bench.monotonic() - began;
    engine.drain(Duration::from_secs(30)).await;
    server.abort();
    let crawled = executor.crawled();
    let indexed = executor.indexed();
    anyhow::ensure!(indexed as usize == pages, "only {indexed} of {pages} pages were stored");
    Ok(CrawlFigures {
        pages: crawled,
        seconds: took.as_secs_f64(),
        pages_per_s: crawled as f64 / took.as_secs_f64(),
        rss_mb: machine::rss_mb(),
    })
}

/// Returns a page of about 5 kB.
fn html(number: usize, pages: usize) -> String {
    let links: String = (1..=LINKS)
        .map(|step| (number * LINKS + step) % pages)
        .map(|to| format!("<li><a href=\"/{to}\">Page number {to}</a></li>\n"))
        .collect();
    let words = ["keel", "even", "slot", "rhythm", "deadline", "harbour", "tide", "ballast"];
    let text: String = (0..400)
        .map(|n| words[(number * 31 + n * 7 + n * n) % words.len()])
        .flat_map(|word| [word, " "])
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><head><title>Page {number}</title>\
         <meta name=\"description\" content=\"The page {number} of a site\"></head>\
         <body><h1>Page {number}</h1><p>{text}</p><ul>{links}</ul></body></html>"
    )
}
