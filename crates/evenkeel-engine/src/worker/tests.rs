use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use evenkeel_core::schedule::{Once, Schedule};
use evenkeel_core::{Definition, JobNo, RunIds, Span, TenantNo, Timestamp};
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, LOG_BYTES_DEFAULT, NOOP};
use serde_json::Value;

use super::*;
use crate::chance::RandomChance;
use crate::clock::SystemClock;

/// An executor whose attempts run until they are cancelled.
struct Endless {
    begun: mpsc::UnboundedSender<Fence>,
}

#[async_trait]
impl Executor for Endless {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &NOOP
    }

    fn check(&self, _: TenantNo, _config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        Ok(())
    }

    async fn run(&self, invocation: Invocation) -> Report {
        self.begun.send(invocation.fence).unwrap();
        Report::cancelled(invocation.cancel.cancelled().await)
    }
}

struct Rig {
    worker: Arc<Worker>,
    begun: mpsc::UnboundedReceiver<Fence>,
    ended: mpsc::UnboundedReceiver<Finish>,
}

const SLOTS: usize = 4;

impl Rig {
    fn new() -> Self {
        let (begun, begins) = mpsc::unbounded_channel();
        let (ended, ends) = mpsc::unbounded_channel();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let worker = Worker::new(WorkerParts {
            slots: Arc::new(Slots::new(SLOTS)),
            registry: Arc::new(Registry::new().with(Arc::new(Endless { begun }))),
            lease: Lease::endless(),
            clock: Arc::clone(&clock),
            db_clock: Arc::new(DbClock::new(clock)),
            chance: Arc::new(RandomChance::from_seed(1)),
            run_ids: RunIds::new(b"test"),
            ended,
            log_bytes: LOG_BYTES_DEFAULT,
        });
        Self { worker: Arc::new(worker), begun: begins, ended: ends }
    }

    /// Takes a worker slot and starts the attempt, as the claimer does.
    fn start(&self, fence: u32) {
        assert_eq!(self.worker.take_slots(1), 1);
        self.worker.start(AttemptToStart {
            key: key(),
            fence: Fence(fence),
            tenant: TenantNo(1),
            definition: Arc::new(Definition::noop(Schedule::Once(Once::NOW))),
            started_at: Timestamp::from_micros(1_000_000),
            waited: Span::ZERO,
            checkpoint: None,
            priority: None,
        });
    }

    fn end_by_message(&self, fence: u32) {
        self.worker.deliver(NodeMessage {
            key: key(),
            fence: Fence(fence),
            kind: MessageKind::Ended,
        });
    }

    async fn wait_until_all_closed(&self) {
        while self.worker.open_count() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(self.worker.slots.free(), SLOTS);
    }
}

fn key() -> AttemptKey {
    AttemptKey::regular(JobNo(7), Timestamp::from_micros(1_000_000))
}

#[tokio::test]
async fn body_of_an_overridden_attempt_is_cancelled_without_a_result() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    rig.end_by_message(1);
    rig.wait_until_all_closed().await;
    assert!(rig.ended.try_recv().is_err());
    assert_eq!(rig.worker.all_lost(), []);
}

#[tokio::test]
async fn attempt_overridden_before_its_start_has_no_body() {
    let mut rig = Rig::new();
    rig.end_by_message(1);
    rig.start(1);
    rig.wait_until_all_closed().await;
    assert!(rig.begun.try_recv().is_err());
    // The override message names fence 1, so a new claim with fence 2 starts the attempt.
    rig.start(2);
    assert_eq!(rig.begun.recv().await, Some(Fence(2)));
}

#[tokio::test]
async fn early_message_about_an_older_fence_does_not_affect_a_newer_one() {
    let mut rig = Rig::new();
    rig.end_by_message(1);
    rig.start(3);
    assert_eq!(rig.begun.recv().await, Some(Fence(3)));
    rig.end_by_message(1);
    rig.end_by_message(2);
    tokio::task::yield_now().await;
    assert_eq!(rig.worker.running(), [(key(), Fence(3))]);
}

#[tokio::test]
async fn attempt_claimed_again_waits_for_its_old_body_to_end() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    // This node claims the requeued attempt again before the message about the outcome override
    // arrives.
    rig.start(3);
    assert_eq!(rig.worker.slots.free(), SLOTS - 1);
    assert!(rig.worker.needs_reconcile.swap(false, Ordering::AcqRel), "a reconcile is requested");
    assert!(rig.begun.try_recv().is_err());
    rig.end_by_message(1);
    rig.wait_until_all_closed().await;
    assert!(rig.begun.try_recv().is_err());
    // After the attempt was requeued and claimed once more, it starts.
    rig.start(5);
    assert_eq!(rig.begun.recv().await, Some(Fence(5)));
}

#[tokio::test]
async fn message_that_overtakes_two_claims_affects_the_fence_it_names() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    rig.end_by_message(3);
    rig.end_by_message(1);
    rig.wait_until_all_closed().await;
    rig.start(3);
    rig.wait_until_all_closed().await;
    assert!(rig.begun.try_recv().is_err());
}

#[tokio::test]
async fn only_bodies_with_an_ended_fence_are_cancelled() {
    let mut rig = Rig::new();
    rig.start(2);
    assert_eq!(rig.begun.recv().await, Some(Fence(2)));
    assert_eq!(rig.worker.cancel_disowned([(key(), Fence(1))].into_iter()), 0);
    assert_eq!(rig.worker.cancel_disowned(rig.worker.running().into_iter()), 1);
    assert_eq!(
        rig.worker.cancel_disowned([(key(), Fence(2))].into_iter()),
        0,
        "it was cancelled before"
    );
    rig.wait_until_all_closed().await;
    assert!(rig.ended.try_recv().is_err());
}

#[tokio::test]
async fn early_messages_are_bounded() {
    let rig = Rig::new();
    for second in 0..5_000 {
        let key = AttemptKey::regular(JobNo(7), Timestamp::from_micros(second * 1_000_000));
        rig.worker.deliver(NodeMessage { key, fence: Fence(1), kind: MessageKind::Ended });
    }
    assert_eq!(lock(&rig.worker.early).ended_count(), 1024);
}

#[tokio::test]
async fn lowest_queued_rank_is_known_until_the_backlog_ends() {
    use evenkeel_core::aging::Rank;
    use evenkeel_core::order::Lane;

    let Rig { worker, .. } = Rig::new();
    assert_eq!(worker.lowest_queued(), [None; 3]);
    worker.note_queued_in(Lane::Standard, Rank(50));
    worker.note_queued_in(Lane::Standard, Rank(10));
    assert_eq!(worker.lowest_queued()[Lane::Standard as usize], Some(Rank(10)));
    assert_eq!(worker.lowest_queued()[Lane::Batch as usize], None);
    // A claim that leaves attempts in the queue, or may have missed some, does not end the backlog.
    worker.note_claimed(1, true, worker.queued_before());
    worker.note_claimed(1, false, worker.queued_before() - 1);
    assert!(worker.has_backlog());
    assert_eq!(worker.lowest_queued()[Lane::Standard as usize], Some(Rank(10)));
    worker.note_claimed(1, false, worker.queued_before());
    assert!(!worker.has_backlog());
    assert_eq!(worker.lowest_queued(), [None; 3]);
    // Nothing ranks lower than an attempt of unknown rank.
    worker.note_queued();
    assert_eq!(worker.lowest_queued(), [Some(Rank(i64::MIN)); 3]);
}

#[tokio::test]
async fn slot_that_a_claim_holds_counts_as_free() {
    let Rig { worker, .. } = Rig::new();
    assert_eq!(worker.take_slots(SLOTS - 1), SLOTS - 1);
    assert!(worker.has_free_slot());
    assert_eq!(worker.take_slots_to_claim(1), 1);
    assert!(worker.has_free_slot());
    worker.claim_failed();
    assert!(!worker.has_free_slot());
}
