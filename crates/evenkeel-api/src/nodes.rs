//! `GET /api/v1/nodes`

use axum::Json;
use evenkeel_core::shard::shards_of;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Member, NodeState, Page, PageRequest};

use crate::call::{Answer, Call};
use crate::page::{PageQuery, Paged};
use crate::state::App;
use crate::view::view;

view! {
    /// A node: one server process of the cluster.
    NodeView::new(member: Member, shards: usize) {
        let roles = member.roles;
        let roles = [("api", roles.api), ("scheduler", roles.scheduler), ("worker", roles.worker)];
    }

    /// Number of the node; each start of a server process gets a new number.
    #[schema(example = 7)]
    number: i32 = member.node.0,
    /// Name of the node, as used in `dont_run_on_nodes`.
    #[schema(example = "crawler-3")]
    name: String = member.name,
    /// Roles of the node: `api`, `scheduler`, `worker`.
    #[schema(example = json!(["scheduler", "worker"]))]
    roles: Vec<&'static str> =
        roles.into_iter().filter(|(_, has)| *has).map(|(role, _)| role).collect(),
    /// Worker pools from which the node claims runs; empty if the node is not a worker.
    #[schema(example = json!(["default", "chrome"]))]
    pools: Vec<String> = member.pools,
    /// `live`, `draining` (the node claims no new runs) or `dead` (other nodes take over its runs).
    #[schema(example = "live")]
    state: &'static str = match member.state {
        NodeState::Live => "live",
        NodeState::Draining => "draining",
        NodeState::Dead => "dead",
        NodeState::Gone => "gone",
    },
    /// Number of shards that the node schedules, while all live nodes with the role `scheduler` send
    /// heartbeats. Each shard has 1/256 of all jobs.
    #[schema(maximum = 256, example = 128)]
    shards: usize = shards,
    /// Time when the node joined the cluster.
    joined_at: Timestamp = member.joined_at,
    /// Time of the node's last heartbeat.
    last_ping_at: Timestamp = member.last_ping_at,
}

view! {
    /// One page of nodes.
    NodeList::new(
        app: &App, request: PageRequest<NodeNo>, page: Page<(Member, usize), NodeNo>, as_of: Timestamp
    ) {
        let nodes = page.items.into_iter();
    }

    /// The nodes, in the order in which they joined the cluster; nodes that have left are not
    /// listed.
    nodes: Vec<NodeView> =
        nodes.map(|(member, shards)| NodeView::new(member, shards)).collect(),
    /// Number of items on all pages together.
    total: u64 = page.total,
    /// True if `total` is an estimate.
    total_is_estimate: bool = page.total_is_estimate,
    /// Page size: the `limit` of the request, or its default.
    limit: u32 = request.limit,
    /// Number of items that were skipped before this page, from the `offset` of the request.
    offset: u32 = request.offset,
    /// Value of `cursor` that requests the next page; null on the last page.
    next_cursor: Option<String> = app.cursor(page.next),
    /// Time when the list was read.
    as_of: Timestamp = as_of,
}

/// Lists the nodes of the cluster with their roles, pools and last heartbeat.
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "operations",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = NodeList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_nodes(
    // Every tenant may see node names: executions show them, and jobs can exclude nodes by name.
    call: Call,
    Paged(request): Paged<NodeNo>,
) -> Answer<NodeList> {
    let (as_of, mut members) = call.store.members().await?;
    let total = members.len() as u64;
    let schedulers: Vec<NodeNo> = members
        .iter()
        .filter(|member| member.state == NodeState::Live && member.roles.scheduler)
        .map(|member| member.node)
        .collect();
    // Node numbers increase in the order in which nodes join the cluster.
    members.sort_by_key(|member| member.node);
    members.retain(|member| request.after.is_none_or(|after| member.node > after));
    let mut rest = members.into_iter().skip(request.offset as usize);
    let items: Vec<Member> = rest.by_ref().take(request.limit as usize).collect();
    let next = items.last().map(|member| member.node).filter(|_| rest.next().is_some());
    let with_shards = |member: Member| {
        let shards = shards_of(member.node, &schedulers).len();
        (member, shards)
    };
    let items = items.into_iter().map(with_shards).collect();
    let page = Page { items, total, total_is_estimate: false, next };
    Ok(Json(NodeList::new(&call, request, page, as_of)))
}
