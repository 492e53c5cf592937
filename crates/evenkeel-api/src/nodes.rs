//! `GET /api/v1/nodes`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Member, NodeState, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::call::Answer;
use crate::page::PageQuery;
use crate::params::Params;
use crate::state::App;

/// A node: one server process of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NodeView {
    /// Number of the node; each start of a server process gets a new number.
    #[schema(example = 7)]
    pub number: i32,
    /// Name of the node, as used in `dont_run_on_nodes`.
    #[schema(example = "crawler-3")]
    pub name: String,
    /// Roles of the node: `api`, `scheduler`, `worker`.
    #[schema(example = json!(["scheduler", "worker"]))]
    pub roles: Vec<&'static str>,
    /// Worker pools from which the node claims runs; empty if the node is not a worker.
    #[schema(example = json!(["default", "chrome"]))]
    pub pools: Vec<String>,
    /// `live`, `draining` (the node claims no new runs) or `dead` (other nodes take over its runs).
    #[schema(example = "live")]
    pub state: &'static str,
    /// Time when the node joined the cluster.
    pub joined_at: Timestamp,
    /// Time of the node's last heartbeat.
    pub last_ping_at: Timestamp,
}

impl From<Member> for NodeView {
    fn from(member: Member) -> Self {
        let roles = member.roles;
        let roles = [("api", roles.api), ("scheduler", roles.scheduler), ("worker", roles.worker)];
        Self {
            number: member.node.0,
            name: member.name,
            roles: roles.into_iter().filter(|(_, has)| *has).map(|(role, _)| role).collect(),
            pools: member.pools,
            state: match member.state {
                NodeState::Live => "live",
                NodeState::Draining => "draining",
                NodeState::Dead => "dead",
                NodeState::Gone => "gone",
            },
            joined_at: member.joined_at,
            last_ping_at: member.last_ping_at,
        }
    }
}

/// One page of nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NodeList {
    /// The nodes, in the order in which they joined the cluster; nodes that have left are not
    /// listed.
    pub nodes: Vec<NodeView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// Page size: the `limit` of the request, or its default.
    pub limit: u32,
    /// Number of items that were skipped before this page, from the `offset` of the request.
    pub offset: u32,
    /// Value of `cursor` that requests the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Time when the list was read.
    pub as_of: Timestamp,
}

/// Lists the nodes of the cluster with their roles, pools and last heartbeat.
#[utoipa::path(
    get,
    path = "/api/v1/nodes",
    tag = "operations",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = NodeList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_nodes(
    State(app): State<App>,
    // Every tenant may see node names: executions show them, and jobs can exclude nodes by name.
    _: Caller,
    mut params: Params,
) -> Answer<NodeList> {
    let page: PageRequest<NodeNo> = PageQuery::take(&mut params);
    params.finish()?;
    let (as_of, mut members) = app.jobs.nodes().await?;
    let total = members.len() as u64;
    // Node numbers increase in the order in which nodes join the cluster.
    members.sort_by_key(|member| member.node);
    members.retain(|member| page.after.is_none_or(|after| member.node > after));
    let (offset, limit) = (page.offset as usize, page.limit as usize);
    let mut rest = members.into_iter().skip(offset);
    let nodes: Vec<NodeView> = rest.by_ref().take(limit).map(Into::into).collect();
    let last = nodes.last().map(|node| NodeNo(node.number));
    Ok(Json(NodeList {
        total,
        total_is_estimate: false,
        limit: page.limit,
        offset: page.offset,
        next_cursor: app.cursor(last.filter(|_| rest.next().is_some())),
        nodes,
        as_of,
    }))
}
