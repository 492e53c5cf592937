//! State of the writing thread: the connection, and values that are cached between transactions.

use std::collections::HashMap;
use std::ops::Deref;

use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::NodeState;
use rusqlite::Connection;

use super::RunSql;
use crate::error::Answer;

pub(crate) struct Session {
    connection: Connection,
    watermarks: HashMap<NodeNo, Watermark>,
}

/// The cached values of a session at some moment.
#[derive(Clone)]
pub(crate) struct Cached(HashMap<NodeNo, Watermark>);

/// The low watermark of a node: no attempt that the node runs has an earlier scheduled time.
#[derive(Copy, Clone, Default)]
struct Watermark {
    /// The low watermark in the node's row, if it is known.
    stored: Option<Timestamp>,
    /// The earliest scheduled time of the attempts that the node got since its last ping. The node
    /// may have sent its next ping before it got these attempts.
    given_since_ping: Option<Timestamp>,
}

impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Session {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, watermarks: HashMap::new() }
    }

    /// Returns the cached values, which must be restored if the transaction or savepoint that
    /// begins now is rolled back.
    pub(crate) fn cached(&self) -> Cached {
        Cached(self.watermarks.clone())
    }

    pub(crate) fn restore(&mut self, before: Cached) {
        self.watermarks = before.0;
    }

    pub(crate) fn node_state(&self, node: NodeNo) -> Answer<Option<NodeState>> {
        let code: Option<usize> = self.maybe_value(sql!("node_state"), &[&node])?;
        Ok(code.and_then(|code| NodeState::ALL.get(code).copied()))
    }

    /// Returns true if the node is live, so that it may get attempts.
    pub(crate) fn is_live(&self, node: NodeNo) -> Answer<bool> {
        Ok(self.node_state(node)? == Some(NodeState::Live))
    }

    /// Lowers the node's low watermark to `oldest`, if the watermark is higher. `oldest` is the
    /// earliest scheduled time of the attempts that the node just got, if it got any.
    pub(crate) fn lower_watermark(
        &mut self,
        node: NodeNo,
        oldest: Option<Timestamp>,
    ) -> Answer<()> {
        let Some(oldest) = oldest else { return Ok(()) };
        let watermark = self.watermarks.entry(node).or_default();
        let given = watermark.given_since_ping.map_or(oldest, |given| given.min(oldest));
        watermark.given_since_ping = Some(given);
        if watermark.stored.is_some_and(|stored| stored <= oldest) {
            return Ok(());
        }
        self.connection.run(sql!("fire_lower_watermark"), &[&node, &oldest])?;
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
    ) -> Option<Timestamp> {
        let watermark = self.watermarks.entry(node).or_default();
        let reported = reported?;
        let stored = watermark.given_since_ping.map_or(reported, |given| given.min(reported));
        *watermark = Watermark { stored: Some(stored), given_since_ping: None };
        Some(stored)
    }

    pub(crate) fn forget_node(&mut self, node: NodeNo) {
        self.watermarks.remove(&node);
    }
}
