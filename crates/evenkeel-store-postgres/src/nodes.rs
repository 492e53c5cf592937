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
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, fence, get, maybe_time, micros, span_micros, time};

#[async_trait]
impl NodeStore for PostgresStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        let args = (node.clone(), micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (node, now) = &*args;
                connection.transaction(join(&connection, node, *now)).await
            })
            .await
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let args = (ping.clone(), micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (ping, now) = &*args;
                connection.transaction(run_ping(&connection, ping, *now)).await
            })
            .await
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        let args = (victim.0, span_micros(silent_after), micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (victim, silent_after, now) = &*args;
                let sql = sql!("begin_steal");
                Ok(connection.change(sql, &[now, victim, silent_after]).await? > 0)
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
        let args = (victim.0, challenged_at.as_micros(), span_micros(grace), micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (victim, challenged_at, grace, now) = &*args;
                let sql = sql!("steal_node");
                let row = connection.row(sql, &[now, victim, challenged_at, grace]).await?;
                Ok(get(&row, 0)?)
            })
            .await
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        self.hot
            .run(node.0, |connection, node| async move {
                connection.change(sql!("drain"), &[&*node]).await?;
                Ok(())
            })
            .await
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        self.hot
            .run(node.0, |connection, node| async move {
                connection.transaction(retire(&connection, *node)).await
            })
            .await
    }

    async fn members(&self) -> Result<(Timestamp, Vec<Member>), StoreError> {
        self.hot
            .run(None::<i64>, |connection, database| async move {
                let (now, members) =
                    try_join(connection.row(sql!("now"), &[&*database]), members(&connection))
                        .await?;
                Ok((time(&now, 0)?, members))
            })
            .await
    }
}

async fn join(connection: &Connection, node: &NewNode, now: Option<i64>) -> Tried<Joined> {
    let identity = node.identity.to_string();
    connection.rows(sql!("join_lock"), &[&identity]).await?;
    let bury = sql!("join_mark_dead");
    let former = connection.rows(bury, &[&node.identity]).await?;
    let mut former =
        former.iter().map(|row| Ok(NodeNo(get(row, 0)?))).collect::<Tried<Vec<NodeNo>>>()?;
    former.sort_unstable();
    let pools = pools_text(&node.pools)?;
    let row = connection
        .row(sql!("join_node"), &[&now, &node.identity, &node.name, &role_bits(node.roles), &pools])
        .await?;
    Ok(Joined { node: NodeNo(get(&row, 0)?), now: time(&row, 1)?, former })
}

async fn run_ping(connection: &Connection, ping: &Ping, now: Option<i64>) -> Tried<Pinged> {
    let node = ping.node.0;
    let sql = sql!("ping_node");
    let pinged = connection.maybe_row(sql, &[&now, &node, &micros(ping.oldest_open)]).await?;
    let Some(row) = pinged else { return Ok(Pinged::Fenced) };
    let now: i64 = get(&row, 0)?;
    let keys: KeyColumns = ping.long_attempts.iter().map(|run| run.key).collect();
    let fences: Vec<i32> = ping.long_attempts.iter().map(|run| fence(run.fence)).collect();
    let started_at: Vec<i64> =
        ping.long_attempts.iter().map(|run| run.started_at.as_micros()).collect();
    let replace = sql!("ping_long_attempts");
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let (_, members) = try_join(
        connection.change(
            replace,
            &[&node, &now, job_no, scheduled_at, sequence, attempt, &fences, &started_at],
        ),
        members(connection),
    )
    .await?;
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
    let rows = connection.rows(sql!("members"), &[]).await?;
    rows.iter().map(member).collect()
}

fn member(row: &Row) -> Tried<Member> {
    let node = NodeNo(get(row, "node_no")?);
    Ok(Member {
        node,
        name: get(row, "name")?,
        roles: roles(get(row, "roles")?),
        pools: pools_from_text(format_args!("node {node}"), get(row, "pools")?)?,
        state: from_code(
            &NodeState::ALL,
            get(row, "state")?,
            format_args!("node {node}"),
            "state",
        )?,
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
