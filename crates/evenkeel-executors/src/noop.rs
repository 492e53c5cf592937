//! The executor that does nothing, for benchmarks, rehearsals and tests.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::executor::{ConfigField, ExecutorDeclaration, Fields};
use evenkeel_core::{AttemptKey, Definition, LogStream, Progress, Span, TenantNo};
use serde_json::Value;

use crate::{ConfigFault, Executor, Invocation, LiveReport, Report, interrupted};

/// Sleeps and fails as the job's configuration requires. `docs/executors.md` describes the fields.
///
/// The executor sends no heartbeats while it sleeps, except after each of its `steps`, so an
/// attempt that sleeps longer than the job's timeout times out. The jitter and the failures of an
/// attempt depend only on its run and its number, so a rehearsal gives the same result each time.
#[derive(Copy, Clone, Default, Debug)]
pub struct NoopExecutor;

/// The noop executor does not search for secrets, because a search would slow down benchmarks.
pub static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    resolves_secrets: false,
    ..ExecutorDeclaration::new(
        "noop",
        &[
            ConfigField::public("sleep_ms"),
            ConfigField::public("jitter_ms"),
            ConfigField::public("fail"),
            ConfigField::public("fail_rate"),
            ConfigField::public("steps"),
        ],
    )
};

const SLEEP_MS_MAX: u64 = 24 * 3600 * 1000;
const STEPS_MAX: u64 = 1000;

#[derive(Default)]
struct NoopConfig<'a> {
    sleep_ms: u64,
    jitter_ms: u64,
    fail: Option<&'a str>,
    fail_rate: f64,
    /// Number of equal parts of the sleep; 0 reports no progress.
    steps: u64,
}

impl<'a> NoopConfig<'a> {
    fn parse(config: &'a Value) -> Result<Self, ConfigFault> {
        // Benchmarks of the engine use this executor, so a job without configuration must cost
        // almost nothing.
        if config.is_null() {
            return Ok(Self::default());
        }
        let fields = Fields::read(config, DECLARATION.fields)?;
        let fail = fields.text("fail")?;
        let always = if fail.is_some() { 1.0 } else { 0.0 };
        let fail_rate = match fields.get("fail_rate") {
            None => always,
            Some(value) => value
                .as_f64()
                .filter(|rate| (0.0..=1.0).contains(rate))
                .ok_or_else(|| ConfigFault::new("fail_rate", "must be a number from 0 to 1"))?,
        };
        let millis = |name| Ok(fields.number(name, 0..=SLEEP_MS_MAX)?.unwrap_or(0));
        let steps = fields.number("steps", 1..=STEPS_MAX)?.unwrap_or(0);
        let (sleep_ms, jitter_ms) = (millis("sleep_ms")?, millis("jitter_ms")?);
        Ok(Self { sleep_ms, jitter_ms, fail, fail_rate, steps })
    }

    fn sleep(&self, key: AttemptKey) -> Span {
        let jitter = match self.jitter_ms {
            0 => 0,
            most => (unit(key, "jitter") * (most + 1) as f64) as u64,
        };
        Span::from_millis(self.sleep_ms + jitter)
    }

    fn report(&self, key: AttemptKey) -> Report {
        if self.fail_rate > 0.0 && unit(key, "fail") < self.fail_rate {
            Report::failed(self.fail.unwrap_or("failed on purpose, because of fail_rate"))
        } else {
            Report::completed()
        }
    }
}

/// What an attempt of a noop job does, which is known before it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rehearsal {
    /// Time from the start to the end of the attempt.
    pub takes: Span,
    /// Number of equal parts of this time, after each of which the attempt reports progress.
    pub steps: u64,
    pub report: Report,
}

/// Returns what the attempt `key` of a noop job with this definition does.
pub fn rehearse(definition: &Definition, key: AttemptKey) -> Result<Rehearsal, ConfigFault> {
    let config = NoopConfig::parse(&definition.executor.config)?;
    let (takes, silence) = (config.sleep(key), definition.timeout);
    if takes.as_micros() / config.steps.max(1) > silence.as_micros() {
        let report = Report::timed_out(format!("slept longer than {silence} (timeout_sec)"));
        return Ok(Rehearsal { takes: silence, steps: 0, report });
    }
    Ok(Rehearsal { takes, steps: config.steps, report: config.report(key) })
}

impl Rehearsal {
    /// Returns the line that the attempt prints after a step, counted from 1.
    pub fn line(&self, step: u64) -> String {
        format!("step {step} of {}", self.steps)
    }

    async fn sleep(&self, live: &LiveReport) {
        if self.steps == 0 {
            return tokio::time::sleep(self.takes.into()).await;
        }
        let length = Duration::from(self.takes) / self.steps as u32;
        for step in 1..=self.steps {
            tokio::time::sleep(length).await;
            let message = self.line(step);
            live.log(LogStream::Stdout, format!("{message}\n").as_bytes());
            live.progress(Progress {
                done: Some(step),
                total: Some(self.steps),
                message: Some(message),
                ..Progress::default()
            });
        }
    }
}

/// Returns a pseudo-random number in `0.0..1.0` that depends only on the attempt and `purpose`.
fn unit(key: AttemptKey, purpose: &str) -> f64 {
    let numbers = [
        key.scheduled_at.as_micros() as u64,
        key.job_no.0 as u64,
        u64::from(key.sequence.bits()),
        u64::from(key.attempt.0),
    ];
    let purpose = purpose.bytes().map(u64::from);
    let mixed = numbers.into_iter().chain(purpose).fold(0, |hash, number| mix(hash ^ number));
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a hash of `x` in which every bit of `x` affects all bits (the finalizer of SplitMix64).
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[async_trait]
impl Executor for NoopExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, _: TenantNo, config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        NoopConfig::parse(config).map(drop)
    }

    async fn run(&self, mut invocation: Invocation) -> Report {
        let rehearsal = match rehearse(&invocation.definition, invocation.key) {
            Ok(rehearsal) => rehearsal,
            Err(fault) => return Report::failed(fault),
        };
        if !rehearsal.takes.is_zero() {
            tokio::select! {
                () = rehearsal.sleep(&invocation.live) => {}
                reason = interrupted(&invocation.cancel, &mut invocation.lease) => {
                    return Report::cancelled(reason);
                }
            }
        }
        rehearsal.report
    }
}
