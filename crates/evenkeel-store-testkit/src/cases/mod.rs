//! The cases. The name of each is the sentence of the contract that it checks.
//!
//! Where the port's docs can be read in several ways, this is how they are read, here and in
//! [`ModelStore`](crate::model::ModelStore):
//!
//! **Nodes.** Only a live node fires and claims; a draining, dead, gone or unknown one gets
//! `Stale` for every job and delayed, and nothing from the queue. `finish` and `requeue` look at the
//! attempt's node and fence alone, so others end and requeue for a dead node by giving its number.
//! A draining node's ping is `Alive`; that of a dead, gone or unknown one is `Fenced`. Challenging
//! a challenged node again does not move the challenge. A dead or gone node is never challenged.
//! `steal` answers `true` for a node that is dead already. `join` calls every incarnation of the
//! identity that is not gone a former one.
//!
//! **Fire.** `Stale` is said before `Early`, `Early` before `Busy`. Skipped times are one record
//! under the key of the first, linked before the run: the record points at the old head, the run
//! at the record, the job at the run. `last_fired_at` is the greatest time that was fired or
//! skipped. A queued attempt 0 is the head from its firing; a trigger becomes the head when its
//! delayed is fired, not when it is asked for.
//!
//! **Numbers.** `executions` counts starts: claimed fires and claims, also of an attempt that went
//! back into the queue. An attempt's number is `executions` after its start, a skip record's is
//! `executions` as it was. A generation starts at 1 and only `order` and `move_jobs`
//! raise it.
//!
//! **Wakes.** To `get_run` a delayed is an attempt that nobody has had: no node, no number, fence 0;
//! `list_runs` and its totals leave it out. `fire_delayed` checks node, key and due time. A retry of
//! a job that is over ends its chain; so does a `requeue`, which records the attempt as cancelled and
//! answers `true`.
//!
//! **Finish.** History is counted in the order of the batch. Signals come from `announce` and from letters that say
//! `Settled` as far as the suite can tell: it asks for none from other verbs, and minds none.
//! What becomes of an attempt's notes and checkpoint is part of its end: a refused finish, or one
//! that had been recorded before, changes neither.
//!
//! **Notes.** Like `finish`, `note` looks at the attempt's node and fence alone. Notes of an
//! attempt are shown while it runs under the fence they were made under; `requeue` forgets them
//! and keeps the checkpoint. A message to a node that is gone or never was is dropped.
//!
//! **Trigger.** The key's time is now, its sequence `Sequence::new(Trigger, n)` or the next free
//! one. `OverlapPolicy::may_start` judges, on all live chains. A paused job may be triggered.
//!
//! **Keys.** Who holds a key is returned by the last who took it: by being registered, triggered, tried again,
//! taken up, resumed or changed. A job that holds its key and is resumed or changed took it when it did
//! before. Whether a trigger is a duplicate is returned before whether the job is busy.
//!
//! **Changed jobs.** `register` and `order` tell a job to its scheduler if it has a next time in
//! the slot of now, the one after, or an earlier one; a job that is over is not returned.
//!
//! **Over.** A job is over once it is cancelled or deleted. To the engine both are the same; users
//! see that a cancelled one was, and its name stays taken.
//!
//! **Pause.** It stops chains for times up to its moment, that included. What was withdrawn is how
//! the job's last attempt ended, whoever withdrew it.
//!
//! **Delete.** What waits (in the queue, or for its time) becomes a cancelled attempt that ended
//! at the time of the deletion and never started. Runs of a deleted job can be read and listed,
//! also by its id.
//!
//! **Lists.** `next` is the key of the last item, and `None` if nothing follows. Attempts of one
//! chain come newest first. Prefixes are compared message by message, case included, and no message
//! is special.
//!
//! **Pages.** Sizes are counted after cleaning. `NoRoom` for a known page does not note it as seen. A
//! search wants every term in the title or in the text; terms may be spread over both. A snippet is of
//! the text; where only the title fits it is the beginning. A job that is deleted, or not the
//! tenant's, has no pages to list.
//!
//! **Events.** A place where some were lost is one of those kept. `gap` is said if something follows the
//! place asked for, and either nothing at or before that place is kept or one of those places was
//! looked at. Events of other tenants are looked at and not returned.
//!
//! **Openings.** An attempt may be claimed from `open_from` on and before `open_until`. One that is
//! closed or forbids the node keeps its place and takes nobody else's.
//!
//! **Supersede.** It leaves alone what is asked to end already, whoever asked. To `finish` and
//! `requeue`, a superseded attempt is one that is asked to end, but that `requeue` records it as
//! superseded.
//!
//! **Next times that follow.** `finish` moves the next time whoever wanted the run ended, but not if
//! the end stops the job. It tells the scheduler however far the new time is. A chain ended badly if
//! the attempt that ended it failed or timed out.
//!
//! **What runs.** A record of skipped times is no chain: it does not hide the run that goes on.
//!
//! **Watch.** Commands are orders, `trigger`, and a `cancel_run` that withdraws. `touched` of a job
//! that comes back to the list is another one than it had. An attempt should have started if its
//! deadline is before now. A judgement that takes a job off the list forgets its level.
//!
//! **Balance.** A job is placed when its promise begins to count: `placed_at` is `since`, and a move
//! sets both. A move changes neither what the job counts for nor `updated_at`. A placement of a job
//! that counts for nothing has no rhythm and no cost. Whoever begins a rebalance stops those of the
//! tenant that nobody has touched for long; one that goes on is begun again only if it was not
//! touched for long, and one that is over or was undone is answered as it is. `end_rebalance` changes
//! nothing but what goes on. `move_jobs` does not make a move to a rhythm that is not given with it,
//! and answers `Stopped` for a batch that was never planned. A rebalance that is forgotten is one of
//! the oldest.
//!
//! **Prune.** An ended row is kept while it is among the newest (its number is above `executions -
//! keep_per_job`) *and* ended at or after `keep_since`; else it goes, unless it is the attempt of
//! its job that was the last to end well, or the last to fail or time out. Each step also forgets the notes that ended
//! attempts it looked at have left, and the checkpoints of runs of which nothing runs or waits.

#![expect(missing_docs, reason = "a case's name is the sentence it checks")]
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
