//! STUB.
use async_trait::async_trait;
use evenkeel_core::{NodeNo, RunKey};
use evenkeel_store::{Letter, Note, NoteStore, Now, Running, StoreError};

use crate::SqliteStore;

#[async_trait]
impl NoteStore for SqliteStore {
    async fn note(&self, _: NodeNo, _: Vec<Note>, _: Now) -> Result<Vec<bool>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn find_running(&self, _: RunKey) -> Result<Option<Running>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn send_letter(&self, _: NodeNo, _: Letter) -> Result<(), StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn take_letters(&self, _: NodeNo, _: u32) -> Result<Vec<Letter>, StoreError> {
        Ok(Vec::new())
    }
}
