//! How full the slots are.

use evenkeel_core::Slot;
use evenkeel_store::{Scope, SlotLoad, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{count, get};
use crate::error::Tried;

pub(super) async fn slot_loads(
    store: &PostgresStore,
    scope: &Scope,
    slots: &[Slot],
    limit: u32,
) -> Result<Vec<SlotLoad>, StoreError> {
    let slots: Vec<i32> = slots.iter().map(|slot| slot.0).collect();
    store
        .api
        .run((scope.tenant.0, slots, i64::from(limit)), |connection, args| async move {
            let (tenant, slots, limit) = &*args;
            let sql = sql!("slot_loads");
            let rows = connection.rows(sql, &[tenant, slots, limit]).await?;
            rows.iter().map(read_load).collect()
        })
        .await
}

fn read_load(row: &Row) -> Tried<SlotLoad> {
    let jobs = u32::try_from(count(row, 0)?).unwrap_or(u32::MAX);
    Ok(SlotLoad { jobs, counted_all: get(row, 1)? })
}
