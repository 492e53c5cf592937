//! State shared by all crawls of a node.

use std::sync::Arc;

use evenkeel_core::JobNo;
use evenkeel_core::executor::ConfigFault;
use evenkeel_outbound::Outbound;
use serde_json::Value;

use crate::archive::{Listener, PageArchive};
use crate::config::CrawlConfig;
use crate::crawl::Crawl;
use crate::hosts::Hosts;
use crate::settings::CrawlerSettings;
use crate::silence::Silence;

/// All crawls of a node share one crawler, because limits per host apply to all crawls together.
#[derive(Debug)]
pub struct Crawler {
    outbound: Outbound,
    settings: Arc<CrawlerSettings>,
    hosts: Arc<Hosts>,
}

/// The input of one crawl.
pub struct CrawlRequest {
    pub config: CrawlConfig,
    /// The job that runs the crawl; the ids of its pages depend on the job.
    pub job: JobNo,
    /// The name of the export file, which may contain letters, digits and dashes.
    pub export_name: String,
    pub archive: Arc<dyn PageArchive>,
    pub listener: Arc<dyn Listener>,
    /// The checkpoint of an earlier attempt of the same run.
    pub checkpoint: Option<Vec<u8>>,
}

/// State shared by all tasks of one crawl.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) outbound: Outbound,
    pub(crate) settings: Arc<CrawlerSettings>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) config: CrawlConfig,
    pub(crate) silence: Silence,
}

impl Crawler {
    /// `outbound` should be a client that decompresses responses.
    pub fn new(outbound: Outbound, settings: CrawlerSettings) -> Self {
        let hosts = Arc::new(Hosts::new(&settings));
        Self { outbound, settings: Arc::new(settings), hosts }
    }

    pub fn read_config(&self, config: &Value) -> Result<CrawlConfig, ConfigFault> {
        CrawlConfig::read(config, &self.settings)
    }

    /// Prepares a crawl from the beginning, or from the checkpoint in `request`.
    pub fn begin(&self, request: CrawlRequest) -> Crawl {
        let shared = Shared {
            outbound: self.outbound.clone(),
            settings: Arc::clone(&self.settings),
            hosts: Arc::clone(&self.hosts),
            config: request.config.clone(),
            silence: Silence::default(),
        };
        Crawl::new(Arc::new(shared), request)
    }
}
