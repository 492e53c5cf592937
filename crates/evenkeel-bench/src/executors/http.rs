//! Measures HTTP calls to a receiver in the same process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Definition, Span, Timestamp};
use evenkeel_engine::Clock;
use evenkeel_executors::{HttpExecutor, HttpSettings};
use evenkeel_outbound::OutboundSettings;
use evenkeel_store::Roles;
use serde_json::json;

use super::counting::CountingExecutor;
use super::report::HttpFigures;
use super::{RUN_TIMEOUT, local_outbound, serve, sleep_until};
use crate::args::ExecutorsLoad;
use crate::machine;
use crate::report::Quantiles;
use crate::run::Bench;
use crate::workload::share;

/// The lateness of each received HTTP call, in microseconds.
struct Received {
    clock: Arc<dyn Clock>,
    /// HTTP calls that are scheduled at or after this time are not counted.
    until: Timestamp,
    late: Mutex<Vec<u32>>,
}

impl Received {
    fn late(&self) -> MutexGuard<'_, Vec<u32>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(State(received): State<Arc<Received>>, headers: HeaderMap) {
    let now = received.clock.wall();
    let scheduled_at = headers
        .get("x-evenkeel-scheduled-at")
        .and_then(|value| value.to_str().ok()?.parse::<Timestamp>().ok())
        .unwrap_or(Timestamp::MIN);
    if scheduled_at < received.until {
        let late = now.since(scheduled_at).as_micros();
        received.late().push(u32::try_from(late).unwrap_or(u32::MAX));
    }
}

/// Measures `rate` HTTP calls per second for `seconds`.
pub(super) async fn measure(bench: &Bench, load: &ExecutorsLoad) -> anyhow::Result<HttpFigures> {
    let ExecutorsLoad { rate, seconds, .. } = *load;
    let (jobs, longest) = share(rate * 60, rate)?;
    let begin = bench.start_time(jobs).await?;
    let until = begin.saturating_add(Span::from_secs(seconds));
    let clock = Arc::clone(&bench.sources.clock);
    let late = Mutex::new(Vec::with_capacity(1 << 20));
    let received = Arc::new(Received { clock, until, late });
    let router = Router::new()
        .route("/callback", axum::routing::post(receive))
        .with_state(Arc::clone(&received));
    let (address, server) = serve(router).await?;
    let url = format!("http://{address}/callback");

    let outbound = local_outbound(OutboundSettings::default())?;
    let executor = CountingExecutor::new(HttpExecutor::new(HttpSettings::new(outbound)));
    let progress = bench.progress(jobs, "registering");
    let like = |definition: Definition| Definition {
        executor: ExecutorSpec { kind: "http".into(), config: json!({"url": url}) },
        payload: json!({"hello": "world"}),
        ..definition
    };
    let registrar = bench.registrar(&progress);
    let plan = registrar.busy(jobs, longest, begin, OverlapPolicy::default(), like).await?;
    progress.finish_and_clear();
    let expected = plan.count(until);

    let engine = bench.start(&executor, Roles::ALL).await?;
    sleep_until(bench, begin).await?;
    let began = bench.monotonic();
    sleep_until(bench, begin.saturating_add(Span::from_secs(seconds / 5))).await?;
    let rss_early_mb = machine::rss_mb();
    sleep_until(bench, until).await?;
    let deadline = bench.monotonic() + RUN_TIMEOUT;
    while received.late().len() < expected as usize && bench.monotonic() < deadline {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (took, rss_late_mb) = (bench.monotonic() - began, machine::rss_mb());
    engine.drain(Duration::from_secs(30)).await;
    server.abort();
    executor.must_have_succeeded()?;
    let late = std::mem::take(&mut *received.late());
    Ok(HttpFigures {
        calls: late.len() as u64,
        expected,
        seconds: took.as_secs_f64(),
        calls_per_s: late.len() as f64 / took.as_secs_f64(),
        lateness_ms: Quantiles::of_micros(late.into_iter().map(u64::from)),
        rss_early_mb,
        rss_late_mb,
    })
}
