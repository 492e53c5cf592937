//! Requests with an idempotency key, so that a repeated request takes effect only once.

use evenkeel_core::{Span, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Scope};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedRequest {
    /// Unique within the tenant.
    pub key: String,
    /// Hash of the method, path and body of the request.
    pub fingerprint: [u8; 32],
    /// After this duration, an unfinished request counts as abandoned, and another caller may
    /// execute it.
    pub patience: Span,
}

/// The stored response to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    pub status: u16,
    /// The response headers to repeat, as JSON.
    pub headers: String,
    pub body: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// The request is new or was abandoned. The caller must execute the request and pass this time
    /// to [`end_request`](RequestStore::end_request), because the time distinguishes this execution
    /// from abandoned executions.
    Fresh(Timestamp),
    /// Another caller is executing the request.
    InProgress,
    Ended(Answered),
    /// The idempotency key was already used for a different request.
    KeyReused,
}

verbs! {
    trait RequestStore {}

    /// Begins a request unless a request with this key exists. If several callers begin the same
    /// request concurrently, exactly one gets [`Begun::Fresh`]. A request with the same key but
    /// another fingerprint gets [`Begun::KeyReused`], whether the first request is finished or not.
    write fn begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;

    /// Ends the request that began at `begun_at` and stores its response. An `answer` of `None`
    /// means that the request had no effect and may be repeated. Ending a request that was
    /// abandoned or is already finished has no effect.
    write fn end_request(scope: &Scope, key: &str, begun_at: Timestamp, answer: Option<Answered>)
        -> ();

    /// Deletes up to `limit` requests that began before `before`. Returns the number of deleted
    /// requests.
    write fn prune_requests(before: Timestamp, limit: u32) -> u64;
}
