//! What all crawls of a node share.

use std::sync::Arc;

use evenkeel_core::JobNo;
use evenkeel_outbound::Outbound;
use serde_json::Value;

use crate::config::{CrawlConfig, Fault};
use crate::crawl::Crawl;
use crate::hosts::Hosts;
use crate::archive::{Listener, PageArchive};
use crate::settings::CrawlerSettings;
use crate::silence::Silence;

/// What all crawls of a node share. Make one of it, and keep it.
#[derive(Debug)]
pub struct Crawler {
    outbound: Outbound,
    settings: Arc<CrawlerSettings>,
    hosts: Arc<Hosts>,
}

/// What one crawl is given.
pub struct Order {
    /// What to crawl.
    pub config: CrawlConfig,
    /// For which job; pages are named by it.
    pub job: JobNo,
    /// What its file is called, if it writes one: letters, digits and dashes.
    pub export_name: String,
    /// Where pages go.
    pub archive: Arc<dyn PageArchive>,
    /// Who hears of it.
    pub listener: Arc<dyn Listener>,
    /// What an earlier crawl left behind.
    pub checkpoint: Option<Vec<u8>>,
}

/// What the parts of a crawl share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) outbound: Outbound,
    pub(crate) settings: Arc<CrawlerSettings>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) config: CrawlConfig,
    pub(crate) silence: Silence,
}

impl Crawler {
    /// Makes one. The client should unpack answers.
    pub fn new(outbound: Outbound, settings: CrawlerSettings) -> Self {
        let hosts = Arc::new(Hosts::new(&settings));
        Self { outbound, settings: Arc::new(settings), hosts }
    }

    /// Reads a job's configuration.
    pub fn read_config(&self, config: &Value) -> Result<CrawlConfig, Fault> {
        CrawlConfig::read(config, &self.settings)
    }

    /// Prepares a crawl, from the beginning or from its checkpoint.
    pub fn begin(&self, order: Order) -> Crawl {
        let shared = Shared {
            outbound: self.outbound.clone(),
            settings: Arc::clone(&self.settings),
            hosts: Arc::clone(&self.hosts),
            config: order.config.clone(),
            silence: Silence::default(),
        };
        Crawl::new(Arc::new(shared), order)
    }
}
