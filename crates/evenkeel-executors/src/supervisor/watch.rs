//! Watching a body until nothing of it is left.

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

/// Between two rounds of SIGKILL: a killed process needs a moment, its orphans come to light then.
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What a body leaves behind when it ends by itself has so long to clear up: nobody waits for it.
const LEFTOVERS_GRACE: Duration = Duration::from_millis(500);

enum Event {
    Told(Command),
    NodeGone,
    Reaped(Pid, WaitStatus),
    /// No child is left, so no descendant is: orphans would be children.
    AllGone,
}

/// Watches one body.
pub(super) struct Watch {
    body: Body,
    lease_until_ms: Option<u64>,
    kill_grace: Duration,
    events: Receiver<Event>,
    status: Option<WaitStatus>,
    all_gone: bool,
}

impl Watch {
    /// Starts to listen to the node and to wait for children.
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

    /// Waits for the body's end, or brings it about, and clears up what it leaves behind.
    pub(super) fn until_all_is_over(mut self) -> Ended {
        let by = self.until_an_end();
        if by != EndedBy::Itself && !self.all_gone {
            self.signal_group(Signal::TERM);
            self.settle(self.kill_grace);
        }
        // Usually nothing is left, and the reaper says so within microseconds.
        self.settle(Duration::from_millis(1));
        if by == EndedBy::Itself && !self.all_gone {
            descendants::ask_all_to_end();
            self.settle(self.kill_grace.min(LEFTOVERS_GRACE));
        }
        while !self.all_gone {
            self.signal_group(Signal::KILL);
            if let Some(group) = &self.body.group {
                // It fails if the body had the right to remove its own group, and did.
                let _ = group.kill();
            }
            descendants::kill_all();
            self.settle(KILL_AGAIN_AFTER);
        }
        let ended = self.ended(by);
        if let Some(group) = &self.body.group {
            // Usually it is empty now. Who was moved into it from elsewhere belongs to the body.
            while !group.end(KILL_AGAIN_AFTER) && !group.is_empty() {}
        }
        ended
    }

    fn until_an_end(&mut self) -> EndedBy {
        loop {
            let event = match self.lease_until_ms {
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    let left = until.saturating_sub(monotonic_ms());
                    self.events.recv_timeout(Duration::from_millis(left))
                }
            };
            match event {
                Ok(Event::Told(Command::Stop)) => return EndedBy::Stop,
                Ok(Event::NodeGone) => return EndedBy::NodeGone,
                Ok(Event::Told(Command::Lease { until_ms })) => {
                    // What a frozen node sends when it thaws must not revive what it lost.
                    if self.lease_until_ms.is_some_and(|until| until <= monotonic_ms()) {
                        return EndedBy::Lease;
                    }
                    self.lease_until_ms = Some(until_ms);
                }
                Ok(Event::Told(Command::Go)) => {}
                Ok(event @ (Event::Reaped(..) | Event::AllGone)) => {
                    self.note(&event);
                    if self.status.is_some() || self.all_gone {
                        return EndedBy::Itself;
                    }
                }
                Err(RecvTimeoutError::Timeout) => return EndedBy::Lease,
                Err(RecvTimeoutError::Disconnected) => return EndedBy::NodeGone,
            }
        }
    }

    /// Waits for all to be gone, but not longer than `patience`.
    fn settle(&mut self, patience: Duration) {
        let deadline = monotonic_ms().saturating_add(millis(patience));
        while !self.all_gone {
            let left = deadline.saturating_sub(monotonic_ms());
            match self.events.recv_timeout(Duration::from_millis(left)) {
                Ok(event) => self.note(&event),
                Err(_) => return,
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Reaped(pid, status) if *pid == self.body.pid => self.status = Some(*status),
            Event::AllGone => self.all_gone = true,
            Event::Reaped(..) | Event::Told(_) | Event::NodeGone => {}
        }
    }

    /// How the body ended, and what it has used. A group counts also those whose parents never
    /// asked how they ended.
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
        // Once its leader is reaped, the number may be a stranger's.
        if self.status.is_some() {
            return;
        }
        // It fails when the group is empty, which is what is wanted.
        let _ = kill_process_group(self.body.pid, signal);
    }
}

fn listen(commands: impl BufRead, events: &Sender<Event>) {
    for line in commands.lines() {
        let Ok(line) = line else { break };
        if let Some(command) = Command::parse(&line, monotonic_ms())
            && events.send(Event::Told(command)).is_err()
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

/// Processor time in microseconds and peak memory in kilobytes of all that was reaped.
fn usage_of_reaped() -> (u64, i64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (0, 0) };
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    (u64::try_from(cpu_us).unwrap_or(0), usage.max_rss())
}
