//! Watches a program until all its processes have ended.

use std::io::BufRead;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::body::Body;
use super::descendants;
use super::group::Group;
use super::protocol::{Command, Ended, EndedBy, millis, monotonic_ms};

/// The time between two rounds of SIGKILL. In this time killed processes end, and their orphans
/// become children of the supervisor.
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Maximum time between SIGTERM and SIGKILL for processes that remain after the main process of a
/// program has exited.
const LEFTOVERS_GRACE: Duration = Duration::from_millis(500);

enum Event {
    Command(Command),
    NodeGone,
    Reaped(Pid, WaitStatus),
    /// The supervisor has no child left. Orphans become children of the supervisor, so no
    /// descendant is left either.
    AllGone,
}

pub(super) struct Watch {
    body: Body,
    lease_until_ms: Option<u64>,
    kill_grace: Duration,
    events: Receiver<Event>,
    status: Option<WaitStatus>,
    all_gone: bool,
}

impl Watch {
    /// Starts one thread that reads commands of the node, and one that reaps ended processes.
    pub(super) fn new(
        body: Body,
        lease_until_ms: Option<u64>,
        kill_grace: Duration,
        commands: impl BufRead + Send + 'static,
    ) -> Self {
        let (sender, events) = mpsc::channel();
        let to_reap = sender.clone();
        thread::spawn(move || listen(commands, &sender));
        thread::spawn(move || reap(&to_reap));
        Self { body, lease_until_ms, kill_grace, events, status: None, all_gone: false }
    }

    /// Waits until the program ends or must be stopped, and ends its remaining processes.
    pub(super) fn wait_until_all_ended(mut self) -> Ended {
        let by = self.wait_for_end();
        if by != EndedBy::Itself && !self.all_gone {
            self.signal_group(Signal::TERM);
            self.wait(self.kill_grace);
        }
        // Usually no process is left, and the reaper thread reports this within microseconds.
        self.wait(Duration::from_millis(1));
        if by == EndedBy::Itself && !self.all_gone {
            descendants::terminate_all();
            self.wait(self.kill_grace.min(LEFTOVERS_GRACE));
        }
        while !self.all_gone {
            self.signal_group(Signal::KILL);
            if let Some(group) = &self.body.group {
                // Killing fails if the program removed its control group.
                let _ = group.kill();
            }
            descendants::kill_all();
            self.wait(KILL_AGAIN_AFTER);
        }
        let ended = self.ended(by);
        if let Some(group) = &self.body.group {
            // Processes that were moved into the control group count as processes of the program.
            while !group.end(KILL_AGAIN_AFTER) && !group.is_empty() {}
        }
        ended
    }

    fn wait_for_end(&mut self) -> EndedBy {
        loop {
            let event = match self.lease_until_ms {
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    let left = until.saturating_sub(monotonic_ms());
                    self.events.recv_timeout(Duration::from_millis(left))
                }
            };
            match event {
                Ok(Event::Command(Command::Stop)) => return EndedBy::Stop,
                Ok(Event::NodeGone) => return EndedBy::NodeGone,
                Ok(Event::Command(Command::Lease { until_ms })) => {
                    // A lease renewal that a frozen node sends late must not revive an ended lease.
                    if self.lease_until_ms.is_some_and(|until| until <= monotonic_ms()) {
                        return EndedBy::Lease;
                    }
                    self.lease_until_ms = Some(until_ms);
                }
                Ok(Event::Command(Command::Go)) => {}
                Ok(event @ (Event::Reaped(..) | Event::AllGone)) => {
                    self.record(&event);
                    if self.status.is_some() || self.all_gone {
                        return EndedBy::Itself;
                    }
                }
                Err(RecvTimeoutError::Timeout) => return EndedBy::Lease,
                Err(RecvTimeoutError::Disconnected) => return EndedBy::NodeGone,
            }
        }
    }

    /// Waits until all processes of the program have ended, up to `timeout`.
    fn wait(&mut self, timeout: Duration) {
        let deadline = monotonic_ms().saturating_add(millis(timeout));
        while !self.all_gone {
            let left = deadline.saturating_sub(monotonic_ms());
            match self.events.recv_timeout(Duration::from_millis(left)) {
                Ok(event) => self.record(&event),
                Err(_) => return,
            }
        }
    }

    fn record(&mut self, event: &Event) {
        match event {
            Event::Reaped(pid, status) if *pid == self.body.pid => self.status = Some(*status),
            Event::AllGone => self.all_gone = true,
            Event::Reaped(..) | Event::Command(_) | Event::NodeGone => {}
        }
    }

    /// Returns how the program ended, and the CPU time and memory that it used. The usage of a
    /// control group includes processes that their parents never reaped.
    fn ended(&self, by: EndedBy) -> Ended {
        let (cpu_us, memory_kb) = usage_of_reaped();
        let group = self.body.group.as_ref().map(Group::usage).unwrap_or_default();
        Ended {
            by,
            code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            cpu_us: group.cpu_us.map_or(cpu_us, |counted| counted.max(cpu_us)),
            memory_kb: group.memory_kb.filter(|peak| *peak > 0).unwrap_or(memory_kb),
            out_of_memory: group.out_of_memory,
        }
    }

    fn signal_group(&self, signal: Signal) {
        // After the main process was reaped, its process id may belong to a new process.
        if self.status.is_some() {
            return;
        }
        // Sending the signal fails if the process group is empty.
        let _ = kill_process_group(self.body.pid, signal);
    }
}

fn listen(commands: impl BufRead, events: &Sender<Event>) {
    for line in commands.lines() {
        let Ok(line) = line else { break };
        if let Some(command) = Command::parse(&line, monotonic_ms())
            && events.send(Event::Command(command)).is_err()
        {
            return;
        }
    }
    let _ = events.send(Event::NodeGone);
}

fn reap(events: &Sender<Event>) {
    loop {
        let event = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => Event::Reaped(pid, status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => Event::AllGone,
        };
        let last = matches!(event, Event::AllGone);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Returns the CPU time of all reaped processes in microseconds, and the peak memory of the largest
/// reaped process in kilobytes.
fn usage_of_reaped() -> (u64, i64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (0, 0) };
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    (u64::try_from(cpu_us).unwrap_or(0), usage.max_rss())
}
