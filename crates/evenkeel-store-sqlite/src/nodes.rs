//! Nodes: joining the cluster, pings, and taking over the attempts of dead nodes.

use async_trait::async_trait;
use evenkeel_core::{NodeNo, Span, Timestamp};
use evenkeel_store::{
    Joined, Member, NewNode, NodeState, NodeStore, Now, Ping, Pinged, Roles, StoreError, from_code,
    pools_from_text, pools_text, sql_time,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::Command;
use crate::connection::{RunPrepared, RunSql, Session, resolve, system_time};
use crate::error::Answer;

#[async_trait]
impl NodeStore for SqliteStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        let node = node.clone();
        self.writer.write(Command, 1, move |db| join(db, &node, resolve(now))).await
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let ping = ping.clone();
        // A ping goes before all other requests, because a node that cannot ping must stop its
        // attempts.
        let rows = ping.long_attempts.len() + 1;
        self.writer.write(Command, rows, move |db| save_ping(db, &ping, resolve(now))).await
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        let act = move |db: &mut Session| begin_steal(db, victim, silent_after, resolve(now));
        self.writer.write(Command, 1, act).await
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        let act = move |db: &mut Session| steal(db, victim, challenged_at, grace, resolve(now));
        self.writer.write(Command, 1, act).await
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        self.writer.write(Command, 1, move |db| db.run(sql!("drain"), &[&node])).await
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        self.writer.write(Command, 1, move |db| retire(db, node)).await
    }

    async fn members(&self) -> Result<(Timestamp, Vec<Member>), StoreError> {
        let members = self.engine_readers.read(members).await?;
        Ok((system_time(), members))
    }
}

fn roles_code(roles: Roles) -> i64 {
    i64::from(roles.api) | i64::from(roles.scheduler) << 1 | i64::from(roles.worker) << 2
}

fn roles_from(code: i64) -> Roles {
    Roles { api: code & 1 != 0, scheduler: code & 2 != 0, worker: code & 4 != 0 }
}

fn join(connection: &Connection, node: &NewNode, now: Timestamp) -> Answer<Joined> {
    let NewNode { identity, name, .. } = node;
    let mut former = connection
        .rows(sql!("join_mark_dead"), &[identity], |row| Ok(NodeNo(row.get("node_no")?)))?;
    former.sort_unstable();
    let (roles, pools) = (roles_code(node.roles), pools_text(&node.pools)?);
    connection.run(sql!("join_node"), &[identity, name, &roles, &now, &pools])?;
    let number = i32::try_from(connection.last_insert_rowid())
        .map_err(|cause| StoreError::corrupt("node", "node_no", cause))?;
    Ok(Joined { node: NodeNo(number), now, former })
}

fn save_ping(session: &mut Session, ping: &Ping, now: Timestamp) -> Answer<Pinged> {
    match session.node_state(ping.node)? {
        Some(NodeState::Live | NodeState::Draining) => {}
        Some(NodeState::Dead | NodeState::Gone) | None => return Ok(Pinged::Fenced),
    }
    let watermark = session.watermark_after_ping(ping.node, ping.oldest_open);
    session.run(sql!("ping_node"), &[&ping.node, &now, &watermark])?;
    session.run(sql!("ping_delete_long_attempts"), &[&ping.node])?;
    let mut save = session.prepare_cached(sql!("ping_long_attempts"))?;
    for long in &ping.long_attempts {
        save.run(&[&ping.node, &long.key, &long.fence, &long.started_at, &now])?;
    }
    Ok(Pinged::Alive { now, members: members(session)? })
}

fn begin_steal(
    connection: &Connection,
    victim: NodeNo,
    silent_after: Span,
    now: Timestamp,
) -> Answer<bool> {
    let silent_since = now.as_micros().saturating_sub_unsigned(silent_after.as_micros());
    connection.run(sql!("begin_steal"), &[&victim, &now, &silent_since])?;
    connection.has_row(sql!("begin_steal_check"), &[&victim])
}

fn steal(
    session: &Session,
    victim: NodeNo,
    challenged_at: Timestamp,
    grace: Span,
    now: Timestamp,
) -> Answer<bool> {
    let latest = now.as_micros().saturating_sub_unsigned(grace.as_micros());
    session.run(sql!("steal_node"), &[&victim, &challenged_at, &latest])?;
    Ok(session.node_state(victim)? == Some(NodeState::Dead))
}

fn retire(session: &mut Session, node: NodeNo) -> Answer<bool> {
    match session.node_state(node)? {
        None => return Ok(false),
        Some(NodeState::Gone) => return Ok(true),
        Some(NodeState::Live | NodeState::Draining | NodeState::Dead) => {}
    }
    if !crate::attempts::owned::all(session, node, 1)?.is_empty() {
        return Ok(false);
    }
    for sql in [
        sql!("retire"),
        sql!("ping_delete_long_attempts"),
        sql!("retire_delete_cancellations"),
        sql!("retire_delete_messages"),
        sql!("delete_running_counts"),
    ] {
        session.run(sql, &[&node])?;
    }
    session.forget_node(node);
    Ok(true)
}

fn members(connection: &Connection) -> Answer<Vec<Member>> {
    connection.rows(sql!("members"), &[], member_from)
}

fn member_from(row: &Row<'_>) -> Answer<Member> {
    let node = NodeNo(row.get("node_no")?);
    let state =
        from_code(&NodeState::ALL, row.get("state")?, format_args!("node {node}"), "state")?;
    Ok(Member {
        node,
        name: row.get("name")?,
        roles: roles_from(row.get("roles")?),
        pools: pools_from_text(format_args!("node {node}"), &row.get::<_, String>("pools")?)?,
        state,
        joined_at: Timestamp::from_micros(row.get("joined_at")?),
        last_ping_at: Timestamp::from_micros(row.get("last_ping_at")?),
        steal_start_at: sql_time(row.get("steal_start_at")?),
    })
}
