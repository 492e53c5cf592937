//! Idempotency keys of API requests.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, RequestStore, Scope, StoreError};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{Params, RunSql, resolve};
use crate::error::Answer;

#[async_trait]
impl RequestStore for SqliteStore {
    async fn begin_request(
        &self,
        scope: &Scope,
        request: &KeyedRequest,
        now: Now,
    ) -> Result<Begun, StoreError> {
        let (tenant, request) = (scope.tenant, request.clone());
        self.writer.write(Command, 1, move |db| begin(db, tenant, &request, resolve(now))).await
    }

    async fn end_request(
        &self,
        scope: &Scope,
        key: &str,
        begun_at: Timestamp,
        answer: Option<Answered>,
    ) -> Result<(), StoreError> {
        let (tenant, key) = (scope.tenant, key.to_owned());
        self.writer
            .write(Command, 1, move |db| end(db, tenant, &key, begun_at, answer.as_ref()))
            .await
    }

    async fn prune_requests(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        // A reading connection checks first whether there are old requests, because usually there
        // are none and the writer is not needed.
        let has_old = move |db: &Connection| db.value(sql!("prune_requests_find"), &[&before]);
        if !self.engine_readers.read(has_old).await? {
            return Ok(0);
        }
        self.writer
            .write(Batch, limit as usize, move |db| {
                db.change(sql!("prune_requests"), &[&before, &limit])
            })
            .await
    }
}

fn begin(
    connection: &Connection,
    tenant: TenantNo,
    request: &KeyedRequest,
    now: Timestamp,
) -> Answer<Begun> {
    let KeyedRequest { key, fingerprint, .. } = request;
    let patient_until = now.saturating_add(request.patience);
    let row: Params<'_> = &[&tenant, key, fingerprint, &now, &patient_until];
    if let Some(begun_at) = connection.maybe_value(sql!("begin_request"), row)? {
        return Ok(Begun::Fresh(Timestamp::from_micros(begun_at)));
    }
    connection.row(sql!("begin_request_find"), &[&tenant, key], |row| {
        let fingerprint: Vec<u8> = row.get("fingerprint")?;
        if fingerprint != request.fingerprint {
            return Ok(Begun::KeyReused);
        }
        Ok(match row.get::<_, Option<u16>>("status")? {
            None => Begun::InProgress,
            Some(status) => Begun::Ended(Answered {
                status,
                headers: row.get("headers")?,
                body: row.get("body")?,
            }),
        })
    })
}

fn end(
    connection: &Connection,
    tenant: TenantNo,
    key: &str,
    begun_at: Timestamp,
    answer: Option<&Answered>,
) -> Answer<()> {
    match answer {
        Some(Answered { status, headers, body }) => {
            let row: Params<'_> = &[&tenant, &key, &begun_at, status, headers, body];
            connection.run(sql!("end_request"), row)
        }
        None => connection.run(sql!("end_request_drop"), &[&tenant, &key, &begun_at]),
    }
}
