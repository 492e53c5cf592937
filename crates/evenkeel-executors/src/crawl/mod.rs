//! The executor that crawls a web site. The crawler is in the crate `evenkeel-crawler`.

mod starts;

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::executor::{ExecutorDeclaration, StartFields};
use evenkeel_core::{JobNo, LogStream, Progress, TenantNo};
use evenkeel_crawler::{
    CONFIG_FIELDS, CrawlCounts, CrawlRequest, Crawler, CrawlerSettings, Ended, Ending, Listener,
    PageArchive,
};
use evenkeel_outbound::Outbound;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::template::Values;
use crate::{
    CHECKPOINT_BYTES_MAX, ConfigFault, Executor, Invocation, LiveReport, Report, interrupted,
    permit,
};

/// Crawls a web site and saves its pages. `docs/crawler.md` describes the configuration.
///
/// - An interrupted crawl saves a checkpoint, from which the next attempt of the run continues.
/// - The job's timeout limits how long a crawl with open requests may receive no byte from any
///   site. The pauses that the crawler makes between requests do not count towards this timeout.
/// - The attempt fails if no start page could be read. The attempt is not retried if robots.txt or
///   the address guard forbids the start page. The attempt fails partly if more than one page in
///   ten could not be fetched, or if pages did not fit into `max_store_mb`.
#[derive(Debug)]
pub struct CrawlExecutor<A> {
    crawler: Crawler,
    archives: A,
    permits: Semaphore,
}

pub trait PageArchives: Send + Sync + 'static {
    /// Returns the page archive of a job. The pages of the job together may use `bytes_max` bytes.
    fn for_job(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageArchive>;
}

pub static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    dedup_field: Some("url"),
    start: Some(StartFields { url: "url", list: "start_urls" }),
    ..ExecutorDeclaration::new("crawl", &CONFIG_FIELDS)
};

impl<A: PageArchives> CrawlExecutor<A> {
    /// Makes the executor. `outbound` should be a client that decompresses responses.
    pub fn new(outbound: Outbound, mut settings: CrawlerSettings, archives: A) -> Self {
        settings.checkpoint_bytes_max = settings.checkpoint_bytes_max.min(CHECKPOINT_BYTES_MAX);
        let permits = Semaphore::new(settings.crawls_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { crawler: Crawler::new(outbound, settings), archives, permits }
    }
}

#[async_trait]
impl<A: PageArchives> Executor for CrawlExecutor<A> {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, _: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        let config = starts::fill(config, &Values::example(payload))?;
        starts::refuse_credentials(&config)?;
        self.crawler.read_config(&config).map(drop)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let config = &invocation.definition.executor.config;
        let config = starts::fill(config, &Values::of(&invocation))
            .and_then(|config| self.crawler.read_config(&config));
        let config = match config {
            Ok(config) => config,
            Err(fault) => return Report::failed_for_good(fault),
        };
        // The checkpoint of an earlier attempt is not changed while this attempt waits for a
        // permit.
        let waiting = "waiting: the node runs as many crawls as it may";
        let _permit = match permit::acquire(&self.permits, &invocation, waiting).await {
            Ok(permit) => permit,
            Err(reason) => return Report::cancelled(reason),
        };
        let Invocation { key, id, tenant, checkpoint, cancel, mut lease, live, definition, .. } =
            invocation;
        let listener = Arc::new(LiveListener(live.clone()));
        let mut crawl = self.crawler.begin(CrawlRequest {
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
                listener.checkpoint(crawl.save_interrupted().await);
                early
            }
        };
        let CrawlCounts { crawled, indexed, .. } = *crawl.counts();
        Report {
            items_processed: i64::try_from(crawled).ok(),
            items_saved: i64::try_from(indexed).ok(),
            output: live.log_so_far().map(|log| log.text(None)),
            ..report
        }
    }
}

fn report(ending: Ending) -> Report {
    match ending {
        Ending::Completed => Report::completed(),
        Ending::PartlyFailed(error) => {
            Report { outcome: Outcome::PartlyFailed, ..Report::failed(error) }
        }
        Ending::Failed { error, hopeless } => {
            let retry = if hopeless { RetryHint::Never } else { RetryHint::ByPolicy };
            Report { retry, ..Report::failed(error) }
        }
    }
}

/// Passes the crawler's progress to the live report of the attempt.
struct LiveListener(LiveReport);

impl Listener for LiveListener {
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
