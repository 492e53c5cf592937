//! What nodes say of themselves.

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::*;
use evenkeel_store::*;

use super::{FaultyStore, Own, Ref};

#[async_trait]
impl NodeStore for FaultyStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        through!(self, join(node = Ref(node.clone()), now = Own(now)))
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let (bounds, ping) = (Arc::clone(&self.bounds), ping.clone());
        self.change("ping", move |inner| {
            Box::pin(async move {
                let pinged = inner.ping(&ping, now).await?;
                if matches!(pinged, Pinged::Alive { .. }) {
                    bounds.pinged(ping.node, ping.oldest_open, &ping.long_runs);
                }
                Ok(pinged)
            })
        })
        .await
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        through!(
            self,
            begin_steal(victim = Own(victim), silent_after = Own(silent_after), now = Own(now))
        )
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        through!(
            self,
            steal(
                victim = Own(victim),
                challenged_at = Own(challenged_at),
                grace = Own(grace),
                now = Own(now)
            )
        )
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        through!(self, drain(node = Own(node)))
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        through!(self, retire(node = Own(node)))
    }

    async fn members(&self) -> Result<(Timestamp, Vec<Member>), StoreError> {
        through!(self, members())
    }
}
