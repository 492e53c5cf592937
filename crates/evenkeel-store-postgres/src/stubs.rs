//! To be replaced.

use async_trait::async_trait;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::*;

use crate::PostgresStore;

macro_rules! stub {
    ($port:ident { $($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $port for PostgresStore {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                $(let _ = $name;)*
                unimplemented!()
            })*
        }
    };
}

stub!(TallyStore {
    tally(node: NodeNo, tallies: Vec<Tally>, failures: Vec<Failures>, at: Timestamp) -> ();
    tallied(scope: &Scope) -> Tallied;
    list_failures(scope: &Scope, page: PageRequest<FailureCursor>) -> Page<FailureGroup, FailureCursor>;
    forget_failures(before: Timestamp, limit: u32) -> u64;
});

stub!(RequestStore {
    begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;
    end_request(scope: &Scope, key: &str, answer: Option<Answered>) -> ();
    forget_requests(before: Timestamp, limit: u32) -> u64;
});

#[async_trait]
impl EventStore for PostgresStore {
    fn events(&self) -> &Events {
        &self.events
    }

    async fn publish(&self, _: Vec<NewEvent>, _: bool) -> Result<(), StoreError> {
        unimplemented!()
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        unimplemented!()
    }

    async fn events_after(&self, _: &Scope, _: EventNo, _: u32) -> Result<EventPage, StoreError> {
        unimplemented!()
    }

    async fn listen(&self, _: Timestamp) -> Result<(), StoreError> {
        unimplemented!()
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        unimplemented!()
    }
}
