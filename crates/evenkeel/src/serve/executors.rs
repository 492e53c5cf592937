//! The executors of this node.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use evenkeel_commands::ExecutorCheck;
use evenkeel_core::TenantNo;
use evenkeel_core::chance::Chance;
use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_engine::{Clock, StorePages};
use evenkeel_executors::{
    CATALOG, CrawlExecutor, CrawlerSettings, HttpExecutor, HttpSettings, Identities, NoExecutor,
    NoopExecutor, Registry, ShellExecutor, SigningKeys, SupervisorCommand, WallClock,
};
use evenkeel_outbound::{Identity, Outbound, OutboundSettings};
use evenkeel_store::Store;
use serde_json::Value;

use super::{credentials, shell};
use crate::config::{IdentityFiles, ServeConfig};
use crate::failure::Because as _;
use crate::{Result, SUPERVISE};

/// The dependencies of executors.
pub struct Sources<'a> {
    pub config: &'a ServeConfig,
    pub store: &'a Arc<dyn Store>,
    pub clock: &'a Arc<dyn Clock>,
    pub chance: &'a Arc<dyn Chance>,
    pub shell: Option<ShellExecutor>,
    pub public_url: Option<String>,
}

impl Sources<'_> {
    /// Creates the executors that the configuration allows. Add new executors in this function.
    pub async fn registry(mut self) -> Result<Registry> {
        let shell = self.shell.take();
        let registry = Registry::new()
            .with(Arc::new(NoExecutor))
            .with(Arc::new(NoopExecutor))
            .with(Arc::new(self.http().await?))
            .with(Arc::new(self.crawl()?));
        Ok(match shell {
            Some(shell) => {
                let shell = shell::for_tenants(shell, &self.config.shell, &**self.store).await?;
                registry.with(Arc::new(shell))
            }
            None => registry,
        })
    }

    async fn http(&self) -> Result<HttpExecutor> {
        let Self { config, store, chance, .. } = self;
        let outbound = outbound(OutboundSettings::default(), config)?;
        let secrets = &config.executors.signing_secrets;
        let secrets = credentials::signing_secrets(secrets, &***store, &***chance).await?;
        let clock = Arc::clone(self.clock);
        Ok(HttpExecutor::new(HttpSettings {
            signing: signing_keys(&secrets),
            attempt_tokens: Some(credentials::attempt_tokens(&***store, &***chance).await?),
            public_url: Arc::new(
                self.public_url.clone().map_or_else(OnceLock::new, OnceLock::from),
            ),
            identities: self.identities().await?,
            allow_unverified_tls: config.executors.allow_unverified_tls,
            clock: WallClock::new(move || clock.wall()),
            ..HttpSettings::new(outbound)
        }))
    }

    fn crawl(&self) -> Result<CrawlExecutor<StorePages>> {
        let unpacking = OutboundSettings { decompress: true, ..OutboundSettings::default() };
        let outbound = outbound(unpacking, self.config)?;
        let config = &self.config.executors;
        let settings = CrawlerSettings {
            crawls_max: config.crawl_workers,
            may_ignore_robots: config.crawl_ignore_robots,
            delay_min: Duration::from_millis(config.crawl_min_delay_ms),
            export_dir: config.crawl_export_dir.clone(),
            ..CrawlerSettings::default()
        };
        Ok(CrawlExecutor::new(outbound, settings, StorePages::new(Arc::clone(self.store))))
    }

    async fn identities(&self) -> Result<Identities> {
        let mut identities = Identities::new();
        for files in &self.config.executors.identities {
            let tenant = self.store.tenant(&files.tenant).await.because("the store failed")?;
            identities.insert((tenant, files.name.clone()), read(files)?);
        }
        Ok(identities)
    }
}

fn outbound(settings: OutboundSettings, config: &ServeConfig) -> Result<Outbound> {
    let allow_networks = config.allow_networks.clone();
    Outbound::new(OutboundSettings { allow_networks, ..settings })
        .because("can't set up outgoing calls")
}

/// Derives the keys that sign HTTP calls from one or two secrets, of which the newer comes first.
pub fn signing_keys(secrets: &[String]) -> Option<SigningKeys> {
    let (first, others) = secrets.split_first()?;
    let keys = SigningKeys::new(first.as_bytes());
    Some(match others.first() {
        Some(former) => keys.with_previous(former.as_bytes()),
        None => keys,
    })
}

fn read(files: &IdentityFiles) -> Result<Identity> {
    let mut pem = Vec::new();
    for path in [&files.cert, &files.key] {
        pem.extend(std::fs::read(path).because(format!("{} can't be read", path.display()))?);
        pem.push(b'\n');
    }
    let what = format!("the client certificate {} can't be used", files.name);
    Identity::from_pem(&pem).because(what)
}

/// Returns the command that starts the supervisor of a shell program. The command runs the same
/// version of the program as this process, even if an update has replaced the program file.
pub fn supervisor_command() -> SupervisorCommand {
    SupervisorCommand { program: "/proc/self/exe".into(), args: vec![SUPERVISE.into()] }
}

/// Validates the executor configuration of a job when the job is created or changed.
pub struct Checks(pub Arc<Registry>);

impl ExecutorCheck for Checks {
    fn check(
        &self,
        tenant: TenantNo,
        kind: &str,
        config: &Value,
        payload: &Value,
    ) -> Result<(), (String, String)> {
        let unknown = || ("executor_type".into(), "is not known here".into());
        let executor = self.0.get(kind).ok_or_else(unknown)?;
        let checked = executor.check(tenant, config, payload);
        checked.map_err(|fault| (fault.field, fault.message))
    }

    fn kinds(&self) -> Vec<String> {
        self.0.kinds().map(String::from).collect()
    }

    fn catalog(&self) -> ExecutorCatalog {
        CATALOG
    }
}
