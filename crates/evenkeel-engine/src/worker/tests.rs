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

/// Bodies that go on until they are told to end.
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

const PLACES: usize = 4;

impl Rig {
    fn new() -> Self {
        let (begun, begins) = mpsc::unbounded_channel();
        let (ended, ends) = mpsc::unbounded_channel();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let worker = Worker::new(WorkerParts {
            slots: Arc::new(Slots::new(PLACES)),
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

    /// As whoever claimed it does.
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

    fn settle(&self, fence: u32) {
        self.worker.deliver(NodeMessage {
            key: key(),
            fence: Fence(fence),
            kind: MessageKind::Ended,
        });
    }

    /// Lets tasks go on until nothing is open any more.
    async fn all_gone(&self) {
        while self.worker.open_count() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(self.worker.slots.free(), PLACES);
    }
}

fn key() -> AttemptKey {
    AttemptKey::regular(JobNo(7), Timestamp::from_micros(1_000_000))
}

#[tokio::test]
async fn a_body_whose_run_is_settled_is_let_go_and_says_nothing() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    rig.settle(1);
    rig.all_gone().await;
    assert!(rig.ended.try_recv().is_err());
    assert_eq!(rig.worker.all_lost(), []);
}

#[tokio::test]
async fn what_is_settled_before_it_starts_has_no_body() {
    let mut rig = Rig::new();
    rig.settle(1);
    rig.start(1);
    rig.all_gone().await;
    assert!(rig.begun.try_recv().is_err());
    // The word was about that right alone: who gets the attempt anew starts it.
    rig.start(2);
    assert_eq!(rig.begun.recv().await, Some(Fence(2)));
}

#[tokio::test]
async fn an_early_word_about_an_older_right_says_nothing_about_a_newer() {
    let mut rig = Rig::new();
    rig.settle(1);
    rig.start(3);
    assert_eq!(rig.begun.recv().await, Some(Fence(3)));
    rig.settle(1);
    rig.settle(2);
    tokio::task::yield_now().await;
    assert_eq!(rig.worker.running(), [(key(), Fence(3))]);
}

#[tokio::test]
async fn what_comes_back_waits_for_its_old_body_to_be_gone() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    // It went back into the queue and was claimed here anew; the letter comes late.
    rig.start(3);
    assert_eq!(rig.worker.slots.free(), PLACES - 1);
    assert!(rig.worker.needs_reconcile.swap(false, Ordering::AcqRel), "the reconciler is to look");
    assert!(rig.begun.try_recv().is_err());
    rig.settle(1);
    rig.all_gone().await;
    assert!(rig.begun.try_recv().is_err());
    // Given back once more, it starts.
    rig.start(5);
    assert_eq!(rig.begun.recv().await, Some(Fence(5)));
}

#[tokio::test]
async fn a_letter_that_overtakes_two_claims_is_for_the_one_it_names() {
    let mut rig = Rig::new();
    rig.start(1);
    assert_eq!(rig.begun.recv().await, Some(Fence(1)));
    rig.settle(3);
    rig.settle(1);
    rig.all_gone().await;
    rig.start(3);
    rig.all_gone().await;
    assert!(rig.begun.try_recv().is_err());
}

#[tokio::test]
async fn bodies_under_a_right_that_is_lost_are_let_go_and_others_are_not() {
    let mut rig = Rig::new();
    rig.start(2);
    assert_eq!(rig.begun.recv().await, Some(Fence(2)));
    assert_eq!(rig.worker.cancel_disowned([(key(), Fence(1))].into_iter()), 0);
    assert_eq!(rig.worker.cancel_disowned(rig.worker.running().into_iter()), 1);
    assert_eq!(rig.worker.cancel_disowned([(key(), Fence(2))].into_iter()), 0, "it was told once");
    rig.all_gone().await;
    assert!(rig.ended.try_recv().is_err());
}

#[tokio::test]
async fn early_words_are_bounded() {
    let rig = Rig::new();
    for second in 0..5_000 {
        let key = AttemptKey::regular(JobNo(7), Timestamp::from_micros(second * 1_000_000));
        rig.worker.deliver(NodeMessage { key, fence: Fence(1), kind: MessageKind::Ended });
    }
    assert_eq!(lock(&rig.worker.early).settled_count(), 1024);
}
