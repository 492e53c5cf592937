//! Crawls a local site and stores its pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use evenkeel_engine::StorePages;
use evenkeel_executors::{CrawlExecutor, CrawlerSettings};
use evenkeel_outbound::OutboundSettings;
use serde_json::json;

use super::counting::{CountingExecutor, Counts};
use super::report::CrawlFigures;
use super::{local_outbound, run_at_once, serve};
use crate::machine;
use crate::run::Bench;

const LINKS: usize = 20;

pub(super) async fn measure(bench: &Bench, pages: usize) -> anyhow::Result<CrawlFigures> {
    let page = move |Path(number): Path<usize>| async move {
        if number < pages { Ok(Html(html(number, pages))) } else { Err(StatusCode::NOT_FOUND) }
    };
    let (address, server) = serve(Router::new().route("/{number}", get(page))).await?;
    let outbound =
        local_outbound(OutboundSettings { decompress: true, ..OutboundSettings::default() })?;
    let library = StorePages::new(Arc::clone(&bench.target.store));
    let crawler = CrawlExecutor::new(outbound, CrawlerSettings::default(), library);
    let executor = CountingExecutor::new(crawler);
    let config = json!({
        "url": format!("http://{address}/0"), "depth": 100, "max_pages": pages, "delay_ms": 0,
        "sitemaps": false, "max_store_mb": 1000,
    });
    let took = run_at_once(bench, &executor, 1, config).await?;
    server.abort();
    let Counts { crawled, indexed, .. } = *executor.counts();
    anyhow::ensure!(indexed as usize == pages, "only {indexed} of {pages} pages were stored");
    Ok(CrawlFigures {
        pages: crawled,
        seconds: took.as_secs_f64(),
        pages_per_s: crawled as f64 / took.as_secs_f64(),
        rss_mb: machine::rss_mb(),
    })
}

/// Returns an HTML page of about 5 kB.
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
