//! Helpers of the tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::schedule::Once;
use evenkeel_core::{AttemptKey, AttemptNo, Definition, JobNo, RunIds, Schedule, Span};
use evenkeel_executors::Invocation;
use serde_json::Value;

/// Returns the third attempt of a run of job 7, with fence 5.
pub fn invocation(kind: &str, config: Value) -> Invocation {
    let mut definition = Definition::noop(Schedule::Once(Once::NOW));
    definition.executor.kind = kind.into();
    definition.executor.config = config;
    definition.timeout = Span::from_secs(30);
    let key = AttemptKey::regular(JobNo(7), "2026-12-01T09:00:00Z".parse().unwrap())
        .with_attempt(AttemptNo(2));
    Invocation {
        key,
        id: RunIds::new(b"test").attempt_id(key),
        started_at: "2026-12-01T09:00:01Z".parse().unwrap(),
        ..Invocation::example(definition)
    }
}

pub fn with(mut invocation: Invocation, change: impl FnOnce(&mut Definition)) -> Invocation {
    change(Arc::make_mut(&mut invocation.definition));
    invocation
}

/// Waits until `condition` holds; panics after 20 s.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("in vain: {what}");
}

pub async fn pid_in(file: &Path) -> i32 {
    let read = || std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'));
    eventually(&format!("{} holds a process id", file.display()), || read().is_some()).await;
    read().unwrap().trim().parse().unwrap()
}

/// True if the process runs; a zombie does not count as running.
pub fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

pub fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(") ").unwrap().1;
    rest.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
