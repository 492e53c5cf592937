//! A test site on this machine, and a page archive in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, Progress};
use evenkeel_crawler::{
    ArchiveError, Crawl, CrawlRequest, Crawler, CrawlerSettings, Ended, Listener, PageArchive,
};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::{Value, json};

pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    /// Number of earlier requests for this path.
    pub before: usize,
}

#[derive(Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// How long the response takes.
    pub hold: Duration,
}

impl Answer {
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", "text/html; charset=utf-8".into())];
        Self { status: 200, headers, body: body.into(), ..Self::default() }
    }

    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).with("location", to)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }
}

pub fn links<S: AsRef<str>>(text: &str, links: impl IntoIterator<Item = S>) -> Answer {
    let anchors: String =
        links.into_iter().map(|link| format!("<a href='{}'>x</a> ", link.as_ref())).collect();
    Answer::html(format!("<title>{text}</title><p>{text}</p><nav>{anchors}</nav>"))
}

/// A server whose responses a test defines.
pub struct Site {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    most: Arc<AtomicUsize>,
}

impl Site {
    pub async fn serve(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (now, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let handler = Arc::new(handler);
        let (log, peak) = (Arc::clone(&asked), Arc::clone(&most));
        let answer = move |request: Request| {
            let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let path = request.uri().path_and_query().unwrap().to_string();
                let before = {
                    let mut log = log.lock().unwrap();
                    log.push(path.clone());
                    log.iter().filter(|known| **known == path).count() - 1
                };
                let headers = request.headers().clone();
                let answer = handler(&Asked { path, headers, before });
                tokio::time::sleep(answer.hold).await;
                now.fetch_sub(1, Ordering::SeqCst);
                let mut response = Response::builder().status(answer.status);
                for (name, value) in answer.headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(answer.body)).unwrap()
            }
        };
        let router = Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, asked, most }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requested paths, except robots.txt and the default sitemap.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap().clone();
        asked.into_iter().filter(|p| p != "/robots.txt" && p != "/sitemap.xml").collect()
    }

    pub fn times_asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }

    pub fn forget_asked(&self) {
        self.asked.lock().unwrap().clear();
    }

    /// Returns the largest number of concurrent requests.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[derive(Default)]
pub struct MemoryArchive {
    pub pages: Mutex<BTreeMap<PageId, PageContent>>,
    pub seen: Mutex<BTreeSet<PageId>>,
    pub pages_max: Option<usize>,
    pub batches: Mutex<Vec<usize>>,
    /// True if every call of the archive fails.
    pub is_down: AtomicBool,
    /// True if saving pages never completes.
    pub is_slow: AtomicBool,
    /// Number of calls of `save` so far.
    pub keeps: AtomicUsize,
}

impl MemoryArchive {
    pub fn paths(&self) -> Vec<String> {
        let pages = self.pages.lock().unwrap();
        let path = |page: &PageContent| format!("/{}", page.url.splitn(4, '/').nth(3).unwrap());
        let mut paths: Vec<String> = pages.values().map(path).collect();
        paths.sort();
        paths
    }

    pub fn page(&self, path: &str) -> PageContent {
        let pages = self.pages.lock().unwrap();
        let found = pages.values().find(|page| page.url.ends_with(path));
        found.unwrap_or_else(|| panic!("{path} was not kept")).clone()
    }

    fn up(&self) -> Result<(), ArchiveError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(ArchiveError { message: "the store is away".into(), passes: false });
        }
        Ok(())
    }
}

#[async_trait]
impl PageArchive for MemoryArchive {
    async fn known(&self, ids: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError> {
        self.up()?;
        assert!(ids.len() <= 32);
        let pages = self.pages.lock().unwrap();
        let known = ids.iter().filter_map(|id| pages.get(id)).map(|page| KnownPage {
            id: page.id,
            etag: page.etag.clone(),
            last_modified: page.last_modified.clone(),
            content_hash: page.content_hash,
            links: page.links.clone(),
        });
        Ok(known.collect())
    }

    async fn save(&self, batch: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError> {
        self.up()?;
        assert!(!batch.is_empty() && batch.len() <= 32);
        self.keeps.fetch_add(1, Ordering::SeqCst);
        if self.is_slow.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        self.batches.lock().unwrap().push(batch.len());
        let mut pages = self.pages.lock().unwrap();
        let mut kept = Vec::new();
        for page in batch {
            let room = self.pages_max.is_none_or(|most| pages.len() < most);
            kept.push(match pages.get_mut(&page.id) {
                Some(known) if known.content_hash == page.content_hash => {
                    known.etag = page.etag;
                    known.last_modified = page.last_modified;
                    Kept::Unchanged
                }
                Some(known) => {
                    *known = page;
                    Kept::Changed
                }
                None if !room => Kept::NoRoom,
                None => {
                    pages.insert(page.id, page);
                    Kept::New
                }
            });
        }
        Ok(kept)
    }

    async fn mark_seen(&self, ids: &[PageId]) -> Result<(), ArchiveError> {
        self.up()?;
        self.seen.lock().unwrap().extend(ids);
        Ok(())
    }

    async fn delete(&self, ids: &[PageId]) -> Result<(), ArchiveError> {
        self.up()?;
        let mut pages = self.pages.lock().unwrap();
        ids.iter().for_each(|id| drop(pages.remove(id)));
        Ok(())
    }
}

/// Records everything that a crawl reports.
#[derive(Default)]
pub struct RecordingListener {
    pub log: Mutex<Vec<String>>,
    pub progress: Mutex<Progress>,
    /// Number of times that the crawl has reported its progress.
    pub times_told: AtomicUsize,
    pub checkpoints: Mutex<Vec<Vec<u8>>>,
    /// If set, the pages of this archive are copied to `remains` with each checkpoint.
    pub watched: Mutex<Option<Arc<MemoryArchive>>>,
    pub remains: Mutex<Vec<Remains>>,
}

/// The data that a crash right after a checkpoint would leave.
pub struct Remains {
    pub checkpoint: Vec<u8>,
    pub pages: BTreeMap<PageId, PageContent>,
}

impl RecordingListener {
    pub fn has(&self, text: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(text))
    }

    pub fn last_checkpoint(&self) -> Option<Vec<u8>> {
        self.checkpoints.lock().unwrap().last().cloned()
    }
}

impl Listener for RecordingListener {
    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().update(progress);
        self.times_told.fetch_add(1, Ordering::SeqCst);
    }

    fn log(&self, line: &str) {
        self.log.lock().unwrap().push(line.to_owned());
    }

    fn checkpoint(&self, data: Vec<u8>) {
        if let Some(archive) = &*self.watched.lock().unwrap() {
            let pages = archive.pages.lock().unwrap().clone();
            self.remains.lock().unwrap().push(Remains { checkpoint: data.clone(), pages });
        }
        self.checkpoints.lock().unwrap().push(data);
    }
}

pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("it did not happen: {what}"));
}

#[expect(clippy::disallowed_methods, reason = "how long a crawl took is what some tests are about")]
pub fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// A crawler with a test archive and a test listener.
pub struct Rig {
    pub crawler: Crawler,
    pub archive: Arc<MemoryArchive>,
    pub listener: Arc<RecordingListener>,
}

/// Returns crawler settings with short pauses, which a test may change.
pub fn settings() -> CrawlerSettings {
    let ms = Duration::from_millis;
    CrawlerSettings {
        error_pause: ms(5),
        error_pause_max: ms(1500),
        checkpoint_every: Duration::ZERO,
        ..CrawlerSettings::default()
    }
}

pub fn outbound(networks: &[&str]) -> Outbound {
    let allow_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    let settings = OutboundSettings { allow_networks, decompress: true, ..Default::default() };
    Outbound::new(settings).unwrap()
}

impl Rig {
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: CrawlerSettings) -> Self {
        let crawler = Crawler::new(outbound(&["127.0.0.1/32"]), settings);
        Self { crawler, archive: Arc::default(), listener: Arc::default() }
    }

    /// Prepares a crawl without delays; `extra` overrides fields of its configuration.
    pub fn begin(&self, url: &str, extra: Value, checkpoint: Option<Vec<u8>>) -> Crawl {
        let mut config = json!({"url": url, "delay_ms": 0, "depth": 10, "max_pages": 1000});
        for (key, value) in extra.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.crawler.begin(CrawlRequest {
            config: self.crawler.read_config(&config).unwrap(),
            job: JobNo(7),
            export_name: "run-1".into(),
            archive: Arc::clone(&self.archive) as Arc<dyn PageArchive>,
            listener: Arc::clone(&self.listener) as Arc<dyn Listener>,
            checkpoint,
        })
    }

    pub async fn crawl(&self, url: &str, extra: Value) -> Ended {
        let mut crawl = self.begin(url, extra, None);
        let run = tokio::time::timeout(Duration::from_secs(60), crawl.run());
        run.await.expect("a crawl ends")
    }
}
