//! State of the writing thread: the connection, and values that are cached between transactions.

use std::collections::HashMap;

use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::NodeState;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Answer;

pub(crate) struct Session {
    connection: Connection,
    watermarks: HashMap<NodeNo, Watermark>,
}

/// The low watermark of a node: no attempt that the node runs has an earlier scheduled time.
#[derive(Copy, Clone)]
struct Watermark {
    /// The low watermark in the node's row, if it is known.
    stored: Option<i64>,
    /// The earliest scheduled time of the attempts that the node got since its last ping. The node
    /// may have sent its next ping before it got these attempts.
    given_since_ping: i64,
}

impl Default for Watermark {
    fn default() -> Self {
        Self { stored: None, given_since_ping: i64::MAX }
    }
}

impl Session {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, watermarks: HashMap::new() }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Clears all cached values after a rollback.
    pub(crate) fn clear_cache(&mut self) {
        for watermark in self.watermarks.values_mut() {
            watermark.stored = None;
        }
    }

    pub(crate) fn node_state(&self, node: NodeNo) -> Answer<Option<NodeState>> {
        let mut statement = self.connection.prepare_cached(sql!("node_state"))?;
        let code: Option<usize> = statement.query_row([node.0], |row| row.get(0)).optional()?;
        Ok(code.and_then(|code| NodeState::ALL.get(code).copied()))
    }

    /// Returns true if the node is live, so that it may get attempts.
    pub(crate) fn is_live(&self, node: NodeNo) -> Answer<bool> {
        Ok(self.node_state(node)? == Some(NodeState::Live))
    }

    /// Lowers the node's low watermark to `oldest`, if the watermark is higher.
    pub(crate) fn lower_watermark(&mut self, node: NodeNo, oldest: Timestamp) -> Answer<()> {
        let oldest = oldest.as_micros();
        let watermark = self.watermarks.entry(node).or_default();
        watermark.given_since_ping = watermark.given_since_ping.min(oldest);
        if watermark.stored.is_some_and(|stored| stored <= oldest) {
            return Ok(());
        }
        self.connection
            .prepare_cached(sql!("fire_lower_watermark"))?
            .execute(params![node.0, oldest])?;
        // The node's row may hold a lower low watermark, which is safe; only a higher value would
        // be wrong.
        watermark.stored = Some(oldest);
        Ok(())
    }

    /// Returns the low watermark that a ping of the node may set.
    pub(crate) fn watermark_after_ping(
        &mut self,
        node: NodeNo,
        reported: Option<Timestamp>,
    ) -> Option<i64> {
        let watermark = self.watermarks.entry(node).or_default();
        let reported = reported?.as_micros().min(watermark.given_since_ping);
        *watermark = Watermark { stored: Some(reported), given_since_ping: i64::MAX };
        Some(reported)
    }

    pub(crate) fn forget_node(&mut self, node: NodeNo) {
        self.watermarks.remove(&node);
    }
}
