//! The conformance cases for stores. The name of each case is the rule of the store interface that
//! it checks.
//!
//! Where the doc comments of the store operations are not precise, the cases and
//! [`ModelStore`](crate::model::ModelStore) interpret them as follows:
//!
//! **Nodes.** Only a live node fires and claims. A draining, dead, removed or unknown node gets
//! `Stale` for every fire, and no attempts from the queue. `finish` and `requeue` check only the
//! node and fence of the attempt, so other nodes can finish and requeue attempts of a dead node by
//! passing the number of the dead node. The ping of a draining node returns `Alive`; the ping of a
//! dead, removed or unknown node returns `Fenced`. Challenging a node again does not change the
//! time of the first challenge. A dead or removed node is never challenged. `steal` returns `true`
//! for a node that is already dead. `join` returns all earlier node numbers of the same identity
//! that are not removed.
//!
//! **Fire.** If several results apply, `Stale` takes precedence over `Early`, and `Early` over
//! `Busy`. Skipped times are stored as one record under the key of the first skipped time. The job
//! points to the new run, the run points to the skip record, and the skip record points to the
//! previous run. `last_fired_at` is the latest scheduled time that was fired or skipped. A queued
//! first attempt is the job's newest run as soon as it is fired; a trigger becomes the newest run
//! when it is fired, not when it is requested.
//!
//! **Numbers.** `executions` counts the starts of attempts, including those of a requeued attempt.
//! The number of an attempt is the value of `executions` after its start; the number of a skip
//! record is the current value of `executions`. The generation of a job starts at 1, and only
//! `apply_commands` and `move_jobs` increment it.
//!
//! **Delayed attempts.** For a retry or trigger that waits for its due time, `get_attempt` returns
//! no node, no number and fence 0. `list_attempts` and its totals leave out attempts that wait for
//! their due time. `fire_delayed` checks the node, the key and the due time. If a job was cancelled
//! or deleted, a `finish` that asks for a retry ends the run, and `requeue` records the attempt as
//! cancelled and returns `true`.
//!
//! **Finish.** Results update the job's history in the order of the batch. The cases expect signals
//! only from `announce` and from messages of the kind `Ended`; other signals are allowed. A result
//! that is rejected or was already stored changes neither the progress nor the checkpoint of the
//! attempt.
//!
//! **Progress.** Like `finish`, `save_progress` checks only the node and fence of the attempt.
//! Progress and log are visible while the attempt runs with the same fence; `requeue` deletes
//! progress and log and keeps the checkpoint. A message to a removed or unknown node is dropped.
//!
//! **Trigger.** The scheduled time of a triggered run is now, and its sequence number is
//! `Sequence::new(Trigger, n)` or the next free number. `OverlapPolicy::may_start` decides whether
//! the run may start, given all active runs of the job. A paused job can be triggered.
//!
//! **Deduplication keys.** The holder of a key is the last job that took it by being registered,
//! triggered, retried, redriven, resumed or changed. A job that already holds its key and is
//! resumed or changed keeps the time at which it took the key. If a triggered job is both a
//! duplicate and busy, `trigger` reports the duplicate.
//!
//! **Changed jobs.** `register` and `apply_commands` notify the scheduler of a job if its next
//! scheduled time is in the current time slot, the next one, or an earlier one. The scheduler is
//! not notified of cancelled and deleted jobs.
//!
//! **Cancelled and deleted.** The engine treats cancelled and deleted jobs alike. Users still see
//! cancelled jobs, and their names stay taken.
//!
//! **Pause.** A pause stops runs whose scheduled time is at or before the time of the pause. An
//! attempt that is cancelled while waiting sets the last outcome of the job, whatever cancelled it.
//!
//! **Delete.** The waiting attempts of a deleted job become cancelled attempts that never started;
//! their finish time is the time of the deletion. Attempts of a deleted job can be read and listed,
//! also by the id of the job.
//!
//! **Lists.** The cursor `next` of a list is the position of the last item of the page, or `None`
//! on the last page. Attempts of the same run are listed newest first. Filters by prefix compare
//! text exactly; no character of the prefix has a special meaning.
//!
//! **Searches of jobs.** A job that is indexed again after a change is found by its new text only. A
//! search that many jobs match is answered without the search index, and is then up to date.
//!
//! **Pages.** The size of a web page is measured after its text is cleaned. If saving a page that
//! is already stored returns `NoRoom`, the `seen_at` of the page does not change. A search requires
//! every term in the title or in the text; some terms may be in the title and others in the text. A
//! snippet is part of the text; if only the title matches, the snippet is the beginning of the
//! text. Pages of a job that is deleted or belongs to another tenant are not listed.
//!
//! **Events.** A gap marker counts as one stored event. `gap` is true if an event follows the
//! requested position and either no event up to that position is stored or a gap marker was read.
//! Events of other tenants are read but not returned.
//!
//! **Claim windows.** An attempt may be claimed from `open_from` on and before `open_until`. An
//! attempt that is outside its claim window or excludes the node keeps its position and does not
//! block other attempts.
//!
//! **Supersede.** `supersede` does not change attempts that were already asked to stop. `finish`
//! and `requeue` treat a superseded attempt like one that was asked to stop, except that `requeue`
//! records it as superseded.
//!
//! **Schedules that depend on the end of a run.** `finish` sets the next scheduled time even if the
//! run was asked to stop, but not if the result stops the job. `finish` notifies the scheduler of
//! the new scheduled time, however far in the future it is. A run has failed if its last attempt
//! failed or timed out.
//!
//! **Running attempts.** A record of skipped times is not a run, and does not hide the active run
//! of its job.
//!
//! **At-risk jobs.** An at-risk job is judged again after `apply_commands`, after `trigger`, and
//! after a `cancel_run` of a waiting attempt. When a job is marked as at risk again, its `touched`
//! differs from all its earlier values. An attempt is overdue if its deadline is before now. A
//! judgement after which a job is no longer at risk deletes the stored condition of the job.
//!
//! **Balance.** `placed_at` is the time when the start time of a job was chosen. `placed_at` equals
//! `since`, and a move to another start time sets both fields. A move to another start time changes
//! neither the cost of the job nor `updated_at`. The `Placement` of a job that is not counted as
//! load has no load profile and no cost. `begin_rebalance` stops other rebalances of the tenant
//! that have moved no job since `silent_before`. A running rebalance begins again only if it has
//! moved no job since `silent_before`; a finished or undone rebalance is returned unchanged.
//! `end_rebalance` changes only a running rebalance. `move_jobs` does not move a job whose new load
//! profile is missing in the batch, and returns `Stopped` for a batch that was never planned.
//! Pruning deletes the oldest rebalances first.
//!
//! **Prune.** A finished attempt is kept while it is among the newest of its job (its number is
//! above `executions - keep_per_job`) *and* finished at or after `keep_since`. A finished attempt
//! that is not among the newest or not recent is deleted, unless it is the job's last successful
//! attempt or the last that failed or timed out. Each pruning step also deletes the progress and
//! logs of the finished attempts that it reads, and the checkpoints of runs that have no active
//! attempt.

#![expect(clippy::unwrap_used, reason = "a case fails by panicking")]

pub mod activity;
pub mod aging;
pub mod api_keys;
pub mod at_risk;
pub mod attempt_lists;
pub mod audit;
pub mod balance_counts;
pub mod balance_moves;
pub mod balance_plans;
pub mod bulk;
pub mod cancel;
pub mod cancel_job;
pub mod checkpoints;
pub mod claim;
pub mod claim_windows;
pub mod command_races;
pub mod commands;
pub mod consecutive_failures;
pub mod dead_letters;
pub mod dedup;
pub mod dedup_races;
pub mod dedup_runs;
pub mod delayed_attempts;
pub mod delete;
pub mod events;
pub mod finish;
pub mod fire;
pub mod history;
pub mod job_fields;
pub mod job_search;
pub mod judging;
pub mod limit_queues;
pub mod limit_races;
pub mod limited_attempts;
pub mod limits;
pub mod list;
pub mod list_due;
pub mod list_filters;
pub mod list_walks;
pub mod load_recount;
pub mod look_ahead;
pub mod node_messages;
pub mod node_races;
pub mod nodes;
pub mod numbers;
pub mod overdue;
pub mod override_outcome;
pub mod override_races;
pub mod override_requeue;
pub mod owned;
pub mod page_lists;
pub mod page_search;
pub mod pages;
pub mod pause;
pub mod periodic;
pub mod postpone;
pub mod priorities;
pub mod progress;
pub mod prune;
pub mod purge;
pub mod queue_depths;
pub mod races;
pub mod recent_runs;
pub mod register;
pub mod reprioritize;
pub mod requests;
pub mod requeue;
pub mod retry;
pub mod run_attempts;
pub mod run_stats;
pub mod secrets;
pub mod steal;
pub mod store;
pub mod supersede;
pub mod targets;
pub mod tenants;
pub mod trigger;
pub mod update;
pub mod waiting_attempts;
