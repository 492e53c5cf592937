//! Finding and signalling everything below the supervisor.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

/// So often the tree is searched for processes that were started while it was being stopped. More
/// come to light in the caller's next round.
const SEARCHES_MAX: usize = 100;

/// So many are asked to end before they are killed.
const ASKED_MAX: usize = 10_000;

/// Sends SIGKILL to every process below this one.
///
/// They are stopped first, all of them, until a search finds none that is not: what is stopped
/// can't fork, so that a body which starts processes as fast as they are killed gains nothing.
///
/// A process that is just being made may still be missed: the caller repeats until nothing is
/// left. Whatever dies hands its children to this process, so nothing gets lost in between.
pub(super) fn kill_all() {
    if signal_namespace(Signal::KILL) {
        return;
    }
    let mut stopped = HashSet::new();
    let mut below = Vec::new();
    for _ in 0..SEARCHES_MAX {
        let before = stopped.len();
        below = vec![getpid()];
        let mut searched = 0;
        while let Some(pid) = below.get(searched).copied() {
            // It may be gone already, or belong to another user: neither can be helped.
            if searched > 0 && stopped.insert(pid) {
                let _ = kill_process(pid, Signal::STOP);
            }
            below.extend(children_of(pid));
            searched += 1;
        }
        if stopped.len() == before {
            break;
        }
    }
    // Only what the last search has found: the number of one that is gone may be a stranger's now.
    for pid in below.into_iter().skip(1) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Asks every process below this one to end, once.
pub(super) fn ask_all_to_end() {
    if signal_namespace(Signal::TERM) {
        return;
    }
    let mut below = vec![getpid()];
    let mut searched = 0;
    while let Some(pid) = below.get(searched).copied() {
        if searched > 0 {
            let _ = kill_process(pid, Signal::TERM);
        }
        // A body that forks as fast as it is searched must not make this endless.
        if below.len() < ASKED_MAX {
            below.extend(children_of(pid));
        }
        searched += 1;
    }
}

/// Signals every other process of the PID namespace at once, if this process is its first and all of
/// them are therefore the body's; says whether it is.
fn signal_namespace(signal: Signal) -> bool {
    let is_first = getpid().is_init();
    if is_first {
        // "Group 1" is -1 for the kernel: everything but the caller. It fails if nothing is left.
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
            // A thread that just ended, or a kernel without CONFIG_PROC_CHILDREN.
            Err(_) if thread.path().exists() => return children_by_search(pid),
            Err(_) => {}
        }
    }
    children
}

/// Looks at every process there is.
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
    // The name before it is in parentheses and may hold anything, parentheses too.
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
    fn both_ways_find_the_same_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = parse_pid(&child.id().to_string()).unwrap();
        assert!(children_of(getpid()).contains(&pid));
        assert!(children_by_search(getpid()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_of(getpid()).contains(&pid));
    }
}
