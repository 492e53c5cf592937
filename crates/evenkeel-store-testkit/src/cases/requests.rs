//! Tests that requests with an idempotency key take effect only once, even if they are sent twice.

use evenkeel_core::Span;
use evenkeel_store::{Answered, Begun, KeyedRequest, Scope};

use super::races::at_once;
use crate::Opened;
use crate::fixtures::{at, now};
use crate::rig::Rig;

/// Returns a request that counts as abandoned after one minute.
fn request(key: &str, about: u8) -> KeyedRequest {
    KeyedRequest { key: key.into(), fingerprint: [about; 32], patience: Span::from_secs(60) }
}

fn answer(status: u16) -> Answered {
    // Bytes that are not UTF-8 text must also be returned unchanged.
    let body = vec![0, 159, 146, 150, b'{'];
    Answered { status, headers: r#"{"location":"/api/v1/jobs/7"}"#.into(), body }
}

async fn begin(rig: &Rig, scope: &Scope, key: &str, secs: i64) -> Begun {
    rig.store.begin_request(scope, &request(key, 1), now(secs)).await.unwrap()
}

pub async fn a_request_is_begun_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(begin(&rig, &rig.scope, "a", 0).await, Begun::Fresh(at(0)));
    assert_eq!(begin(&rig, &rig.scope, "a", 1).await, Begun::InProgress);
    assert_eq!(begin(&rig, &rig.scope, "b", 1).await, Begun::Fresh(at(1)));
}

pub async fn an_ended_request_returns_its_answer_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(201))).await.unwrap();
    // The store returns the saved answer at any later time until the request is pruned.
    for secs in [1, 61, 100_000] {
        assert_eq!(begin(&rig, &rig.scope, "a", secs).await, Begun::Ended(answer(201)));
    }
}

pub async fn a_request_without_effect_may_be_repeated(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    rig.store.end_request(&rig.scope, "a", at(0), None).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "a", 1).await, Begun::Fresh(at(1)));
    // After a request ended without an answer, its idempotency key can be used for a different
    // request.
    rig.store.end_request(&rig.scope, "a", at(1), None).await.unwrap();
    let other = rig.store.begin_request(&rig.scope, &request("a", 2), now(2)).await.unwrap();
    assert_eq!(other, Begun::Fresh(at(2)));
}

pub async fn another_request_with_the_key_is_recognized_in_any_state(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = async |secs| {
        rig.store.begin_request(&rig.scope, &request("a", 2), now(secs)).await.unwrap()
    };
    begin(&rig, &rig.scope, "a", 0).await;
    assert_eq!(other(1).await, Begun::KeyReused);
    assert_eq!(other(61).await, Begun::KeyReused);
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(200))).await.unwrap();
    assert_eq!(other(2).await, Begun::KeyReused);
}

pub async fn a_request_that_was_given_up_may_be_begun_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    assert_eq!(begin(&rig, &rig.scope, "a", 59).await, Begun::InProgress);
    assert_eq!(begin(&rig, &rig.scope, "a", 60).await, Begun::Fresh(at(60)));
    // The repeated request again has one minute before it counts as abandoned.
    assert_eq!(begin(&rig, &rig.scope, "a", 119).await, Begun::InProgress);
}

pub async fn an_execution_that_was_given_up_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    begin(&rig, &rig.scope, "a", 60).await;
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(500))).await.unwrap();
    rig.store.end_request(&rig.scope, "a", at(0), None).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "a", 61).await, Begun::InProgress);
    rig.store.end_request(&rig.scope, "a", at(60), Some(answer(201))).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "a", 62).await, Begun::Ended(answer(201)));
}

pub async fn the_first_answer_stays(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(201))).await.unwrap();
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(409))).await.unwrap();
    rig.store.end_request(&rig.scope, "a", at(0), None).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "a", 1).await, Begun::Ended(answer(201)));
    // Ending a request that was not begun is not an error.
    rig.store.end_request(&rig.scope, "b", at(0), Some(answer(201))).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "b", 1).await, Begun::Fresh(at(1)));
}

pub async fn each_tenant_has_its_own_keys(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    begin(&rig, &rig.scope, "a", 0).await;
    assert_eq!(begin(&rig, &other, "a", 1).await, Begun::Fresh(at(1)));
    rig.store.end_request(&other, "a", at(0), None).await.unwrap();
    rig.store.end_request(&other, "a", at(1), Some(answer(201))).await.unwrap();
    assert_eq!(begin(&rig, &rig.scope, "a", 2).await, Begun::InProgress);
}

pub async fn of_concurrent_requests_one_begins(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(how_many_begin(&rig, 0).await, 1);
}

pub async fn of_concurrent_callers_that_find_it_given_up_one_begins(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    assert_eq!(how_many_begin(&rig, 60).await, 1);
}

/// A dozen callers begin the same request concurrently. Returns how many of the callers get
/// `Fresh`.
async fn how_many_begin(rig: &Rig, secs: i64) -> usize {
    let scope = rig.scope;
    let answers = at_once(rig, 12, |_, store| async move {
        store.begin_request(&scope, &request("a", 1), now(secs)).await.unwrap()
    })
    .await;
    let fresh = answers.iter().filter(|begun| matches!(begun, Begun::Fresh(_))).count();
    let under_way = answers.iter().filter(|begun| **begun == Begun::InProgress).count();
    assert_eq!(fresh + under_way, 12, "{answers:?}");
    fresh
}

pub async fn old_requests_are_pruned_oldest_first_up_to_the_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (key, secs) in [("c", 2), ("a", 0), ("b", 1), ("d", 3)] {
        begin(&rig, &rig.scope, key, secs).await;
        rig.store.end_request(&rig.scope, key, at(secs), Some(answer(200))).await.unwrap();
    }
    assert_eq!(rig.store.prune_requests(at(0), 10).await.unwrap(), 0);
    assert_eq!(rig.store.prune_requests(at(3), 2).await.unwrap(), 2);
    assert_eq!(begin(&rig, &rig.scope, "c", 9).await, Begun::Ended(answer(200)));
    assert_eq!(begin(&rig, &rig.scope, "a", 9).await, Begun::Fresh(at(9)));
    assert_eq!(rig.store.prune_requests(at(3), 10).await.unwrap(), 1);
    assert_eq!(rig.store.prune_requests(at(3), 10).await.unwrap(), 0);
    assert_eq!(begin(&rig, &rig.scope, "d", 9).await, Begun::Ended(answer(200)));
}

pub async fn answers_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    begin(&rig, &rig.scope, "a", 0).await;
    rig.store.end_request(&rig.scope, "a", at(0), Some(answer(201))).await.unwrap();
    let rig = rig.restart().await;
    assert_eq!(begin(&rig, &rig.scope, "a", 1).await, Begun::Ended(answer(201)));
}
