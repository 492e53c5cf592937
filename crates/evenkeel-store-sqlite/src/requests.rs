//! Idempotency keys of API requests.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, RequestStore, Scope, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::{Batch, Command};
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
        self.writer
            .write(Command, 1, move |session| begin(session.connection(), tenant, &request, now))
            .await
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
            .write(Command, 1, move |session| {
                end(session.connection(), tenant, &key, begun_at, answer)
            })
            .await
    }

    async fn prune_requests(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        // A reader checks first whether there are old keys, because usually there are none and the
        // writer is not needed.
        let has_old = move |db: &Connection| {
            let sql = sql!("prune_requests_find");
            Ok(db.prepare_cached(sql)?.query_row([before.as_micros()], |row| row.get(0))?)
        };
        if !self.engine_readers.read(has_old).await? {
            return Ok(0);
        }
        self.writer
            .write(Batch, limit as usize, move |session| {
                let sql = sql!("prune_requests");
                let mut statement = session.connection().prepare_cached(sql)?;
                Ok(statement.execute(params![before.as_micros(), limit])? as u64)
            })
            .await
    }
}

fn begin(
    connection: &Connection,
    tenant: TenantNo,
    request: &KeyedRequest,
    now: Now,
) -> Answer<Begun> {
    let now = resolve(now);
    let begun_at: Option<i64> = connection
        .prepare_cached(sql!("begin_request"))?
        .query_row(
            params![
                tenant.0,
                request.key,
                request.fingerprint.as_slice(),
                now.as_micros(),
                now.saturating_add(request.patience).as_micros(),
            ],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(begun_at) = begun_at {
        return Ok(Begun::Fresh(Timestamp::from_micros(begun_at)));
    }
    let known = connection.prepare_cached(sql!("begin_request_find"))?.query_row(
        params![tenant.0, request.key],
        |row| {
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
        },
    )?;
    Ok(known)
}

fn end(
    connection: &Connection,
    tenant: TenantNo,
    key: &str,
    begun_at: Timestamp,
    answer: Option<Answered>,
) -> Answer<()> {
    match answer {
        Some(Answered { status, headers, body }) => connection
            .prepare_cached(sql!("end_request"))?
            .execute(params![tenant.0, key, begun_at.as_micros(), status, headers, body])?,
        None => connection.prepare_cached(sql!("end_request_drop"))?.execute(params![
            tenant.0,
            key,
            begun_at.as_micros()
        ])?,
    };
    Ok(())
}
