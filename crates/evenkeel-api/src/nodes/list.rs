//! `GET /api/v1/nodes`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Member, NodeState, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A process of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NodeView {
    /// Its number; each start of a process gets another.
    #[schema(example = 7)]
    pub number: i32,
    /// Its name, which `dont_run_on_nodes` means.
    #[schema(example = "crawler-3")]
    pub name: String,
    /// What it does: `api`, `scheduler`, `worker`.
    #[schema(example = json!(["scheduler", "worker"]))]
    pub roles: Vec<&'static str>,
    /// The pools whose runs it takes; none if it is no worker.
    #[schema(example = json!(["default", "chrome"]))]
    pub pools: Vec<String>,
    /// `live`, `draining` (it takes nothing more) or `dead` (others take over what it had).
    #[schema(example = "live")]
    pub state: &'static str,
    /// When it joined.
    #[schema(value_type = String, format = DateTime)]
    pub joined_at: Timestamp,
    /// When it last said that it lives.
    #[schema(value_type = String, format = DateTime)]
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

/// The processes of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NodeList {
    /// In the order in which they joined; those that have left are not there.
    pub nodes: Vec<NodeView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
    /// As of this moment.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Timestamp,
}

/// The nodes of the cluster: what each does, which pools it serves, and when it was last heard of.
#[utoipa::path(
    get,
    path = "/api/v1/nodes",
    operation_id = "list_nodes",
    tag = "operations",
    params(PageQuery),
    responses((status = 200, description = "A part of the list", body = NodeList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    // Names of nodes are no secret: runs show them, and jobs name those they stay away from.
    _: Caller,
    mut params: Params,
) -> Result<Json<NodeList>, Problem> {
    let page: PageRequest<NodeNo> = PageQuery::take(&mut params);
    params.finish()?;
    let (as_of, mut members) = app.jobs.nodes().await?;
    let total = members.len() as u64;
    // Each that joins gets the next number.
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
