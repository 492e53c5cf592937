//! The jobs of the crash test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster::StoreKind;
use crate::timestamp;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Runs the probe program for 50 to 200 ms.
    Shell,
    /// Runs the probe program for longer than a takeover takes. An attempt that continues after its
    /// server's lease has ended would overlap with the next attempt of the job.
    Long,
    /// Calls the receiver.
    Http,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub id: String,
    pub body: Body,
    pub every_us: i64,
    /// The first scheduled time of the job, as returned by the API.
    pub first_us: i64,
    pub policy: Policy,
}

/// Which scheduled times of a job may be skipped or fail because of a fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Every scheduled time of the job must run. Runs that were missed start later, one after the
    /// other.
    MustRun,
    /// Scheduled times may be skipped while an earlier run is active.
    MaySkip,
    /// Like `MaySkip`, but an attempt that has started never starts again. If the server of an
    /// attempt is lost, the run fails.
    AtMostOnce,
}

/// Files that the probe program uses, and the address of the HTTP receiver.
#[derive(Clone, Debug)]
pub struct Paths {
    pub probe: PathBuf,
    pub folder: PathBuf,
    pub receiver: String,
}

impl Paths {
    pub fn log(&self, job: &str) -> PathBuf {
        self.folder.join(format!("{job}.jsonl"))
    }

    pub fn lock(&self, job: &str) -> PathBuf {
        self.folder.join(format!("{job}.lock"))
    }

    /// Returns the file whose existence ends long probes.
    pub fn stop(&self) -> PathBuf {
        self.folder.join("stop")
    }
}

/// Returns the kinds of jobs that the crash test creates, each with its interval in seconds, policy
/// and number of jobs.
fn wanted(store: StoreKind) -> Vec<(Body, i64, Policy, usize)> {
    let long = if store == StoreKind::Postgres { 3 } else { 1 };
    vec![
        (Body::Shell, 1, Policy::MustRun, 4),
        (Body::Shell, 2, Policy::MustRun, 2),
        (Body::Shell, 3, Policy::MustRun, 1),
        (Body::Shell, 1, Policy::MaySkip, 2),
        (Body::Shell, 1, Policy::AtMostOnce, 1),
        (Body::Http, 1, Policy::MustRun, 2),
        (Body::Http, 2, Policy::MaySkip, 1),
        (Body::Http, 1, Policy::AtMostOnce, 1),
        (Body::Long, 10, Policy::MaySkip, long),
        (Body::Long, 10, Policy::AtMostOnce, 1),
    ]
}

pub fn create(api: &Api, store: StoreKind, paths: &Paths) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for (body, seconds, policy, count) in wanted(store) {
        for number in 1..=count {
            let name = format!("{body:?}-{policy:?}-{seconds}s-{number}").to_lowercase();
            let document = document(&name, body, seconds, policy, paths);
            let answer = api.post("/api/v1/jobs", &document)?;
            jobs.push(read(&answer, name, body, seconds, policy)?);
        }
    }
    Ok(jobs)
}

fn document(name: &str, body: Body, seconds: i64, policy: Policy, paths: &Paths) -> Value {
    let (executor, config) = match body {
        Body::Http => {
            ("http", json!({"url": format!("http://{}/{name}", paths.receiver), "method": "POST"}))
        }
        Body::Shell => ("shell", probe(name, 50, 200, paths)),
        Body::Long => ("shell", probe(name, 25_000, 25_000, paths)),
    };
    let mut document = json!({
        "name": name,
        "schedule": {"kind": "interval", "every": format!("{seconds}s")},
        "executor_type": executor,
        "executor_config": config,
        "timeout_sec": 60,
        // Attempts are not expected to fail, and an attempt whose server is killed does not count
        // as failed. If an attempt fails nevertheless, its retry must follow soon.
        "max_retries": 5,
        "retry_backoff": "fixed",
        "retry_backoff_seconds": 1,
        "retry_jitter_percent": 0,
    });
    if policy != Policy::AtMostOnce {
        document["max_crashes"] = 100.into();
    }
    match policy {
        Policy::MustRun => {
            // These fields let all missed runs of the job start later, one after the other.
            document["overlap"] = "queue".into();
            document["misfire"] = "all".into();
            document["misfire_after"] = "1s".into();
        }
        Policy::MaySkip => {}
        Policy::AtMostOnce => document["on_lost_worker"] = "fail".into(),
    }
    document
}

fn probe(name: &str, min_ms: u64, max_ms: u64, paths: &Paths) -> Value {
    let text = |path: &Path| path.display().to_string();
    json!({"argv": [
        text(&paths.probe), name, text(&paths.log(name)), text(&paths.lock(name)),
        min_ms.to_string(), max_ms.to_string(), text(&paths.stop()),
    ]})
}

fn read(answer: &Value, name: String, body: Body, seconds: i64, policy: Policy) -> Result<Job> {
    let first_us = timestamp::field(answer, "next_run_at")?;
    let every_us = seconds * 1_000_000;
    let wait = first_us - timestamp::field(answer, "created_at")?;
    ensure!(
        (1..=every_us).contains(&wait),
        "the first time of {name} comes {wait} us after its creation"
    );
    let id = answer["id"].as_str().context("no id")?.to_owned();
    Ok(Job { name, id, body, every_us, first_us, policy })
}
