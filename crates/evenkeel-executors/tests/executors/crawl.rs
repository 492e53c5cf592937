use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, Span, TenantNo};
use evenkeel_executors::{
    ArchiveError, Cancel, CancelReason, CrawlExecutor, CrawlerSettings, Executor, Lease,
    LiveReport, PageArchive, PageArchives, cancellation,
};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::{eventually, invocation, with};

#[derive(Clone, Default)]
struct Pages(Arc<Mutex<BTreeMap<String, PageContent>>>);

impl Pages {
    fn urls(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }
}

impl PageArchives for Pages {
    fn for_job(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageArchive> {
        assert_eq!((tenant, job, bytes_max), (TenantNo(1), JobNo(7), 50 * 1024 * 1024));
        Arc::new(self.clone())
    }
}

#[async_trait]
impl PageArchive for Pages {
    async fn known(&self, _: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError> {
        Ok(Vec::new())
    }

    async fn save(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError> {
        let mut kept = self.0.lock().unwrap();
        Ok(pages
            .into_iter()
            .map(|page| match kept.insert(page.url.clone(), page) {
                Some(_) => Kept::Unchanged,
                None => Kept::New,
            })
            .collect())
    }

    async fn mark_seen(&self, _: &[PageId]) -> Result<(), ArchiveError> {
        Ok(())
    }

    async fn delete(&self, _: &[PageId]) -> Result<(), ArchiveError> {
        Ok(())
    }
}

fn executor(pages: &Pages, networks: &[&str]) -> CrawlExecutor<Pages> {
    with_settings(pages, networks, CrawlerSettings::default())
}

fn with_settings(
    pages: &Pages,
    networks: &[&str],
    crawler: CrawlerSettings,
) -> CrawlExecutor<Pages> {
    let allow_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    let settings =
        OutboundSettings { allow_networks, decompress: true, ..OutboundSettings::default() };
    let outbound = Outbound::new(settings).unwrap();
    CrawlExecutor::new(outbound, crawler, pages.clone())
}

/// Returns an executor that may call this machine.
fn local(pages: &Pages) -> CrawlExecutor<Pages> {
    executor(pages, &["127.0.0.1/32"])
}

/// Starts a site with five pages in a row, and a sixth page that responds only once `gate` is true;
/// robots.txt forbids `/closed`.
async fn site(gate: &Arc<AtomicBool>) -> SocketAddr {
    let gate = Arc::clone(gate);
    let page = |number: u32| {
        get(move || async move { Html(format!("<p>{number}<a href=/{}>next</a>", number + 1)) })
    };
    let robots = get(|| async {
        let kind = [(header::CONTENT_TYPE, "text/plain")];
        (kind, "user-agent: *\ndisallow: /closed").into_response()
    });
    let slow = get(move || async move {
        while !gate.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Html("<p>the last one")
    });
    let mut router = Router::new().route("/robots.txt", robots).route("/5", slow);
    for number in 0..5 {
        router = router.route(&format!("/{number}"), page(number));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn config(address: SocketAddr, path: &str, depth: u32) -> Value {
    json!({"url": format!("http://{address}{path}"), "depth": depth, "delay_ms": 0})
}

#[tokio::test]
async fn crawl_reports_its_counts() {
    let (address, pages) = (site(&Arc::default()).await, Pages::default());
    let invocation = invocation("crawl", config(address, "/0", 2));
    let live = invocation.live.clone();
    let report = local(&pages).run(invocation).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    assert_eq!((report.items_processed, report.items_saved), (Some(3), Some(3)));
    assert!(report.output.unwrap().contains("/2 new\n"));
    assert_eq!(pages.urls().len(), 3);
    let progress = live.progress_so_far();
    assert_eq!(progress.message.as_deref(), Some("3 pages done, 0 queued"));
}

/// The slow page of this site never responds. Without the job's timeout, the page would time out
/// after 20 s and the crawl would fail partly.
#[tokio::test]
async fn silent_crawl_times_out_and_can_resume() {
    let gate = Arc::default();
    let (address, pages) = (site(&gate).await, Pages::default());
    let hasty = |body| with(body, |definition| definition.timeout = Span::from_secs(1));
    let first = hasty(invocation("crawl", config(address, "/0", 9)));
    let live = first.live.clone();
    let report = local(&pages).run(first).await;
    assert_eq!(report.outcome, Outcome::TimedOut, "{report:?}");
    assert_eq!(report.error.as_deref(), Some("no site answered for 1s (timeout_sec)"));
    assert_eq!((report.items_processed, pages.urls().len()), (Some(5), 5));
    gate.store(true, Ordering::SeqCst);
    let mut second = hasty(invocation("crawl", config(address, "/0", 9)));
    second.checkpoint = live.take_unsaved_checkpoint();
    let report = local(&pages).run(second).await;
    assert_eq!(
        (report.outcome, report.items_processed),
        (Outcome::Completed, Some(6)),
        "{report:?}"
    );
}

#[tokio::test]
async fn start_url_may_come_from_the_payload() {
    let (address, pages) = (site(&Arc::default()).await, Pages::default());
    let config = json!({"url": format!("http://{address}/{{{{payload.page}}}}"), "depth": 0});
    let executor = local(&pages);
    let fault = executor.check(TenantNo(1), &config, &Value::Null).unwrap_err();
    assert_eq!(fault.field, "executor_config.url");
    executor.check(TenantNo(1), &config, &json!({"page": 3})).unwrap();
    let invocation = with(invocation("crawl", config), |d| d.payload = json!({"page": 3}));
    assert_eq!(executor.run(invocation).await.outcome, Outcome::Completed);
    assert_eq!(pages.urls(), [format!("http://{address}/3")]);
}

#[tokio::test]
async fn bad_crawl_configuration_is_refused_with_its_field() {
    let executor = local(&Pages::default());
    let field =
        |config: Value| executor.check(TenantNo(1), &config, &Value::Null).unwrap_err().field;
    assert_eq!(field(json!({})), "executor_config.url");
    assert_eq!(field(json!({"url": "http://a/", "depth": "x"})), "executor_config.depth");
    assert_eq!(field(json!({"start_urls": ["{{x}}"]})), "executor_config.start_urls.0");
    assert_eq!(executor.declaration().kind, "crawl");
}

#[tokio::test]
async fn final_failures_of_a_crawl_are_not_retried() {
    let (address, pages) = (site(&Arc::default()).await, Pages::default());
    let closed = invocation("crawl", config(address, "/closed", 1));
    let report = local(&pages).run(closed).await;
    assert_eq!((report.outcome, report.retry), (Outcome::Failed, RetryHint::Never));
    assert!(report.error.unwrap().contains("robots.txt does not allow it"));
    let inner = invocation("crawl", config(address, "/0", 1));
    let report = executor(&pages, &[]).run(inner).await;
    assert_eq!((report.outcome, report.retry), (Outcome::Failed, RetryHint::Never));
    assert!(report.error.unwrap().contains("not public"));
    let missing = invocation("crawl", config(address, "/none", 1));
    let report = local(&pages).run(missing).await;
    assert_eq!((report.outcome, report.retry), (Outcome::Failed, RetryHint::ByPolicy));
}

#[tokio::test]
async fn interrupted_crawl_is_resumed() {
    for (reason, outcome) in [
        (CancelReason::ShuttingDown, Outcome::Cancelled),
        (CancelReason::TooLong, Outcome::TimedOut),
    ] {
        let (gate, pages) = (Arc::default(), Pages::default());
        let address = site(&gate).await;
        let (handle, cancel) = cancellation();
        let mut first = invocation("crawl", config(address, "/0", 9));
        first.cancel = cancel;
        let (live, executor) = (first.live.clone(), local(&pages));
        let crawl = tokio::spawn(async move { executor.run(first).await });
        eventually("all but the slow page are kept", || pages.urls().len() == 5).await;
        handle.cancel(reason);
        let report = tokio::time::timeout(Duration::from_secs(10), crawl).await.unwrap().unwrap();
        assert_eq!(report.outcome, outcome);
        assert_eq!((report.items_processed, report.items_saved), (Some(5), Some(5)));
        gate.store(true, Ordering::SeqCst);
        let mut second = invocation("crawl", config(address, "/0", 9));
        second.checkpoint = live.take_unsaved_checkpoint();
        let report = local(&pages).run(second).await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
        assert_eq!((report.items_processed, report.items_saved), (Some(6), Some(6)));
        let output = report.output.unwrap();
        assert!(output.starts_with("resuming: 5 pages done, 1 queued\n"), "{output}");
    }
}

#[tokio::test]
async fn crawl_ends_with_its_lease() {
    let (address, pages) = (site(&Arc::default()).await, Pages::default());
    let mut first = invocation("crawl", config(address, "/5", 1));
    #[expect(clippy::disallowed_methods, reason = "lease ends are Instants of this very clock")]
    let end = Instant::now() + Duration::from_millis(100);
    let (_renewal, until) = watch::channel(end);
    first.lease = Lease::new(until);
    let run = local(&pages);
    let report = tokio::time::timeout(Duration::from_secs(10), run.run(first)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn more_crawls_than_allowed_wait_and_can_be_cancelled() {
    let (gate, pages) = (Arc::default(), Pages::default());
    let address = site(&gate).await;
    let settings = CrawlerSettings { crawls_max: 1, ..CrawlerSettings::default() };
    let executor = Arc::new(with_settings(&pages, &["127.0.0.1/32"], settings));
    let begin = |cancel: Option<Cancel>, path: &str| {
        let mut invocation = invocation("crawl", config(address, path, 0));
        invocation.cancel = cancel.unwrap_or(invocation.cancel);
        let (executor, live) = (Arc::clone(&executor), invocation.live.clone());
        (live, tokio::spawn(async move { executor.run(invocation).await }))
    };
    let says = |live: &LiveReport, text: &str| {
        live.progress_so_far().message.is_some_and(|message| message.contains(text))
    };
    let (live, first) = begin(None, "/5");
    eventually("the first crawl has begun", || says(&live, "1 queued")).await;
    let (handle, cancel) = cancellation();
    let (live, second) = begin(Some(cancel), "/0");
    eventually("the second waits", || {
        says(&live, "waiting: the node runs as many crawls as it may")
    })
    .await;
    let (third_live, third) = begin(None, "/1");
    eventually("the third waits", || {
        says(&third_live, "waiting: the node runs as many crawls as it may")
    })
    .await;
    handle.cancel(CancelReason::Requested);
    let report = tokio::time::timeout(Duration::from_secs(10), second).await.unwrap().unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(pages.urls().is_empty());
    gate.store(true, Ordering::SeqCst);
    for crawl in [first, third] {
        let report = tokio::time::timeout(Duration::from_secs(20), crawl).await.unwrap().unwrap();
        assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    }
    assert_eq!(pages.urls(), [format!("http://{address}/1"), format!("http://{address}/5")]);
}
