//! What users reach and the simulation does not: straight to the model.

use async_trait::async_trait;
use evenkeel_core::{JobNo, NodeNo, Timestamp};
use evenkeel_store::*;
use uuid::Uuid;

use super::FaultyStore;

macro_rules! straight {
    ($port:ident { $($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $port for FaultyStore {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                self.inner.$verb($($name),*).await
            })*
        }
    };
}

straight!(TallyStore {
    tally(node: NodeNo, tallies: Vec<Tally>, failures: Vec<Failures>, at: Timestamp) -> ();
    tallied(scope: &Scope) -> Tallied;
    list_failures(scope: &Scope, page: PageRequest<FailureCursor>) -> Page<FailureGroup, FailureCursor>;
    forget_failures(before: Timestamp, limit: u32) -> u64;
});

straight!(RequestStore {
    begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;
    end_request(scope: &Scope, key: &str, begun_at: Timestamp, answer: Option<Answered>) -> ();
    forget_requests(before: Timestamp, limit: u32) -> u64;
});

straight!(AccessStore {
    make_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;
    find_key(hash: &KeyHash) -> Option<ApiKey>;
    use_keys(ids: &[Uuid], at: Timestamp) -> ();
    revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;
    list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;
    record(entries: Vec<AuditEntry>) -> ();
    list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditPlace>) -> Page<(AuditPlace, AuditEntry), AuditPlace>;
    forget_audit(before: Timestamp, limit: u32) -> u64;
});

#[async_trait]
impl EventStore for FaultyStore {
    fn events(&self) -> &Events {
        self.inner.events()
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        self.inner.publish(events, dropped).await
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        self.inner.newest_event().await
    }

    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        self.inner.events_after(scope, after, limit).await
    }

    async fn listen(&self, until: Timestamp) -> Result<(), StoreError> {
        self.inner.listen(until).await
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.listened_until().await
    }

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        self.inner.job_titles(jobs).await
    }
}
