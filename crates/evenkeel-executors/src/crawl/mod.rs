//! The executor that crawls a site.

mod starts;

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::executor::{ExecutorDeclaration, StartFields};
use evenkeel_core::{JobNo, LogStream, Progress, TenantNo};
use evenkeel_crawler::{
    CONFIG_FIELDS, CrawlConfig, Crawler, CrawlerSettings, Ended, Ending, Fault, Listener, Order,
    PageArchive, Tally,
};
use evenkeel_outbound::Outbound;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    CHECKPOINT_BYTES_MAX, CancelReason, ConfigFault, Executor, Invocation, LiveReport, Report,
    interrupted, tail,
};

/// Crawls a site and keeps its pages; what a job can say of it is in [`CrawlConfig`].
///
/// `url` and `start_urls` may hold templates. A crawl that is interrupted hands over a checkpoint,
/// from which the next attempt goes on. The job's timeout is the longest time without a byte from any
/// site while it waits for an answer; its own waits between requests do not count. It fails if no start could be read, for good if robots.txt
/// or the guard against inner addresses forbids that, and has partly failed if more than one page in
/// ten could not be got or pages found no room. Of more crawls than `crawls_max`, some wait.
#[derive(Debug)]
pub struct CrawlExecutor<L> {
    crawler: Crawler,
    library: L,
    places: Semaphore,
}

/// Finds the place where a job's pages are kept.
pub trait PageArchives: Send + Sync + 'static {
    /// The place for the pages of a job, which may take so many bytes together.
    fn for_job(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageArchive>;
}

impl PageArchives for Arc<dyn PageArchives> {
    fn for_job(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageArchive> {
        (**self).for_job(tenant, job, bytes_max)
    }
}

pub static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    dedup_field: Some("url"),
    start: Some(StartFields { url: "url", list: "start_urls" }),
    ..ExecutorDeclaration::new("crawl", &CONFIG_FIELDS)
};

impl<L: PageArchives> CrawlExecutor<L> {
    /// Makes the executor. The client should unpack answers.
    pub fn new(outbound: Outbound, mut settings: CrawlerSettings, library: L) -> Self {
        settings.checkpoint_bytes_max = settings.checkpoint_bytes_max.min(CHECKPOINT_BYTES_MAX);
        let places = Semaphore::new(settings.crawls_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { crawler: Crawler::new(outbound, settings), library, places }
    }

    /// Waits for one of the places, and says so.
    async fn place(&self, invocation: &Invocation) -> Result<SemaphorePermit<'_>, CancelReason> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let message = Some("waiting for a free place".to_owned());
        invocation.live.progress(Progress { message, ..Progress::default() });
        let mut lease = invocation.lease.clone();
        tokio::select! {
            biased;
            reason = interrupted(&invocation.cancel, &mut lease) => Err(reason),
            // Nobody closes the semaphore.
            place = self.places.acquire() => place.map_err(|_| CancelReason::ShuttingDown),
        }
    }

    fn read(&self, config: &Value) -> Result<CrawlConfig, ConfigFault> {
        let fault = |Fault { field, message }| ConfigFault::new(&field, message);
        self.crawler.read_config(config).map_err(fault)
    }
}

#[async_trait]
impl<L: PageArchives> Executor for CrawlExecutor<L> {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, _: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        let config = starts::rehearse(config, payload)?;
        starts::refuse_credentials(&config)?;
        self.read(&config).map(drop)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let config = starts::fill(&invocation).and_then(|config| self.read(&config));
        let config = match config {
            Ok(config) => config,
            Err(fault) => {
                return Report { again: RetryHint::Never, ..Report::failed(fault.to_string()) };
            }
        };
        // What an earlier attempt has handed over stays where it is until there is a place.
        let _place = match self.place(&invocation).await {
            Ok(place) => place,
            Err(reason) => return Report::cancelled(reason),
        };
        let Invocation { key, id, tenant, checkpoint, cancel, mut lease, live, definition, .. } =
            invocation;
        let listener = Arc::new(OnWire(live.clone()));
        let mut crawl = self.crawler.begin(Order {
            job: key.job_no,
            export_name: id.run_id().to_string(),
            archive: self.archives.for_job(tenant, key.job_no, config.store_bytes_max()),
            listener: Arc::clone(&listener) as Arc<dyn Listener>,
            checkpoint,
            config,
        });
        let silent = crawl.silent_for(definition.timeout.into());
        let ended = tokio::select! {
            ended = crawl.run() => Ok(ended),
            reason = interrupted(&cancel, &mut lease) => Err(Report::cancelled(reason)),
            () = silent => {
                let why = format!("no site answered for {} (timeout_sec)", definition.timeout);
                Err(Report::timed_out(why))
            }
        };
        let report = match ended {
            Ok(Ended { ending, .. }) => report(ending),
            Err(early) => {
                listener.checkpoint(crawl.wind_up().await);
                early
            }
        };
        let Tally { crawled, indexed, .. } = *crawl.tally();
        Report {
            items_crawled: i64::try_from(crawled).ok(),
            items_indexed: i64::try_from(indexed).ok(),
            output: live.log_so_far().map(|log| log.text(None)),
            ..report
        }
    }
}

fn report(ending: Ending) -> Report {
    match ending {
        Ending::Completed => Report::completed(),
        Ending::PartlyFailed(error) => Report {
            outcome: Outcome::PartlyFailed,
            error: Some(tail::clean(error)),
            ..Report::completed()
        },
        Ending::Failed { error, hopeless } => {
            let again = if hopeless { RetryHint::Never } else { RetryHint::ByPolicy };
            Report { again, ..Report::failed(error) }
        }
    }
}

/// Passes news on.
struct OnWire(LiveReport);

impl Listener for OnWire {
    fn progress(&self, progress: Progress) {
        self.0.progress(progress);
    }

    fn log(&self, line: &str) {
        self.0.log(LogStream::Stdout, format!("{line}\n").as_bytes());
    }

    fn checkpoint(&self, data: Vec<u8>) {
        if let Err(error) = self.0.checkpoint(data) {
            self.log(&error.to_string());
        }
    }
}
