//! Computes the past of the sample jobs: when their runs started and how they ended.
//!
//! The result of each attempt is what the noop executor would have done, so past runs look like the
//! runs that follow. Older runs of frequent jobs, which a real server would have pruned, only count
//! as activity.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use evenkeel_core::advance::{SkipReason, SkippedTimes};
use evenkeel_core::after_attempt::{Ended, after_end};
use evenkeel_core::aging::Aging;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::hook_of;
use evenkeel_core::window::Past as PastOfJob;
use evenkeel_core::{
    AttemptKey, AttemptNo, Definition, LogChunk, LogStream, RunLog, Sequence, Span, TenantNo,
    Timestamp,
};
use evenkeel_executors::{Rehearsal, Report, rehearse};
use evenkeel_store::{
    Attachments, Finish, Fire, FireDelayed, QueueEntry, QueueWait, Results, RunLink, Start, Then,
};

use super::register::Placed;
use super::sample::Story;
use super::tally::{Ending, Tally};

/// Number of jobs that start at the same moment. If more jobs are due, the others start later.
const AT_ONCE: usize = 50;
/// How much later each further [`AT_ONCE`] jobs start.
const BETWEEN: u64 = 90_000;

/// What a node has written about a job.
pub enum Op {
    Fire(Timestamp, Fire),
    Retry(Timestamp, FireDelayed),
    /// The fence is known when the run has been fired.
    Finish(Finish),
}

/// What happens next, in this order if several events happen at the same time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    End,
    Retry,
    Due,
}

type Event = Reverse<(Timestamp, Kind, usize)>;

/// A run that has not ended.
struct Active {
    key: AttemptKey,
    is_stored: bool,
    at: Stage,
}

enum Stage {
    /// Waits for a worker, or for its retry.
    Waits(SkipReason),
    Runs {
        since: Timestamp,
        rehearsal: Rehearsal,
    },
}

struct PastJob {
    placed: Placed,
    /// The definition before the job broke, and when that was.
    before: Option<(Definition, Timestamp)>,
    /// No run time from then on is due, because the job is paused.
    until: Timestamp,
    head: Option<RunLink>,
    active: Option<Active>,
    /// Start and duration of the last run that succeeded.
    succeeded: Option<(Timestamp, Span)>,
    ops: VecDeque<Op>,
}

pub struct Past {
    tenant: TenantNo,
    aging: Aging,
    now: Timestamp,
    jobs: Vec<PastJob>,
    events: BinaryHeap<Event>,
    tally: Tally,
}

impl Past {
    pub fn new(tenant: TenantNo, aging: Aging, placed: Vec<Placed>, now: Timestamp) -> Self {
        let jobs: Vec<PastJob> = placed.into_iter().map(|it| PastJob::new(it, now)).collect();
        let first = |(index, job): (usize, &PastJob)| {
            job.placed.counted_from.map(|at| Reverse((at, Kind::Due, index)))
        };
        let events = jobs.iter().enumerate().filter_map(first).collect();
        Self { tenant, aging, now, jobs, events, tally: Tally::new(tenant) }
    }

    /// Returns what happened up to now: what to write about each job, in order, and the counts.
    pub fn play(mut self) -> (Vec<VecDeque<Op>>, Tally) {
        while let Some((at, kind, job)) = self.pop() {
            match kind {
                Kind::End => self.end(job, at),
                Kind::Retry => self.retry(job, at),
                Kind::Due => {
                    let mut due = vec![job];
                    while self.events.peek().is_some_and(|next| next.0.0 == at) {
                        due.extend(self.events.pop().map(|Reverse((.., job))| job));
                    }
                    self.due(at, &due);
                }
            }
        }
        (self.jobs.into_iter().map(|job| job.ops).collect(), self.tally)
    }

    fn pop(&mut self) -> Option<(Timestamp, Kind, usize)> {
        let Reverse(event) = self.events.pop()?;
        (event.0 <= self.now).then_some(event)
    }

    fn push(&mut self, at: Timestamp, kind: Kind, job: usize) {
        self.events.push(Reverse((at, kind, job)));
    }

    /// Fires the jobs that are due at the same time.
    fn due(&mut self, at: Timestamp, jobs: &[usize]) {
        for (nth, jobs) in (0..).zip(jobs.chunks(AT_ONCE)) {
            let start = at.saturating_add(lateness(at, nth));
            // The server will fire jobs that would start after now.
            if start <= self.now {
                jobs.iter().for_each(|job| self.fire(*job, at, start));
            }
        }
    }

    /// Starts a run, or skips a run time.
    fn fire(&mut self, index: usize, due: Timestamp, start: Timestamp) {
        let job = &mut self.jobs[index];
        if due >= job.until {
            return;
        }
        let follows_its_end = job.placed.definition.schedule.follows_its_end();
        let timetable = job.placed.definition.timetable();
        let next_at = timetable.next_after(if follows_its_end { start } else { due });
        let is_stored = job.placed.stored_from.is_some_and(|from| due >= from);
        let mut fire = Fire {
            job: job.placed.no,
            tenant: self.tenant,
            generation: 1,
            due,
            head: job.head,
            skip: None,
            start: None,
            idle_only: false,
            next_at,
        };
        if let Some(active) = &job.active {
            let reason = match active.at {
                Stage::Waits(reason) => reason,
                Stage::Runs { .. } => SkipReason::Overlap,
            };
            fire.skip = Some(SkippedTimes { from: due, to: due, count: 1, reason });
            self.tally.skipped(start, reason);
        } else {
            let key = AttemptKey::regular(job.placed.no, due);
            let lacks_worker = job.lacks_worker(due, self.now);
            let (at, how) = if lacks_worker {
                let entry = job.queue_entry(due, start, &self.aging);
                (Stage::Waits(SkipReason::Overlap), Start::Queued(entry))
            } else {
                self.tally.started(start, start.since(due));
                (job.runs(key, start), Start::Claimed)
            };
            self.tally.fired(start);
            job.active = Some(Active { key, is_stored, at });
            fire.start = Some((due, how));
        }
        let starts = fire.start.is_some();
        if is_stored {
            job.head = Some(RunLink { scheduled_at: due, sequence: Sequence::REGULAR });
            job.ops.push_back(Op::Fire(start, fire));
        }
        if starts {
            self.will_end(index);
        }
        // The next run time of a periodic job is known when its run has ended.
        if let Some(next) = next_at.filter(|_| !follows_its_end) {
            self.push(next, Kind::Due, index);
        }
    }

    fn retry(&mut self, index: usize, due: Timestamp) {
        let start = due.saturating_add(lateness(due, 0)).min(self.now);
        let tenant = self.tenant;
        let job = &mut self.jobs[index];
        let Some(Active { key, is_stored, .. }) = job.active else { return };
        let at = job.runs(key, start);
        job.active = Some(Active { key, is_stored, at });
        if is_stored {
            let fire = FireDelayed { due, key, tenant, start: Start::Claimed };
            job.ops.push_back(Op::Retry(start, fire));
        }
        self.will_end(index);
    }

    /// Plans the end of a run that has started. A run that would end after now ends now.
    fn will_end(&mut self, index: usize) {
        if let Some(Active { at: Stage::Runs { since, rehearsal }, .. }) = &self.jobs[index].active
        {
            let end = since.saturating_add(rehearsal.takes).min(self.now);
            self.push(end, Kind::End, index);
        }
    }

    fn end(&mut self, index: usize, at: Timestamp) {
        let job = &mut self.jobs[index];
        let Some(Active { key, is_stored, at: stage }) = job.active.take() else { return };
        let Stage::Runs { since, rehearsal } = stage else { return };
        let (report, took) = (&rehearsal.report, at.since(since));
        let ended = Ended {
            attempt: key.attempt,
            outcome: report.outcome,
            again: report.retry,
            started_at: since,
            finished_at: at,
        };
        let definition = &job.placed.definition;
        let then = after_end(definition, ended, 0.5);
        let hook = hook_of(definition, &ended, then);
        if report.outcome.is_success() {
            job.succeeded = Some((since, took));
        }
        let error = report.error.as_deref();
        self.tally.ended(&Ending { key, outcome: report.outcome, took, at, error, is_stored });
        if is_stored {
            job.ops.push_back(Op::Finish(Finish {
                key,
                fence: Fence::NONE,
                tenant: self.tenant,
                outcome: report.outcome,
                started_at: since,
                finished_at: at,
                results: results(report, &rehearsal, since, took),
                then,
                priority: None,
                attachments: Attachments::default(),
                judge: false,
                hook,
                unstored_since: None,
            }));
        }
        match then {
            Then::Retry { due } => {
                let key = key.with_attempt(AttemptNo(key.attempt.0 + 1));
                let at = Stage::Waits(SkipReason::RetryPending);
                job.active = Some(Active { key, is_stored, at });
                self.push(due, Kind::Retry, index);
            }
            Then::EndRun { next_at: Some(next), .. } => self.push(next, Kind::Due, index),
            Then::EndRun { next_at: None, .. } => {}
        }
    }
}

impl PastJob {
    fn new(placed: Placed, now: Timestamp) -> Self {
        let ago = |span| now.saturating_sub(span);
        let (mut before, mut until) = (None, Timestamp::MAX);
        match placed.story {
            Story::Ordinary | Story::WithoutWorkerFor(_) => {}
            Story::BrokenFor(span) => {
                let mut definition = placed.definition.clone();
                if let Some(config) = definition.executor.config.as_object_mut() {
                    config.remove("fail");
                }
                before = Some((definition, ago(span)));
            }
            Story::PausedFor(span) => until = ago(span),
        }
        Self {
            placed,
            before,
            until,
            head: None,
            active: None,
            succeeded: None,
            ops: VecDeque::new(),
        }
    }

    fn lacks_worker(&self, due: Timestamp, now: Timestamp) -> bool {
        matches!(self.placed.story, Story::WithoutWorkerFor(span) if due >= now.saturating_sub(span))
    }

    fn runs(&self, key: AttemptKey, since: Timestamp) -> Stage {
        let before = self.before.as_ref().filter(|(_, until)| key.scheduled_at < *until);
        let definition = before.map_or(&self.placed.definition, |(definition, _)| definition);
        // The configuration was checked when the job was read, so there is no fault.
        let rehearsal = rehearse(definition, key).unwrap_or_else(|fault| Rehearsal {
            takes: Span::ZERO,
            steps: 0,
            report: Report::failed(fault),
        });
        Stage::Runs { since, rehearsal }
    }

    fn queue_entry(&self, due: Timestamp, now: Timestamp, aging: &Aging) -> QueueEntry {
        let definition = &self.placed.definition;
        let (reference, average) = self.succeeded.unwrap_or((self.placed.created, Span::ZERO));
        let window = definition.window(due, &PastOfJob { reference, average });
        let waited = QueueWait { since: now, priority: None, aging };
        QueueEntry::new(definition, window.should_start_by, average, now, waited)
    }
}

/// Returns how late the `nth` group of jobs starts that are due at the same time. The first group
/// starts a few milliseconds late.
fn lateness(due: Timestamp, nth: u64) -> Span {
    let minute = due.as_micros().unsigned_abs() / 60_000_000;
    Span::from_micros(2_000 + minute.wrapping_mul(0x9e37_79b9) % 7_000 + nth * BETWEEN)
}

/// Returns the stored result of an attempt, with the lines that it printed after its steps.
fn results(report: &Report, rehearsal: &Rehearsal, since: Timestamp, took: Span) -> Results {
    let mut log = RunLog::default();
    for step in 1..=rehearsal.steps {
        let after = Span::from_micros(took.as_micros() / rehearsal.steps * step);
        let text = format!("{}\n", rehearsal.line(step));
        let (stream, at, offset) =
            (LogStream::Stdout, Some(since.saturating_add(after)), log.total);
        log.total += text.len() as u64;
        log.chunks.push(LogChunk { stream, at, offset, text });
    }
    let output = (rehearsal.steps > 0).then(|| log.encode());
    Results { error: report.error.clone(), output, ..Results::default() }
}
