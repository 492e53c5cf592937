//! What the writing thread holds: its connection, and what it remembers between transactions.

use std::collections::HashMap;

use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::NodeState;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Answer;

/// The writer's own state. Requests see it one after the other.
pub(crate) struct Session {
    connection: Connection,
    bounds: HashMap<NodeNo, Bound>,
}

/// Where a node's open attempts begin.
#[derive(Copy, Clone)]
struct Bound {
    /// What its row says, if that is known.
    stored: Option<i64>,
    /// The oldest time it was given since its last ping, which that ping may not know of.
    given_since_ping: i64,
}

impl Default for Bound {
    fn default() -> Self {
        Self { stored: None, given_since_ping: i64::MAX }
    }
}

impl Session {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, bounds: HashMap::new() }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Something was rolled back: what is remembered of rows may be wrong.
    pub(crate) fn forget(&mut self) {
        for bound in self.bounds.values_mut() {
            bound.stored = None;
        }
    }

    /// Where a node stands.
    pub(crate) fn node_state(&self, node: NodeNo) -> Answer<Option<NodeState>> {
        let mut statement = self.connection.prepare_cached(sql!("node_state"))?;
        let code: Option<usize> = statement.query_row([node.0], |row| row.get(0)).optional()?;
        Ok(code.and_then(|code| NodeState::ALL.get(code).copied()))
    }

    /// May the node be given work?
    pub(crate) fn is_live(&self, node: NodeNo) -> Answer<bool> {
        Ok(self.node_state(node)? == Some(NodeState::Live))
    }

    /// Keeps the bound of a node at or below the oldest of the times it is given.
    pub(crate) fn lower_watermark(&mut self, node: NodeNo, oldest: Timestamp) -> Answer<()> {
        let oldest = oldest.as_micros();
        let bound = self.bounds.entry(node).or_default();
        bound.given_since_ping = bound.given_since_ping.min(oldest);
        if bound.stored.is_some_and(|stored| stored <= oldest) {
            return Ok(());
        }
        self.connection
            .prepare_cached(sql!("fire_lower_watermark"))?
            .execute(params![node.0, oldest])?;
        // The row may hold something lower still; that it is not above is all that matters.
        bound.stored = Some(oldest);
        Ok(())
    }

    /// The bound that a ping may raise a node's to.
    pub(crate) fn bound_after_ping(
        &mut self,
        node: NodeNo,
        said: Option<Timestamp>,
    ) -> Option<i64> {
        let bound = self.bounds.entry(node).or_default();
        let said = said?.as_micros().min(bound.given_since_ping);
        *bound = Bound { stored: Some(said), given_since_ping: i64::MAX };
        Some(said)
    }

    /// A node is gone, and so is what is remembered of it.
    pub(crate) fn forget_node(&mut self, node: NodeNo) {
        self.bounds.remove(&node);
    }
}
