//! The conformance cases. The name of each case is the sentence of the contract that it checks.
//!
//! Where the docs of the port leave room, the cases and [`ModelStore`](crate::model::ModelStore)
//! read them as follows:
//!
//! **Nodes.** Only a live node fires and claims. A draining, dead, gone or unknown node gets
//! `Stale` for every fire, and nothing from the queue. `finish` and `requeue` check only the node
//! and fence of the attempt, so other nodes can end and requeue attempts of a dead node by passing
//! its number. The ping of a draining node is `Alive`; that of a dead, gone or unknown node is
//! `Fenced`. Challenging a challenged node does not move the challenge. A dead or gone node is
//! never challenged. `steal` returns `true` for a node that is dead already. `join` returns all
//! earlier numbers of the identity that are not gone.
//!
//! **Fire.** `Stale` takes precedence over `Early`, and `Early` over `Busy`. Skipped times are one
//! record under the key of the first, linked before the run: the record links to the old head, the
//! run to the record, the job to the run. `last_fired_at` is the latest time that was fired or
//! skipped. A queued attempt 0 is the head from its firing on; a trigger becomes the head when it
//! is fired, not when it is requested.
//!
//! **Numbers.** `executions` counts starts: claimed fires and claims, also of a requeued attempt.
//! The number of an attempt is `executions` after its start; that of a skip record is the current
//! value. A generation starts at 1, and only `apply_commands` and `move_jobs` raise it.
//!
//! **Delayed attempts.** `get_attempt` returns a delayed attempt as one that no worker has
//! claimed: no node, no number, fence 0. `list_attempts` and its totals leave it out.
//! `fire_delayed` checks node, key and due time. A retry of a cancelled or deleted job ends its
//! run; so does a `requeue`, which records the attempt as cancelled and returns `true`.
//!
//! **Finish.** The history is counted in the order of the batch. The suite expects signals only
//! from `announce` and from messages of the kind `Ended`; other signals are allowed. What happens
//! to notes and checkpoint is part of the end: an end that is refused, or that was stored before,
//! changes neither.
//!
//! **Progress.** Like `finish`, `save_progress` checks only the node and fence of the attempt.
//! Notes are visible while the attempt runs under their fence; `requeue` deletes them and keeps
//! the checkpoint. A message to a node that is gone or unknown is dropped.
//!
//! **Trigger.** The time of the key is now, its sequence `Sequence::new(Trigger, n)` or the next
//! free one. `OverlapPolicy::may_start` decides, over all active runs. A paused job can be
//! triggered.
//!
//! **Deduplication keys.** The holder of a key is the last job that took it: by being registered,
//! triggered, retried, redriven, resumed or changed. A job that holds its key and is resumed or
//! changed keeps the time at which it took the key. A duplicate trigger is reported before a busy
//! job.
//!
//! **Changed jobs.** `register` and `apply_commands` notify the scheduler of a job if its next
//! time is in the current slot, the next slot or an earlier one. There is no notification of
//! cancelled and deleted jobs.
//!
//! **Cancelled and deleted.** To the engine both are the same; users see cancelled jobs, and their
//! names stay taken.
//!
//! **Pause.** It stops runs for times up to and including its moment. A withdrawn attempt counts
//! as the last outcome of the job, whatever withdrew it.
//!
//! **Delete.** Waiting attempts become cancelled attempts that ended at the time of the deletion
//! and never started. Attempts of a deleted job can be read and listed, also by its id.
//!
//! **Lists.** `next` is the position of the last item, or `None` if nothing follows. Attempts of
//! one run come newest first. Prefixes are compared exactly; no character is special.
//!
//! **Pages.** Sizes are counted after cleaning. `NoRoom` for a known page does not mark it as
//! seen. A search requires every term in the title or in the text; terms may be spread over both.
//! A snippet is from the text; if only the title matches, it is the beginning. A job that is
//! deleted or of another tenant has no pages to list.
//!
//! **Events.** A gap is one of the stored events. `gap` is true if something follows the requested
//! position, and either nothing at or before that position is stored or a gap was read. Events of
//! other tenants are read and not returned.
//!
//! **Claim windows.** An attempt may be claimed from `open_from` on and before `open_until`. An
//! attempt that is closed, or that excludes the node, keeps its position and blocks no other.
//!
//! **Supersede.** It leaves alone what is asked to end already. `finish` and `requeue` treat a
//! superseded attempt as one that is asked to end, except that `requeue` records it as superseded.
//!
//! **Next times that follow an end.** `finish` moves the next time even if the run was asked to
//! end, but not if the end stops the job. It notifies the scheduler however far the new time is. A
//! run failed if its last attempt failed or timed out.
//!
//! **Running attempts.** A record of skipped times is no run: it does not hide the active run.
//!
//! **At-risk jobs.** The commands that judge an at-risk job again are those of `apply_commands`,
//! `trigger`, and a `cancel_run` that withdraws. `touched` of a job that is marked again differs
//! from all earlier values. An attempt is overdue if its deadline is before now. A judgement that
//! ends the risk deletes the level.
//!
//! **Balance.** A job is placed when its promise begins to count: `placed_at` is `since`, and a
//! move sets both. A move changes neither the cost of the job nor `updated_at`. The placement of a
//! job that is not counted has no profile and no cost. `begin_rebalance` stops rebalances of the
//! tenant that were silent for long. A running rebalance begins again only if it was silent for
//! long; one that is done or undone is returned as it is. `end_rebalance` changes only a running
//! rebalance. `move_jobs` does not make a move to a profile that is not given with it, and returns
//! `Stopped` for a batch that was never planned. Pruning deletes the oldest rebalances first.
//!
//! **Prune.** An ended attempt is kept while it is among the newest (its number is above
//! `executions - keep_per_job`) *and* ended at or after `keep_since`. Otherwise it is deleted,
//! unless it is the last of its job to succeed, or the last to fail or time out. Each step also
//! deletes the notes of the ended attempts that it reads, and the checkpoints of runs that have no
//! active attempt.

#![expect(clippy::unwrap_used, reason = "a case fails by panicking")]

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
pub mod register;
pub mod reprioritize;
pub mod requests;
pub mod requeue;
pub mod retry;
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
