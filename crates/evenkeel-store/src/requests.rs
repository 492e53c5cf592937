//! Requests with an idempotency key, so that a repeated request takes effect once.

use evenkeel_core::{Span, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Scope};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedRequest {
    /// Unique within its tenant.
    pub key: String,
    /// A hash of method, path and body.
    pub fingerprint: [u8; 32],
    /// A request that has not ended after this time is given up, and another caller may begin it.
    pub patience: Span,
}

/// The stored answer of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    pub status: u16,
    /// The headers to repeat, as JSON.
    pub headers: String,
    pub body: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// The request is new or was given up. Carry it out, then end it with this time, which
    /// distinguishes this execution from an earlier one.
    Fresh(Timestamp),
    /// Another caller is carrying it out.
    InProgress,
    Ended(Answered),
    /// A different request has the key.
    KeyReused,
}

verbs! {
    trait RequestStore {}

    /// Begins a request unless it is known. Of several concurrent callers exactly one begins. A
    /// request with the same key and another fingerprint gets [`Begun::KeyReused`], whatever the state
    /// of the first.
    write fn begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;

    /// Ends a request that was begun at `begun_at`: with its answer, or with `None` if it had no
    /// effect and may be repeated. Has no effect if the execution was given up or has ended.
    write fn end_request(scope: &Scope, key: &str, begun_at: Timestamp, answer: Option<Answered>)
        -> ();

    /// Deletes up to `limit` requests that were begun before `before`. Returns their number.
    write fn prune_requests(before: Timestamp, limit: u32) -> u64;
}
