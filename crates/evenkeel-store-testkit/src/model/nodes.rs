//! Stores the leases of nodes, and the scheduled time from which the attempts of a node are
//! searched.

use std::collections::BTreeSet;

use evenkeel_core::{AttemptKey, NodeNo, Span, Timestamp};
use evenkeel_store::{Joined, Member, NewNode, NodeState, Ping, Pinged};

use super::data::{Data, NodeRow, OwnedBound, count};

impl Data {
    pub fn node(&self, no: NodeNo) -> Option<&NodeRow> {
        self.nodes.get(index(no))
    }

    fn node_mut(&mut self, no: NodeNo) -> Option<&mut NodeRow> {
        self.nodes.get_mut(index(no))
    }

    /// Returns true if the node may fire and claim.
    pub fn is_live(&self, no: NodeNo) -> bool {
        self.node(no).is_some_and(|node| node.state == NodeState::Live)
    }

    /// Returns true if the node was removed or never existed.
    pub fn is_gone(&self, no: NodeNo) -> bool {
        self.node(no).is_none_or(|node| node.state == NodeState::Gone)
    }

    pub fn join(&mut self, new: &NewNode, now: Timestamp) -> Joined {
        let mut former = Vec::new();
        let same = |node: &&mut NodeRow| node.identity == new.identity;
        for node in self.nodes.iter_mut().filter(same) {
            if node.state != NodeState::Gone {
                node.state = NodeState::Dead;
                former.push(node.no);
            }
        }
        let no = NodeNo(count(self.nodes.len()) as i32 + 1);
        self.nodes.push(NodeRow {
            no,
            identity: new.identity,
            name: new.name.clone(),
            roles: new.roles,
            pools: new.pools.clone(),
            state: NodeState::Live,
            joined_at: now,
            last_ping_at: now,
            steal_start_at: None,
            bound: OwnedBound {
                oldest_open: Timestamp::MIN,
                oldest_new: None,
                long: BTreeSet::new(),
            },
        });
        Joined { node: no, now, former }
    }

    pub fn ping(&mut self, ping: &Ping, now: Timestamp) -> Pinged {
        match self.node_mut(ping.node).filter(|node| has_lease(node)) {
            None => Pinged::Fenced,
            Some(node) => {
                node.last_ping_at = now;
                node.steal_start_at = None;
                node.bound.announce(ping);
                Pinged::Alive { now, members: self.members() }
            }
        }
    }

    /// Lowers the search bound of a node to the scheduled time of an attempt that the node got.
    pub fn lower_bound(&mut self, node: NodeNo, key: AttemptKey) {
        if let Some(node) = self.node_mut(node) {
            node.bound.lower(key.scheduled_at);
        }
    }

    pub fn begin_steal(&mut self, victim: NodeNo, silent_after: Span, now: Timestamp) -> bool {
        let Some(node) = self.node_mut(victim).filter(|node| has_lease(node)) else {
            return false;
        };
        if now.since(node.last_ping_at) >= silent_after {
            node.steal_start_at.get_or_insert(now);
        }
        node.steal_start_at.is_some()
    }

    pub fn steal(
        &mut self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Timestamp,
    ) -> bool {
        let Some(node) = self.node_mut(victim) else { return false };
        let unanswered = node.steal_start_at == Some(challenged_at);
        if has_lease(node) && unanswered && now.since(challenged_at) >= grace {
            node.state = NodeState::Dead;
        }
        node.state == NodeState::Dead
    }

    pub fn drain(&mut self, no: NodeNo) {
        if let Some(node) = self.node_mut(no).filter(|node| node.state == NodeState::Live) {
            node.state = NodeState::Draining;
        }
    }

    pub fn retire(&mut self, no: NodeNo) -> bool {
        let idle = self.running_on(no).next().is_none();
        let Some(node) = self.node_mut(no).filter(|_| idle) else { return false };
        node.state = NodeState::Gone;
        self.messages.remove(&no);
        true
    }

    pub fn members(&self) -> Vec<Member> {
        let there = self.nodes.iter().filter(|node| node.state != NodeState::Gone);
        there
            .map(|node| Member {
                node: node.no,
                name: node.name.clone(),
                roles: node.roles,
                pools: node.pools.clone(),
                state: node.state,
                joined_at: node.joined_at,
                last_ping_at: node.last_ping_at,
                steal_start_at: node.steal_start_at,
            })
            .collect()
    }
}

impl OwnedBound {
    fn announce(&mut self, ping: &Ping) {
        if let Some(announced) = ping.oldest_open {
            self.oldest_open = self.oldest_new.take().unwrap_or(announced).min(announced);
        }
        self.long = ping.long_attempts.iter().map(|attempt| attempt.key).collect();
    }

    fn lower(&mut self, time: Timestamp) {
        self.oldest_open = self.oldest_open.min(time);
        self.oldest_new = Some(self.oldest_new.map_or(time, |oldest| oldest.min(time)));
    }

    /// Returns true if a search from the node's bound finds the attempt.
    pub fn finds(&self, key: AttemptKey) -> bool {
        key.scheduled_at >= self.oldest_open || self.long.contains(&key)
    }
}

fn has_lease(node: &NodeRow) -> bool {
    matches!(node.state, NodeState::Live | NodeState::Draining)
}

fn index(no: NodeNo) -> usize {
    usize::try_from(no.0 - 1).unwrap_or(usize::MAX)
}
