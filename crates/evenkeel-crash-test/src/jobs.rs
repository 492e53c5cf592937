//! The jobs that run while everything breaks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster::StoreKind;
use crate::moment;

/// What a job does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Runs the probe for a moment.
    Shell,
    /// Runs the probe for longer than a steal takes, so that a body that outlives its lease meets
    /// its successor.
    Long,
    /// Calls the receiver.
    Http,
}

/// A job that was created.
#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub id: String,
    pub body: Body,
    pub every_us: i64,
    /// The first time it is due, as the API said.
    pub first_us: i64,
    /// What the job wants done with times that a fault hits.
    pub policy: Policy,
}

/// What a job wants done with times that a fault hits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Nothing excuses a time that did not run: missed times wait for each other.
    Must,
    /// Times may be skipped while an earlier one runs.
    May,
    /// As above, and a body that was started never starts again: its run fails with its server.
    Once,
}

/// Where bodies write.
#[derive(Clone, Debug)]
pub struct Places {
    pub probe: PathBuf,
    pub folder: PathBuf,
    pub receiver: String,
}

impl Places {
    /// The log of a job's bodies.
    pub fn log(&self, job: &str) -> PathBuf {
        self.folder.join(format!("{job}.jsonl"))
    }

    /// The lock of a job's living body.
    pub fn lock(&self, job: &str) -> PathBuf {
        self.folder.join(format!("{job}.lock"))
    }

    /// Long bodies end when it exists.
    pub fn stop(&self) -> PathBuf {
        self.folder.join("stop")
    }
}

/// How many of which: (body, seconds between two times, policy, how many).
fn wanted(store: StoreKind) -> Vec<(Body, i64, Policy, usize)> {
    let long = if store == StoreKind::Postgres { 3 } else { 1 };
    vec![
        (Body::Shell, 1, Policy::Must, 4),
        (Body::Shell, 2, Policy::Must, 2),
        (Body::Shell, 3, Policy::Must, 1),
        (Body::Shell, 1, Policy::May, 2),
        (Body::Shell, 1, Policy::Once, 1),
        (Body::Http, 1, Policy::Must, 2),
        (Body::Http, 2, Policy::May, 1),
        (Body::Http, 1, Policy::Once, 1),
        (Body::Long, 10, Policy::May, long),
        (Body::Long, 10, Policy::Once, 1),
    ]
}

/// Creates all of them.
pub fn create(api: &Api, store: StoreKind, places: &Places) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for (body, seconds, policy, count) in wanted(store) {
        for number in 1..=count {
            let name = format!("{body:?}-{policy:?}-{seconds}s-{number}").to_lowercase();
            let document = document(&name, body, seconds, policy, places);
            let answer = api.post("/api/v1/jobs", &document)?;
            jobs.push(read(&answer, name, body, seconds, policy)?);
        }
    }
    Ok(jobs)
}

fn document(name: &str, body: Body, seconds: i64, policy: Policy, places: &Places) -> Value {
    let (executor, config) = match body {
        Body::Http => {
            ("http", json!({"url": format!("http://{}/{name}", places.receiver), "method": "POST"}))
        }
        Body::Shell => ("shell", probe(name, 50, 200, places)),
        Body::Long => ("shell", probe(name, 25_000, 25_000, places)),
    };
    let mut document = json!({
        "name": name,
        "schedule": {"kind": "interval", "every": format!("{seconds}s")},
        "executor_type": executor,
        "executor_config": config,
        "timeout_sec": 60,
        // Bodies do not fail, and being killed is no failure. Should one fail all the same, the
        // report is not to wait for its retry for a minute.
        "max_retries": 5,
        "retry_backoff": "fixed",
        "retry_backoff_seconds": 1,
        "retry_jitter_percent": 0,
    });
    if policy != Policy::Once {
        document["max_crashes"] = 100.into();
    }
    match policy {
        Policy::Must => {
            // Whatever is late runs, one after the other.
            document["overlap"] = "queue".into();
            document["misfire"] = "all".into();
            document["misfire_after"] = "1s".into();
        }
        Policy::May => {}
        Policy::Once => document["on_lost_worker"] = "fail".into(),
    }
    document
}

fn probe(name: &str, least_ms: u64, most_ms: u64, places: &Places) -> Value {
    let text = |path: &Path| path.display().to_string();
    json!({"argv": [
        text(&places.probe), name, text(&places.log(name)), text(&places.lock(name)),
        least_ms.to_string(), most_ms.to_string(), text(&places.stop()),
    ]})
}

fn read(answer: &Value, name: String, body: Body, seconds: i64, policy: Policy) -> Result<Job> {
    let text = |field: &str| answer[field].as_str().with_context(|| format!("no {field}"));
    let first_us = moment::parse(text("next_run_at")?).context("next_run_at is no time")?;
    let created_us = moment::parse(text("created_at")?).context("created_at is no time")?;
    let every_us = seconds * 1_000_000;
    let wait = first_us - created_us;
    ensure!(
        (1..=every_us).contains(&wait),
        "the first time of {name} comes {wait} us after its creation"
    );
    Ok(Job { name, id: text("id")?.to_owned(), body, every_us, first_us, policy })
}
