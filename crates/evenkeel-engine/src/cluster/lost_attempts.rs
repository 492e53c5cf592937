//! Requeues or fails attempts that stopped running without a result. The engine gives up attempts
//! only through this module, so the job's `on_lost_worker` policy always applies.

use evenkeel_core::after_attempt::after_final_failure;
use evenkeel_core::aging::Aging;
use evenkeel_core::attempt::{AttemptState, Event, Loss, step};
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::{DeathReason, Hook, hook_of_dead};
use evenkeel_core::{Definition, NodeNo, Span, Timestamp};
use evenkeel_store::{
    AfterLoss, Finish, FinishResult, LostEnd, OwnedAttempt, QueueEntry, QueueWait, Requeue,
    StoreError, Then,
};

use crate::cluster::node_context::NodeContext;
use crate::worker::open_attempt::{LossInfo, deadline_without_history};

/// The node from which attempts are taken to requeue or fail them.
#[derive(Copy, Clone, Debug)]
pub struct FormerOwner<'a> {
    pub node: NodeNo,
    pub name: &'a str,
    /// Time of the node's last ping. It is unknown whether the node's attempts still ran after its
    /// last ping.
    pub heard_until: Timestamp,
}

/// Attempts that were taken from a node, grouped into requeued and failed attempts.
#[derive(Debug, Default)]
pub struct GivenBack {
    pub queued: Vec<Requeue>,
    pub failed: Vec<Finish>,
}

impl GivenBack {
    pub fn count(&self) -> usize {
        self.queued.len() + self.failed.len()
    }
}

impl FormerOwner<'_> {
    /// Describes this node as the former owner of attempts that it requeues or fails.
    pub fn own(ctx: &NodeContext) -> FormerOwner<'_> {
        let name = &ctx.settings.node_name;
        FormerOwner { node: ctx.node, name, heard_until: Timestamp::MAX }
    }

    /// Builds the store request that requeues or fails an attempt which this node owns but does not
    /// run. `known` says why the attempt was lost; it is `None` if the attempt never started.
    pub fn lost(
        &self,
        ctx: &NodeContext,
        owned: &OwnedAttempt,
        known: Option<LossInfo>,
    ) -> Requeue {
        self.requeue(ctx, owned, known.map_or(Loss::NeverStarted, |lost| lost.loss), known)
    }

    /// Builds the store request that takes an attempt from this former owner.
    pub fn requeue(
        &self,
        ctx: &NodeContext,
        owned: &OwnedAttempt,
        loss: Loss,
        known: Option<LossInfo>,
    ) -> Requeue {
        let now = ctx.db_now();
        let then = match ctx.definitions.read(owned.key.job_no, &owned.definition) {
            Ok(definition) => {
                let aging = &ctx.settings.aging;
                decide(self, owned, &definition, loss, known, now, aging)
            }
            Err(fault) => AfterLoss::Fail(LostEnd {
                started_at: owned.started_at,
                finished_at: now.max(owned.started_at),
                error: fault.to_string(),
                then: Then::END,
                hook: Hook::None,
                unstored_since: now,
            }),
        };
        let crashed = loss.is_crash();
        Requeue { key: owned.key, fence: owned.fence, tenant: owned.tenant, crashed, then }
    }

    /// Requeues or fails the attempts in the store. Attempts that fail are counted, logged and sent
    /// to event listeners.
    pub async fn give_back(
        &self,
        ctx: &NodeContext,
        batch: Vec<Requeue>,
    ) -> Result<GivenBack, StoreError> {
        let mut taken = GivenBack::default();
        let answers = ctx.store.requeue(self.node, batch.clone(), NodeContext::NOW).await?;
        for (requeue, _) in batch.into_iter().zip(answers).filter(|(_, is_taken)| *is_taken) {
            match requeue.finish() {
                Some(end) => taken.failed.push(end),
                None => taken.queued.push(requeue),
            }
        }
        let results = vec![FinishResult::Done; taken.failed.len()];
        ctx.worker.stats.ended(&taken.failed, &results);
        ctx.overlap_waits.ended(taken.failed.iter().map(|end| end.key.job_no));
        ctx.report_ended(&taken.failed, &results);
        Ok(taken)
    }
}

/// Lets [`step`] decide whether an attempt is requeued or fails, and builds the store request for
/// the decision.
fn decide(
    from: &FormerOwner<'_>,
    owned: &OwnedAttempt,
    definition: &Definition,
    loss: Loss,
    known: Option<LossInfo>,
    now: Timestamp,
    aging: &Aging,
) -> AfterLoss {
    let (by, fence, crashes) = (from.node, owned.fence, owned.crashes);
    let (then, max_crashes) = (definition.on_lost_worker, definition.max_crashes);
    let state = AttemptState::Running { owner: by, fence, crashes };
    let lost = Event::Lost { by, fence, loss, then, max_crashes };
    if let Ok(AttemptState::Ready { .. }) = step(state, lost) {
        // The time that the attempt waited before its start counts for aging, but the time in which
        // it ran does not.
        let waited = known.map_or_else(|| waited_before(owned, definition), |lost| lost.waited);
        let waited =
            QueueWait { since: now.saturating_sub(waited), priority: owned.priority, aging };
        let should_start_by = deadline_without_history(definition, owned.key.scheduled_at);
        let average = definition.average(None);
        return AfterLoss::Queue(QueueEntry::new(
            definition, should_start_by, average, now, waited,
        ));
    }
    let lost_at = known.map_or(now, |lost| lost.at);
    let finished_at = lost_at.max(owned.started_at);
    let pause = definition.retry.pause_after(owned.key.attempt);
    AfterLoss::Fail(LostEnd {
        started_at: owned.started_at,
        finished_at,
        error: loss.describe(from.name, crashes.saturating_add(u16::from(loss.is_crash()))),
        then: after_final_failure(definition, finished_at, pause),
        hook: hook_of_dead(&definition.on_failure, DeathReason::WorkerLost),
        unstored_since: finished_at.min(from.heard_until),
    })
}

/// Returns how long an attempt waited in the queue before it started. Returns 0 for a retry and for
/// an attempt that ran before, because the store does not know their waiting time.
fn waited_before(owned: &OwnedAttempt, definition: &Definition) -> Span {
    if owned.key.attempt != evenkeel_core::AttemptNo::FIRST || owned.fence != Fence::NONE.next() {
        return Span::ZERO;
    }
    let average = definition.average(None);
    owned.started_at.since(definition.may_start_from(owned.key.scheduled_at, average))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::job::{OnExhausted, OnLostWorker};
    use evenkeel_core::on_failure::OnFailure;
    use evenkeel_core::schedule::{Interval, Schedule};
    use evenkeel_core::{AttemptKey, TenantNo};

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn owned(attempt: u16, fence: u32) -> OwnedAttempt {
        let key = AttemptKey::regular(evenkeel_core::JobNo(1), at(3_600));
        OwnedAttempt {
            key: key.with_attempt(evenkeel_core::AttemptNo(attempt)),
            fence: Fence(fence),
            tenant: TenantNo(1),
            started_at: at(3_700),
            crashes: 0,
            definition: String::new(),
            priority: None,
        }
    }

    fn job() -> Definition {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        Definition::noop(Schedule::Interval(every))
    }

    const LATER: i64 = 3_700 + 36_000;

    fn after(
        owned: &OwnedAttempt,
        definition: &Definition,
        loss: Loss,
        known: Option<LossInfo>,
        heard_until: i64,
    ) -> AfterLoss {
        let from = FormerOwner { node: NodeNo(1), name: "a", heard_until: at(heard_until) };
        decide(&from, owned, definition, loss, known, at(LATER), &Aging::default())
    }

    #[test]
    fn running_time_does_not_count_as_waiting_time() {
        let known = |secs| {
            let (loss, at) = (Loss::NodeDrained, at(LATER));
            Some(LossInfo { loss, at, waited: Span::from_secs(secs) })
        };
        // The store does not know the waiting time of a retry, or of an attempt that ran before.
        // Only the node that claimed a retry knows how long the retry had waited.
        for (attempt, fence, known, waited) in
            [(0, 1, None, 100), (1, 1, None, 0), (0, 3, None, 0), (1, 5, known(30), 30)]
        {
            let decision = after(&owned(attempt, fence), &job(), Loss::NodeDied, known, LATER);
            let AfterLoss::Queue(entry) = decision else { panic!("{decision:?}") };
            assert_eq!(entry.since, at(LATER - waited), "{attempt} {fence}");
            assert_eq!(entry.should_start_by, deadline_without_history(&job(), at(3_600)));
        }
    }

    #[test]
    fn attempt_with_the_fail_policy_is_requeued_only_if_no_body_started() {
        let job = Definition {
            on_lost_worker: OnLostWorker::Fail,
            on_exhausted: OnExhausted::Stop,
            on_failure: OnFailure::DeadLetter,
            ..job()
        };
        for loss in Loss::ALL {
            let known = Some(LossInfo { loss, at: at(3_800), waited: Span::ZERO });
            let decision = after(&owned(0, 1), &job, loss, known, LATER);
            if loss == Loss::NeverStarted {
                assert!(matches!(decision, AfterLoss::Queue(_)), "{decision:?}");
                continue;
            }
            let AfterLoss::Fail(end) = decision else { panic!("{loss:?} starts it again") };
            assert_eq!((end.started_at, end.finished_at), (at(3_700), at(3_800)));
            assert_eq!(end.error, loss.describe("a", 1));
            assert_eq!(end.then, Then::EndRun { stop_job: true, next_at: None });
            assert_eq!(end.hook, Hook::DeadLetter(DeathReason::WorkerLost));
            assert_eq!(end.unstored_since, at(3_800));
        }
    }

    #[test]
    fn end_of_a_dead_nodes_attempt_is_unknown_since_the_last_ping() {
        let job = Definition { max_crashes: 0, ..job() };
        let decision = after(&owned(0, 1), &job, Loss::NodeDied, None, 3_750);
        let AfterLoss::Fail(end) = decision else { panic!("{decision:?}") };
        assert_eq!((end.finished_at, end.unstored_since), (at(LATER), at(3_750)));
    }
}
