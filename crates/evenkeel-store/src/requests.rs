//! Requests that come with a key, so that sending one twice does it once.

use evenkeel_core::{Span, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Scope};

/// A request with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedRequest {
    /// The key, unique within its tenant.
    pub key: String,
    /// A hash over what is asked: method, path and body.
    pub fingerprint: [u8; 32],
    /// Whoever began it and has not ended it by then is given up: somebody else may begin it.
    pub patience: Span,
}

/// How a request was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The status code.
    pub status: u16,
    /// Headers worth repeating, as JSON.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

/// What is known of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// Nothing, or it was given up: do it, then end it with this, which tells whoever began it now
    /// from whoever did before.
    Fresh(Timestamp),
    /// It is under way elsewhere.
    UnderWay,
    /// It was answered like this.
    Ended(Answered),
    /// Another request had this key.
    Other,
}

verbs! {
    /// Remembers requests by their keys.
    trait RequestStore {}

    /// Begins a request, unless it is known. Of several at once exactly one begins. What was begun
    /// with the same key and another fingerprint is `Other`, however it stands.
    write fn begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;

    /// Ends a request that was begun at `begun_at`: with its answer, or with none if it came to
    /// nothing and may be sent again. Whoever was given up meanwhile, or has ended it before,
    /// changes nothing.
    write fn end_request(scope: &Scope, key: &str, begun_at: Timestamp, answer: Option<Answered>)
        -> ();

    /// Forgets up to `limit` requests that were begun before `before`; says how many.
    write fn prune_requests(before: Timestamp, limit: u32) -> u64;
}
