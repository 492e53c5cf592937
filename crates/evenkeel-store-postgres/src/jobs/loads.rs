//! How full the slots are.

use evenkeel_core::Slot;
use evenkeel_store::{Scope, StoreError};

use crate::PostgresStore;
use crate::columns::count;

pub(super) async fn slot_loads(
    store: &PostgresStore,
    scope: &Scope,
    slots: &[Slot],
    limit: u32,
) -> Result<Vec<u32>, StoreError> {
    let slots: Vec<i32> = slots.iter().map(|slot| slot.0).collect();
    store
        .api
        .run((scope.tenant.0, slots, i64::from(limit)), |connection, args| async move {
            let (tenant, slots, limit) = &*args;
            let sql = include_str!("../../queries/slot_loads.sql");
            let rows = connection.rows(sql, &[tenant, slots, limit]).await?;
            rows.iter().map(|row| Ok(u32::try_from(count(row, 0)?).unwrap_or(u32::MAX))).collect()
        })
        .await
}
