//! Nodes: joining the cluster, pings, and taking over the attempts of dead nodes.

use async_trait::async_trait;
use evenkeel_core::{NodeNo, Span, Timestamp};
use evenkeel_store::{
    Joined, Member, NewNode, NodeState, NodeStore, Now, Ping, Pinged, Roles, StoreError, from_code,
    pools_from_text, pools_text, sql_time,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::connection::clock::{resolve, system_time};
use crate::connection::session::Session;
use crate::connection::urgency::Urgency::Command;
use crate::error::Answer;
use crate::rows::{collect, key_params};

#[async_trait]
impl NodeStore for SqliteStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        let node = node.clone();
        self.writer.write(Command, 1, move |session| join(session.connection(), &node, now)).await
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let ping = ping.clone();
        // A ping goes before all other requests, because a node that cannot ping must stop its
        // attempts.
        self.writer
            .write(Command, ping.long_attempts.len() + 1, move |session| {
                save_ping(session, &ping, now)
            })
            .await
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Command, 1, move |session| {
                begin_steal(session.connection(), victim, silent_after, now)
            })
            .await
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Command, 1, move |session| steal(session, victim, challenged_at, grace, now))
            .await
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        self.writer.write(Command, 1, move |session| drain(session.connection(), node)).await
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        self.writer.write(Command, 1, move |session| retire(session, node)).await
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

fn join(connection: &Connection, node: &NewNode, now: Now) -> Answer<Joined> {
    let now = resolve(now);
    let identity = node.identity.as_bytes().as_slice();
    let mut mark_dead = connection.prepare_cached(sql!("join_mark_dead"))?;
    let mut former = collect(mark_dead.query([identity])?, |row| Ok(NodeNo(row.get("node_no")?)))?;
    former.sort_unstable();
    connection.prepare_cached(sql!("join_node"))?.execute(params![
        identity,
        node.name,
        roles_code(node.roles),
        now.as_micros(),
        pools_text(&node.pools)?,
    ])?;
    let number = i32::try_from(connection.last_insert_rowid())
        .map_err(|cause| StoreError::corrupt("node", "node_no", cause))?;
    Ok(Joined { node: NodeNo(number), now, former })
}

fn save_ping(session: &mut Session, ping: &Ping, now: Now) -> Answer<Pinged> {
    let now = resolve(now);
    match session.node_state(ping.node)? {
        Some(NodeState::Live | NodeState::Draining) => {}
        Some(NodeState::Dead | NodeState::Gone) | None => return Ok(Pinged::Fenced),
    }
    let watermark = session.watermark_after_ping(ping.node, ping.oldest_open);
    let connection = session.connection();
    connection.prepare_cached(sql!("ping_node"))?.execute(params![
        ping.node.0,
        now.as_micros(),
        watermark,
    ])?;
    connection.prepare_cached(sql!("ping_delete_long_attempts"))?.execute([ping.node.0])?;
    let mut save = connection.prepare_cached(sql!("ping_long_attempts"))?;
    for long in &ping.long_attempts {
        let (scheduled_at, job_no, sequence, attempt) = key_params(long.key);
        save.execute(params![
            ping.node.0,
            scheduled_at,
            job_no,
            sequence,
            attempt,
            long.fence.0,
            long.started_at.as_micros(),
            now.as_micros(),
        ])?;
    }
    Ok(Pinged::Alive { now, members: members(connection)? })
}

fn begin_steal(
    connection: &Connection,
    victim: NodeNo,
    silent_after: Span,
    now: Now,
) -> Answer<bool> {
    let now = resolve(now);
    let silent_since = now.as_micros().saturating_sub_unsigned(silent_after.as_micros());
    connection.prepare_cached(sql!("begin_steal"))?.execute(params![
        victim.0,
        now.as_micros(),
        silent_since,
    ])?;
    Ok(connection.prepare_cached(sql!("begin_steal_check"))?.exists([victim.0])?)
}

fn steal(
    session: &Session,
    victim: NodeNo,
    challenged_at: Timestamp,
    grace: Span,
    now: Now,
) -> Answer<bool> {
    let latest = resolve(now).as_micros().saturating_sub_unsigned(grace.as_micros());
    session.connection().prepare_cached(sql!("steal_node"))?.execute(params![
        victim.0,
        challenged_at.as_micros(),
        latest,
    ])?;
    Ok(session.node_state(victim)? == Some(NodeState::Dead))
}

fn drain(connection: &Connection, node: NodeNo) -> Answer<()> {
    connection.prepare_cached(sql!("drain"))?.execute([node.0])?;
    Ok(())
}

fn retire(session: &mut Session, node: NodeNo) -> Answer<bool> {
    match session.node_state(node)? {
        None => return Ok(false),
        Some(NodeState::Gone) => return Ok(true),
        Some(NodeState::Live | NodeState::Draining | NodeState::Dead) => {}
    }
    let connection = session.connection();
    if !crate::attempts::owned::all(connection, node, 1)?.is_empty() {
        return Ok(false);
    }
    for sql in [
        sql!("retire"),
        sql!("ping_delete_long_attempts"),
        sql!("retire_delete_cancellations"),
        sql!("retire_delete_messages"),
        sql!("delete_running_counts"),
    ] {
        connection.prepare_cached(sql)?.execute([node.0])?;
    }
    session.forget_node(node);
    Ok(true)
}

fn members(connection: &Connection) -> Answer<Vec<Member>> {
    let mut statement = connection.prepare_cached(sql!("members"))?;
    collect(statement.query([])?, member_from)
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
