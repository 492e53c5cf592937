//! Starts the parts of the server in order, and stops them on a signal.

mod access;
mod banner;
pub mod credentials;
pub mod data_dir;
mod demo;
pub mod executors;
mod http;
mod logging;
mod metrics;
mod oidc;
mod open;
mod readiness;
mod secret_keys;
mod shell;
mod shutdown;
mod starting;
pub mod store;
pub mod tls;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use evenkeel_access::{Access, Upkeep};
use evenkeel_api::{AppParts, Streams};
use evenkeel_commands::{Balance, Balancing, Callbacks, Feed, Jobs, Pages, Runs};
use evenkeel_core::chance::Chance;
use evenkeel_core::limit::Limits;
use evenkeel_core::secret::SecretSource;
use evenkeel_core::{NodeNo, RunIds};
use evenkeel_engine::{
    Clock, Engine, EngineParts, Metered, RandomChance, Settings, SystemClock, WriteHealth,
};
use evenkeel_executors::Registry;
use evenkeel_secrets::Secrets;
use evenkeel_store::Store;
use evenkeel_web::{Hosts, OneTimeLinks, WebParts};
use metrics_exporter_prometheus::PrometheusHandle;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

use crate::client::LocalServer;
use crate::config::{LimitsConfig, ServeConfig};
use crate::failure::Because as _;
use crate::{Failure, Result};
use access::{Announce, Reload, Trusted};
use credentials::LocalToken;
use data_dir::DataDir;
use executors::{Checks, Sources};
use http::HEADER_TIME;
use open::SignIn;
use readiness::NodeReadiness;
use shutdown::Stop;
use starting::Progress;
use tls::Tls;

/// Time limit for closing the store.
const CLOSING: Duration = Duration::from_secs(10);

/// Limit of open files that the server requests, for concurrent calls and client connections.
const OPEN_FILES: u64 = 65_536;

struct Shared {
    config: ServeConfig,
    dir: Arc<DataDir>,
    store: Arc<dyn Store>,
    /// Records whether the store accepts writes.
    health: Arc<WriteHealth>,
    registry: Arc<Registry>,
    secrets: Arc<Secrets>,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    run_ids: RunIds,
}

/// Serves until a stop signal.
pub async fn serve(config: ServeConfig) -> Result {
    let config = demo::adapted(config);
    logging::start(&config.log)?;
    raise_open_files();
    // From here on, a stop signal starts a graceful shutdown.
    let mut stop = Stop::listen()?;
    let rendering = metrics::install()?;
    let dir = Arc::new(DataDir::lock(&config.data_dir, &config.store)?);
    let is_first = !dir.has("node-id");
    let tls = config.access.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let listener = bind(config.listen).await?;
    let url = url_of(listener.local_addr()?, tls.is_some());

    let (stopping, is_stopping) = watch::channel(false);
    // While the server waits for its database, it answers requests with status 503 and the reason.
    let progress = Arc::new(Progress::default());
    let (answers, current) = watch::channel(starting::router(Arc::clone(&progress)));
    let answering = http::serve(HEADER_TIME, listener, current, tls.clone(), is_stopping.clone());
    let answering = tokio::spawn(answering);

    let starting = async {
        let shared = prepare(config, Arc::clone(&dir), &url, &progress).await?;
        let engine = start_engine(&shared).await?;
        Ok::<_, Failure>((shared, engine))
    };
    // A stop signal also ends the process while it waits for its database.
    let (shared, engine) = tokio::select! {
        started = starting => started?,
        code = stop.wait() => std::process::exit(code),
    };
    let trusted = access::trusted(&shared.config.access, &*shared.store, &*shared.chance).await?;
    let provider = shared.config.access.provider.clone().zip(trusted.external.clone());
    let (router, sign_in) = router(&shared, &engine, rendering, is_stopping, trusted).await?;
    drop(answers.send_replace(router));
    let announce = announcer(&dir, &url, tls.clone());
    Reload { tls, provider, announce: Arc::clone(&announce) }.listen()?;
    announce()?;
    dir.write(data_dir::STORE, &format!("{}\n", shared.config.store))?;
    banner::show(&shared.config, &url, is_first);
    if let Some(sign_in) = sign_in {
        sign_in.offer(&shared.config, &dir, &url, shared.clock.wall(), &*shared.chance);
    }

    stop.wait().await;
    tracing::info!(
        drain.grace_seconds = shared.config.drain_grace.as_secs(),
        "server is stopping; send the signal again to exit at once"
    );
    stop.exit_on_next_signal(Arc::clone(&dir));
    dir.remove("server.json");
    stopping.send_replace(true);
    engine.drain(shared.config.drain_grace).await;
    // The HTTP task stops within a few seconds. If the HTTP task panicked, the panic was already
    // logged.
    let _ = answering.await;
    match tokio::time::timeout(CLOSING, shared.store.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "store was not closed cleanly; the next start recovers it");
        }
        Err(_) => tracing::warn!("closing the store took too long; the next start recovers it"),
    }
    tracing::info!("stopped");
    Ok(())
}

/// Raises the limit of open files, because thousands of concurrent calls need thousands of file
/// descriptors. The usual limit is 1,024.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let target = limit.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if limit.current.is_some_and(|now| now < target) {
        // If the limit of open files cannot be raised, fewer calls can run at the same time.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(target), ..limit });
    }
}

/// Opens the store and creates the parts that the node needs before it joins the cluster.
async fn prepare(
    config: ServeConfig,
    dir: Arc<DataDir>,
    url: &str,
    progress: &Progress,
) -> Result<Shared> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let chance: Arc<dyn Chance> = Arc::new(RandomChance::from_system());
    let shell = shell::executor(&config, &dir)?;
    dir.wait_for_bodies(&*clock).await?;
    let health = WriteHealth::new();
    let store = store::open_with_retries(&config.store).await?;
    let store = Metered::wrap(store, Arc::clone(&health));
    progress.store_is_open();
    let sources = Sources {
        shell,
        config: &config,
        store: &store,
        clock: &clock,
        chance: &chance,
        public_url: public_url(&config, url),
    };
    let registry = sources.registry().await?;
    let keys = secret_keys::load(&config, &dir, &*chance).await?;
    let secrets = Arc::new(Secrets::new(Arc::clone(&store), keys, Arc::clone(&chance)));
    let source: Arc<dyn SecretSource> = Arc::clone(&secrets) as _;
    let registry = Arc::new(registry.with_secrets(&source));
    let run_ids = credentials::run_ids(&*store, &*chance).await?;
    if config.demo {
        demo::fill_once(&config, &store, &registry, &*chance).await?;
    }
    Ok(Shared { config, dir, store, health, registry, secrets, clock, chance, run_ids })
}

async fn start_engine(shared: &Shared) -> Result<Engine> {
    let Shared { config, dir, store, registry, clock, chance, run_ids, .. } = shared;
    let identity = dir.identity(clock.wall(), &**chance)?;
    let settings = Settings {
        roles: config.roles,
        workers: config.workers,
        pools: config.pools.clone(),
        leases: config.leases,
        poll: config.poll,
        run_log_bytes: config.run_log_bytes,
        metrics_interval: config.metrics_interval,
        // Queue metrics are updated less often than run statistics, because measuring the queue
        // costs more.
        queue_metrics_every: config.metrics_interval * 3,
        long_run_after: config.long_run_after,
        retention: config.retention,
        alpha: config.average_alpha,
        balance: config.balance,
        aging: config.queue.aging,
        shares: config.queue.shares,
        limits: limits_of(&config.limits, &**store).await?,
        stale: config.stale,
        ..Settings::new(config.node_name.clone(), identity)
    };
    let parts = EngineParts {
        store: Arc::clone(store),
        registry: Arc::clone(registry),
        settings,
        clock: Arc::clone(clock),
        chance: Arc::clone(chance),
        run_ids: *run_ids,
    };
    Engine::start(parts).await.map_err(|error| {
        Failure::because("the engine did not start", &error).or_else("see the log above")
    })
}

/// Replaces tenant names in the concurrency limits by tenant numbers, and creates missing tenants.
async fn limits_of(config: &LimitsConfig, store: &dyn Store) -> Result<Limits> {
    let mut tenants = BTreeMap::new();
    for (name, limit) in &config.tenants {
        tenants.insert(store.tenant(name).await.because("the store failed")?, *limit);
    }
    Ok(Limits { tenant: config.tenant, tenants, lanes: config.lanes })
}

/// Builds the HTTP router. A node without the role `api` serves only health checks and metrics, and
/// has no sign-in links.
async fn router(
    shared: &Shared,
    engine: &Engine,
    rendering: PrometheusHandle,
    stopping: watch::Receiver<bool>,
    trusted: Trusted,
) -> Result<(Router, Option<SignIn>)> {
    let Shared { config, dir, store, health, registry, secrets, clock, chance, run_ids } = shared;
    let access = Arc::new(Access::new(Arc::clone(store), trusted.trust, Arc::clone(chance)));
    let checks = Arc::new(Checks(Arc::clone(registry)));
    let probe = engine.probe();
    let myself = move || probe.health().node.map(NodeNo);
    let balance = Balance::of_node(Arc::clone(store), config.balance, myself);
    if config.roles.api {
        tokio::spawn(read_load(Arc::clone(&balance), Arc::clone(store)));
    }
    let jobs = Jobs::new(Arc::clone(store), Arc::clone(chance), checks, Arc::clone(&balance))
        .with_aging(config.queue.aging);
    let local =
        LocalToken::begin(trusted.local, Arc::clone(dir), Arc::clone(clock), Arc::clone(chance))?;
    let sign_in = SignIn { links: OneTimeLinks::default(), local_token: local.text().to_owned() };
    tokio::spawn(local.keep());
    let (of_requests, hands) = (Arc::clone(clock), Arc::clone(clock));
    let wall: evenkeel_api::Clock = Arc::new(move || of_requests.wall());
    let upkeep = Upkeep::new(Arc::clone(&access), config.access.audit_kept);
    tokio::spawn(upkeep.run(move || hands.wall()));
    tokio::spawn(metrics::show_states(Arc::clone(store), config.metrics_interval));
    let app = AppParts {
        store: Arc::clone(store),
        jobs,
        balancing: Balancing::new(Arc::clone(&balance), Arc::clone(chance)),
        balance,
        runs: Runs::new(Arc::clone(store), *run_ids),
        callbacks: Callbacks::new(
            Arc::clone(store),
            Arc::clone(chance),
            credentials::attempt_tokens(&**store, &**chance).await?,
            *run_ids,
            config.average_alpha,
        )
        .with_secrets(Arc::clone(secrets) as _),
        secrets: Arc::clone(secrets),
        pages: Pages::new(Arc::clone(store)),
        feed: Feed::new(Arc::clone(store)),
        streams: Streams::new(stopping),
        access: Arc::clone(&access),
        run_ids: *run_ids,
        clock: Arc::clone(&wall),
        metrics: Arc::new(move || rendering.render()),
        ready: Arc::new(NodeReadiness {
            engine: engine.probe(),
            store: Arc::clone(store),
            health: Arc::clone(health),
            clock: Arc::clone(clock),
            pools: Mutex::default(),
        }),
        settings: evenkeel_api::Settings {
            open_metrics: config.open_metrics,
            open_openapi: config.open_openapi,
            ..evenkeel_api::Settings::default()
        },
    };
    let api = evenkeel_api::router(app);
    if !config.roles.api {
        return Ok((readiness::only(api), None));
    }
    let web = evenkeel_web::router(WebParts {
        api,
        access,
        secret: credentials::session_secret(&**store, &**chance).await?,
        is_tls: config.access.tls.is_some(),
        hosts: dashboard_hosts(config),
        clock: wall,
        chance: Arc::clone(chance),
        links: sign_in.links.clone(),
        oidc: config.access.oidc.as_ref().map(oidc::settings).transpose()?,
    });
    Ok((web, Some(sign_in)))
}

/// Returns the host names under which browsers may reach the dashboard.
fn dashboard_hosts(config: &ServeConfig) -> Hosts {
    let public = config.executors.public_url.as_deref();
    let public = public.and_then(|url| url.parse::<axum::http::Uri>().ok());
    let public = public.as_ref().and_then(|url| url.host()).map(str::to_owned);
    Hosts(config.dashboard_hosts.iter().cloned().chain(public).collect())
}

/// Reads the load of existing jobs in the background, so that creating the first job does not wait
/// for this read.
async fn read_load(balance: Arc<Balance>, store: Arc<dyn Store>) {
    let read = async { balance.refresh(store.now().await?).await };
    if let Err(error) = read.await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(
            error,
            "reading the load of existing jobs failed; will retry when a job is created"
        );
    }
}

/// Returns the URL to which HTTP receivers send results. By default, the server's own URL is used
/// if the server has the role `api` and listens on a single address.
fn public_url(config: &ServeConfig, own: &str) -> Option<String> {
    let configured = config.executors.public_url.clone();
    let own_is_usable = config.roles.api && !config.listen.ip().is_unspecified();
    let url = configured.or_else(|| own_is_usable.then(|| own.into()));
    if url.is_none() {
        tracing::warn!(
            "HTTP receivers that answer 202 cannot report results, because the public address of this server is unknown; set --public-url"
        );
    }
    url
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.because(format!("{address} can't be listened on")).map_err(|failure| {
        failure.or_else("choose another address with --listen; port 0 takes a free one")
    })
}

/// Returns a function that writes the server's address and certificate fingerprint for local
/// commands.
fn announcer(dir: &Arc<DataDir>, url: &str, tls: Option<Arc<Tls>>) -> Announce {
    let (dir, url) = (Arc::clone(dir), url.to_owned());
    Arc::new(move || {
        let local = LocalServer {
            url: url.clone(),
            pid: std::process::id(),
            certificate_sha256: tls.as_ref().map(|tls| tls.fingerprint()),
        };
        let local = serde_json::to_string(&local).because("can't create server.json")?;
        dir.write("server.json", &format!("{local}\n"))
    })
}

/// Returns the URL with which clients on this machine reach a listening address.
fn url_of(address: SocketAddr, is_encrypted: bool) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let scheme = if is_encrypted { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}
