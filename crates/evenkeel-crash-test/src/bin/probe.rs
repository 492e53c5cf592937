//! The probe, a program that the shell jobs of the crash test run. It records its start, waits, and
//! records its end.
//!
//! While a probe runs, it holds the file lock of its job. The kernel releases the file lock when
//! the probe ends, so overlaps are detected even if an earlier probe was killed before it could
//! record its end. The probe shares no code with the server.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Arguments: `JOB LOG LOCK MIN_MS MAX_MS STOP_FILE`. Without arguments the probe ends at once.
struct Arguments {
    job: String,
    log: PathBuf,
    lock: PathBuf,
    min_ms: u64,
    max_ms: u64,
    /// The probe ends as soon as this file exists.
    stop: PathBuf,
}

fn main() -> ExitCode {
    // The probe reads the clock before all other steps, so that they do not delay the recorded
    // start.
    let now = stamp();
    let Some(arguments) = read_arguments() else { return ExitCode::SUCCESS };
    match handle(&arguments, &now) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("the probe cannot write its log: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_arguments() -> Option<Arguments> {
    let mut values = std::env::args().skip(1);
    Some(Arguments {
        job: values.next()?,
        log: values.next()?.into(),
        lock: values.next()?.into(),
        min_ms: values.next()?.parse().ok()?,
        max_ms: values.next()?.parse().ok()?,
        stop: values.next()?.into(),
    })
}

fn handle(arguments: &Arguments, now: &str) -> io::Result<ExitCode> {
    let lock = File::options().create(true).append(true).open(&arguments.lock)?;
    if lock.try_lock().is_err() {
        write(arguments, "overlap", now)?;
        return Ok(ExitCode::from(3));
    }
    write(arguments, "start", now)?;
    wait(arguments);
    write(arguments, "end", &stamp())?;
    // The file lock must be held until the probe ends.
    std::mem::forget(lock);
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "a body takes time")]
fn wait(arguments: &Arguments) {
    let range = arguments.max_ms.saturating_sub(arguments.min_ms) + 1;
    let mut left = arguments.min_ms + u64::from(std::process::id()) % range;
    while left > 0 && !arguments.stop.exists() {
        let step = left.min(50);
        std::thread::sleep(Duration::from_millis(step));
        left -= step;
    }
}

/// Appends one record to the log with a single write, and syncs it to disk.
fn write(arguments: &Arguments, kind: &str, stamp: &str) -> io::Result<()> {
    let line = format!(
        "{{\"kind\":\"{kind}\",\"job\":\"{}\",\"run\":\"{}\",\"attempt\":{},\"fence\":{},\
         \"scheduled_at\":\"{}\",\"pid\":{},\"node_pid\":{},{stamp}}}\n",
        arguments.job,
        variable("EVENKEEL_RUN_ID"),
        variable("EVENKEEL_ATTEMPT"),
        variable("EVENKEEL_FENCE"),
        variable("EVENKEEL_SCHEDULED_AT"),
        std::process::id(),
        node_pid(),
    );
    let mut log = File::options().create(true).append(true).open(&arguments.log)?;
    log.write_all(line.as_bytes())?;
    log.sync_data()
}

/// Returns the process id of the server, which is the parent of the probe's parent process.
fn node_pid() -> u32 {
    let supervisor = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap_or_default();
    // In `/proc/PID/stat`, the state and the parent follow the last `)`, which ends the process
    // name.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
    parent.and_then(|pid| pid.parse().ok()).unwrap_or(0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server passes facts to a body in its environment"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the checker has its own clock")]
fn stamp() -> String {
    let mono = clock_gettime(ClockId::Monotonic);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mono_ns = mono.tv_sec.unsigned_abs() * 1_000_000_000 + mono.tv_nsec.unsigned_abs();
    format!("\"mono_ns\":{mono_ns},\"wall_us\":{}", wall.as_micros())
}
