//! Idempotency keys of API requests.

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, RequestStore, Scope, StoreError};

use crate::PostgresStore;
use crate::connection::Connection;
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
        let args = (scope.tenant.0, request.clone(), micros(now.literal()));
        self.api
            .run(args, |connection, args| async move {
                let (tenant, request, now) = &*args;
                begin(&connection, *tenant, request, *now).await
            })
            .await
    }

    async fn end_request(
        &self,
        scope: &Scope,
        key: &str,
        begun_at: Timestamp,
        answer: Option<Answered>,
    ) -> Result<(), StoreError> {
        let args = (scope.tenant.0, key.to_owned(), begun_at.as_micros(), answer);
        self.api
            .run(args, |connection, args| async move {
                let (tenant, key, begun_at, answer) = &*args;
                match answer {
                    Some(Answered { status, headers, body }) => {
                        let sql = sql!("end_request");
                        // At most 599.
                        let status = status.cast_signed();
                        connection
                            .change(sql, &[tenant, key, begun_at, &status, headers, body])
                            .await?
                    }
                    None => {
                        let sql = sql!("end_request_drop");
                        connection.change(sql, &[tenant, key, begun_at]).await?
                    }
                };
                Ok(())
            })
            .await
    }

    async fn prune_requests(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.hot
            .run((before.as_micros(), i64::from(limit)), |connection, args| async move {
                let (before, limit) = &*args;
                let sql = sql!("prune_requests");
                connection.change(sql, &[before, limit]).await
            })
            .await
    }
}

async fn begin(
    connection: &Connection,
    tenant: i32,
    request: &KeyedRequest,
    now: Option<i64>,
) -> Tried<Begun> {
    let fingerprint = request.fingerprint.as_slice();
    let sql = sql!("begin_request");
    let patience = span_micros(request.patience);
    let begun =
        connection.maybe_row(sql, &[&now, &tenant, &request.key, &fingerprint, &patience]).await?;
    if let Some(row) = begun {
        return Ok(Begun::Fresh(time(&row, 0)?));
    }
    let sql = sql!("begin_request_find");
    // If the row of the idempotency key is missing, the other request ended without a response or
    // was pruned.
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
