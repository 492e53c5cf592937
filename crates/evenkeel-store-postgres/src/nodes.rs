//! Nodes: joining the cluster, heartbeats, and taking over the attempts of dead nodes.

use async_trait::async_trait;
use evenkeel_core::{NodeNo, Span, Timestamp};
use evenkeel_store::{
    Joined, Member, NewNode, NodeState, NodeStore, Now, Ping, Pinged, Roles, StoreError, from_code,
    pools_from_text, pools_text,
};
use futures::future::{try_join, try_join4};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, fence, get, maybe_time, micros, span_micros, time};

#[async_trait]
impl NodeStore for PostgresStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        let now = micros(now.literal());
        transaction!(self.hot, node.clone(), |connection, node| join(connection, node, now).await)
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let now = micros(now.literal());
        transaction!(self.hot, ping.clone(), |connection, ping| {
            run_ping(connection, ping, now).await
        })
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        let params = params![micros(now.literal()), victim.0, span_micros(silent_after)];
        Ok(self.hot.change(sql!("begin_steal"), params).await? > 0)
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        let (now, grace) = (micros(now.literal()), span_micros(grace));
        let params = params![now, victim.0, challenged_at.as_micros(), grace];
        self.hot.row(sql!("steal_node"), params, |row| get(row, 0)).await
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        self.hot.change(sql!("drain"), params![node.0]).await?;
        Ok(())
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        transaction!(self.hot, |connection| retire(connection, node.0).await)
    }

    async fn members(&self) -> Result<(Timestamp, Vec<Member>), StoreError> {
        run!(self.hot, |connection| {
            let now = connection.row(sql!("now"), &[&None::<i64>]);
            let (now, members) = try_join(now, members(connection)).await?;
            Ok((time(&now, 0)?, members))
        })
    }
}

async fn join(connection: &Connection, node: &NewNode, now: Option<i64>) -> Tried<Joined> {
    let identity = node.identity.to_string();
    connection.rows(sql!("join_lock"), &[&identity]).await?;
    let former = connection.rows(sql!("join_mark_dead"), &[&node.identity]).await?;
    let mut former =
        former.iter().map(|row| get(row, 0).map(NodeNo)).collect::<Tried<Vec<NodeNo>>>()?;
    former.sort_unstable();
    let (roles, pools) = (role_bits(node.roles), pools_text(&node.pools)?);
    let params: Params<'_> = &[&now, &node.identity, &node.name, &roles, &pools];
    let row = connection.row(sql!("join_node"), params).await?;
    Ok(Joined { node: NodeNo(get(&row, 0)?), now: time(&row, 1)?, former })
}

async fn run_ping(connection: &Connection, ping: &Ping, now: Option<i64>) -> Tried<Pinged> {
    let node = ping.node.0;
    let params: Params<'_> = &[&now, &node, &micros(ping.oldest_open)];
    let Some(row) = connection.maybe_row(sql!("ping_node"), params).await? else {
        return Ok(Pinged::Fenced);
    };
    let now: i64 = get(&row, 0)?;
    let keys: KeyColumns = ping.long_attempts.iter().map(|run| run.key).collect();
    let fences = column(&ping.long_attempts, |run| fence(run.fence));
    let started_at = column(&ping.long_attempts, |run| run.started_at.as_micros());
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let params: Params<'_> =
        &[&node, &now, job_no, scheduled_at, sequence, attempt, &fences, &started_at];
    let replaced = connection.change(sql!("ping_long_attempts"), params);
    let (_, members) = try_join(replaced, members(connection)).await?;
    Ok(Pinged::Alive { now: Timestamp::from_micros(now), members })
}

async fn retire(connection: &Connection, node: i32) -> Tried<bool> {
    // The node's row is locked before the search for its attempts, so that the search sees all
    // transactions that the node has committed.
    connection.rows(sql!("retire_lock_node"), &[&node]).await?;
    let retired = connection.change(sql!("retire"), &[&node]).await? > 0;
    if retired {
        try_join4(
            connection.change(sql!("retire_delete_long_attempts"), &[&node]),
            connection.change(sql!("retire_delete_cancellations"), &[&node]),
            connection.change(sql!("retire_delete_messages"), &[&node]),
            connection.change(sql!("retire_delete_run_stats"), &[&node]),
        )
        .await?;
    }
    Ok(retired)
}

async fn members(connection: &Connection) -> Tried<Vec<Member>> {
    connection.rows(sql!("members"), &[]).await?.iter().map(member).collect()
}

fn member(row: &Row) -> Tried<Member> {
    let (node, state) = (NodeNo(get(row, "node_no")?), get(row, "state")?);
    Ok(Member {
        node,
        name: get(row, "name")?,
        roles: roles(get(row, "roles")?),
        pools: pools_from_text(format_args!("node {node}"), get(row, "pools")?)?,
        state: from_code(&NodeState::ALL, state, format_args!("node {node}"), "state")?,
        joined_at: time(row, "joined_at")?,
        last_ping_at: time(row, "last_ping_at")?,
        steal_start_at: maybe_time(row, "steal_start_at")?,
    })
}

fn role_bits(roles: Roles) -> i16 {
    i16::from(roles.api) | i16::from(roles.scheduler) << 1 | i16::from(roles.worker) << 2
}

fn roles(bits: i16) -> Roles {
    Roles { api: bits & 1 != 0, scheduler: bits & 2 != 0, worker: bits & 4 != 0 }
}
