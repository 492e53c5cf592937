//! Idempotency keys of API requests.

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, RequestStore, Scope, StoreError};

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::rows::{get, micros, span_micros, time};

#[async_trait]
impl RequestStore for PostgresStore {
    async fn begin_request(
        &self,
        scope: &Scope,
        request: &KeyedRequest,
        now: Now,
    ) -> Result<Begun, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        run!(self.api, request.clone(), |connection, request| {
            begin(connection, tenant, request, now).await
        })
    }

    async fn end_request(
        &self,
        scope: &Scope,
        key: &str,
        begun_at: Timestamp,
        answer: Option<Answered>,
    ) -> Result<(), StoreError> {
        let mut params = params![scope.tenant.0, key.to_owned(), begun_at.as_micros()];
        let sql = match answer {
            Some(Answered { status, headers, body }) => {
                // At most 599.
                params.extend(params![status.cast_signed(), headers, body]);
                sql!("end_request")
            }
            None => sql!("end_request_drop"),
        };
        self.api.change(sql, params).await?;
        Ok(())
    }

    async fn prune_requests(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let params = params![before.as_micros(), i64::from(limit)];
        self.hot.change(sql!("prune_requests"), params).await
    }
}

async fn begin(
    connection: &Connection,
    tenant: i32,
    request: &KeyedRequest,
    now: Option<i64>,
) -> Tried<Begun> {
    let fingerprint = request.fingerprint.as_slice();
    let patience = span_micros(request.patience);
    let params: Params<'_> = &[&now, &tenant, &request.key, &fingerprint, &patience];
    if let Some(row) = connection.maybe_row(sql!("begin_request"), params).await? {
        return Ok(Begun::Fresh(time(&row, 0)?));
    }
    let sql = sql!("begin_request_find");
    // If the row of the idempotency key is missing, the earlier request with this key ended without
    // a response or was pruned.
    let row = connection.maybe_row(sql, &[&tenant, &request.key]).await?.ok_or(Failure::Again)?;
    if get::<&[u8]>(&row, 0)? != fingerprint {
        return Ok(Begun::KeyReused);
    }
    Ok(match get::<Option<i16>>(&row, 1)? {
        None => Begun::InProgress,
        Some(status) => Begun::Ended(Answered {
            status: status.cast_unsigned(),
            headers: get(&row, 2)?,
            body: get(&row, 3)?,
        }),
    })
}
