//! To be replaced.

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::*;
use uuid::Uuid;

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

stub!(RequestStore {
    begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;
    end_request(scope: &Scope, key: &str, answer: Option<Answered>) -> ();
    forget_requests(before: Timestamp, limit: u32) -> u64;
});

stub!(AccessStore {
    make_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;
    find_key(hash: &KeyHash) -> Option<ApiKey>;
    use_keys(ids: &[Uuid], at: Timestamp) -> ();
    revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;
    list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;
    record(entries: Vec<AuditEntry>) -> ();
    list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditNo>) -> Page<(AuditNo, AuditEntry), AuditNo>;
    forget_audit(before: Timestamp, limit: u32) -> u64;
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
