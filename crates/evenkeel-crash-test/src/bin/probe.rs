//! The body of shell jobs: writes down that it started, waits, writes down that it ended.
//!
//! While it lives it holds a lock that only one body of its job can have, so the kernel tells
//! exactly whether two overlap: also for a body that was killed and could not write its end.
//! It shares nothing with the server, and its log is written by nobody else.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// `JOB LOG LOCK LEAST_MS MOST_MS STOP_FILE`, or nothing to end at once.
struct Orders {
    job: String,
    log: PathBuf,
    lock: PathBuf,
    least_ms: u64,
    most_ms: u64,
    /// Ends the waiting as soon as it exists.
    stop: PathBuf,
}

fn main() -> ExitCode {
    // Before anything that takes time.
    let now = stamp();
    let Some(orders) = read_orders() else { return ExitCode::SUCCESS };
    match work(&orders, &now) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("the probe can't keep its log: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_orders() -> Option<Orders> {
    let mut words = std::env::args().skip(1);
    Some(Orders {
        job: words.next()?,
        log: words.next()?.into(),
        lock: words.next()?.into(),
        least_ms: words.next()?.parse().ok()?,
        most_ms: words.next()?.parse().ok()?,
        stop: words.next()?.into(),
    })
}

fn work(orders: &Orders, now: &str) -> io::Result<ExitCode> {
    let lock = File::options().create(true).append(true).open(&orders.lock)?;
    if lock.try_lock().is_err() {
        write(orders, "overlap", now)?;
        return Ok(ExitCode::from(3));
    }
    write(orders, "start", now)?;
    wait(orders);
    write(orders, "end", &stamp())?;
    // Released by the end of the process, and by nothing before.
    std::mem::forget(lock);
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "a body takes time")]
fn wait(orders: &Orders) {
    let range = orders.most_ms.saturating_sub(orders.least_ms) + 1;
    let mut left = orders.least_ms + u64::from(std::process::id()) % range;
    while left > 0 && !orders.stop.exists() {
        let step = left.min(50);
        std::thread::sleep(Duration::from_millis(step));
        left -= step;
    }
}

/// Appends one record with one write, and does not go on before it is on disk.
fn write(orders: &Orders, kind: &str, stamp: &str) -> io::Result<()> {
    let line = format!(
        "{{\"kind\":\"{kind}\",\"job\":\"{}\",\"run\":\"{}\",\"attempt\":{},\"fence\":{},\
         \"scheduled_at\":\"{}\",\"pid\":{},\"node_pid\":{},{stamp}}}\n",
        orders.job,
        variable("EVENKEEL_RUN_ID"),
        variable("EVENKEEL_ATTEMPT"),
        variable("EVENKEEL_FENCE"),
        variable("EVENKEEL_SCHEDULED_AT"),
        std::process::id(),
        node_pid(),
    );
    let mut log = File::options().create(true).append(true).open(&orders.log)?;
    log.write_all(line.as_bytes())?;
    log.sync_data()
}

/// The server is the parent of the supervisor, which is the parent of this.
fn node_pid() -> u32 {
    let supervisor = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap_or_default();
    // After the name, which may hold anything: the state, and the parent.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
    parent.and_then(|pid| pid.parse().ok()).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "what a body is told is in its environment")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the judge has a clock of its own")]
fn stamp() -> String {
    let mono = clock_gettime(ClockId::Monotonic);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mono_ns = mono.tv_sec.unsigned_abs() * 1_000_000_000 + mono.tv_nsec.unsigned_abs();
    format!("\"mono_ns\":{mono_ns},\"wall_us\":{}", wall.as_micros())
}
