//! Finds and signals all descendants of the supervisor.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

/// Maximum number of searches for new processes in one call of [`kill_all`]. The caller repeats
/// `kill_all` until no process is left.
const SEARCHES_MAX: usize = 100;

/// Maximum number of processes to which [`terminate_all`] sends SIGTERM.
const ASKED_MAX: usize = 10_000;

/// Sends SIGKILL to all descendants of the supervisor.
///
/// Before SIGKILL, the function sends SIGSTOP to all descendants, until a search finds no new
/// process. A stopped process cannot start processes, so the search eventually finds all processes
/// of a program.
///
/// The search may miss a process that is just being created, so the caller repeats `kill_all` until
/// no descendant is left. Orphans become children of the supervisor, so no descendant is lost
/// between two calls of `kill_all`.
pub(super) fn kill_all() {
    if signal_namespace(Signal::KILL) {
        return;
    }
    let mut stopped = HashSet::new();
    let mut found = Vec::new();
    for _ in 0..SEARCHES_MAX {
        let before = stopped.len();
        // Sending the signal fails for a process that has ended or belongs to another user.
        found = search(usize::MAX, |pid| {
            if stopped.insert(pid) {
                let _ = kill_process(pid, Signal::STOP);
            }
        });
        if stopped.len() == before {
            break;
        }
    }
    // Only processes of the last search are killed, because the id of an ended process may belong
    // to a new process.
    for pid in found {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Sends SIGTERM once to all descendants of the supervisor, up to about 10,000.
pub(super) fn terminate_all() {
    if !signal_namespace(Signal::TERM) {
        search(ASKED_MAX, |pid| {
            let _ = kill_process(pid, Signal::TERM);
        });
    }
}

/// Calls `visit` for each descendant of the supervisor, parents first, and returns the descendants.
/// The search ends after about `count_max` processes, in case a program forks quickly.
fn search(count_max: usize, mut visit: impl FnMut(Pid)) -> Vec<Pid> {
    let mut found = children_of(getpid());
    let mut visited = 0;
    while let Some(pid) = found.get(visited).copied() {
        visit(pid);
        if found.len() < count_max {
            found.extend(children_of(pid));
        }
        visited += 1;
    }
    found
}

/// If the supervisor is process 1 of its PID namespace, signals all other processes of the
/// namespace, which all belong to the program. Returns false if the supervisor is not process 1.
fn signal_namespace(signal: Signal) -> bool {
    let is_first = getpid().is_init();
    if is_first {
        // For process group 1, `kill_process_group` becomes `kill(-1)`, which signals every process
        // except the caller. `kill(-1)` fails if the namespace has no other process.
        let _ = kill_process_group(Pid::INIT, signal);
    }
    is_first
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(parse_pid)),
            // A kernel without CONFIG_PROC_CHILDREN has no file `/proc/PID/task/TID/children`.
            Err(_) if thread.path().exists() => return children_by_search(pid),
            Err(_) => {}
        }
    }
    children
}

/// Searches all processes of the system for the children of `parent`.
fn children_by_search(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| parse_pid(entry.file_name().to_str()?))
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // In `/proc/PID/stat`, the process name comes before the parent's id; it is in parentheses and
    // may itself contain parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1).and_then(parse_pid)
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_find_the_same_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = parse_pid(&child.id().to_string()).unwrap();
        assert!(children_of(getpid()).contains(&pid));
        assert!(children_by_search(getpid()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_of(getpid()).contains(&pid));
    }
}
