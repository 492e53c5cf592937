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
