//! Measures the time from a trigger request over HTTP to the start of the run.

use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_core::AttemptId;
use evenkeel_store::Roles;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::machine;
use crate::report::{Quantiles, Report};
use crate::run::Bench;
use crate::server::{Server, http_client};

const START_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn measure(bench: &mut Bench, count: u64) -> anyhow::Result<Report> {
    let progress = bench.progress(count, "triggering");
    let (starts, mut started) = mpsc::unbounded_channel();
    let (executor, _) = bench.ledger(Some(starts))?;
    bench.target.begin().await?;
    let began = bench.monotonic();
    let engine = bench.start(&executor, Roles::ALL).await?;

    let Bench { target, sources, .. } = bench;
    let server = Server::start(&target.store, sources).await?;
    let (url, token) = (format!("{}/api/v1/jobs", server.url), &server.token);
    let client = http_client(START_TIMEOUT)?;
    let created: Value = client
        .post(&url)
        .bearer_auth(token)
        .json(&json!({
            "name": "triggered", "schedule": {"kind": "interval", "every": "365d"},
            "executor_type": "noop", "overlap": "allow",
        }))
        .send()
        .await?
        .error_for_status()?
        .json()
        .await?;
    let id = created["id"].as_str().context("the created job has no id")?;
    let trigger = format!("{url}/{id}/trigger");

    let mut micros = Vec::new();
    let (mut lost, mut doubled) = (0, 0);
    for _ in 0..count {
        let sent_at = sources.clock.wall();
        let answer = client.post(&trigger).bearer_auth(token).send().await?.error_for_status()?;
        let answer: Value = answer.json().await?;
        let run: AttemptId =
            answer["run_id"].as_str().context("the response has no run_id")?.parse()?;
        match tokio::time::timeout(START_TIMEOUT, started.recv()).await {
            Ok(Some(body)) => {
                ensure!(body.scheduled_at == run.scheduled_at(), "the body of another run started");
                micros.push(body.started_at.since(sent_at).as_micros());
            }
            Ok(None) | Err(_) => lost += 1,
        }
        progress.inc(1);
        // The pause lets the node finish the run, so that the next trigger request reaches an idle
        // server.
        tokio::time::sleep(Duration::from_millis(5)).await;
        while started.try_recv().is_ok() {
            doubled += 1;
        }
    }
    progress.finish_and_clear();
    let rss_mb = machine::rss_mb();
    engine.drain(Duration::from_secs(10)).await;
    drop(server);
    let census = target.store.census().await?;
    let firings = micros.len() as u64;
    let seconds = (sources.clock.monotonic() - began).as_secs_f64();
    Ok(Report {
        load: "latency",
        store: target.kind.into(),
        durability: target.durability.clone(),
        jobs: 1,
        seconds,
        firings,
        firings_per_s: firings as f64 / seconds,
        latency_ms: Quantiles::of_micros(micros),
        lost,
        doubled,
        skipped: census.skipped_times,
        rows_in_history: census.runs,
        rss_mb,
        cpu_s: target.cpu_seconds(),
        bytes_per_firing: target.bytes_written().await? as f64 / firings.max(1) as f64,
        ..Report::default()
    })
}
