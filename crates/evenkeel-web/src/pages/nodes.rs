//! The nodes of the cluster.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use serde_json::Value;

use super::items;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    let answer = match web.backend.get(&session.credential, "/api/v1/nodes?limit=100").await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/nodes", &refused),
    };
    let now = web.now();
    let list = |value: &Value| {
        let names = value.as_array().map_or(&[][..], Vec::as_slice).iter().map(text::plain);
        names.collect::<Vec<_>>().join(", ")
    };
    let body = html! {
        h1 { "Nodes" }
        table {
            thead { tr { th scope="col" { "Node" } th scope="col" { "State" } th scope="col" { "Roles" }
                th scope="col" { "Pools" } th scope="col" { "Joined" } th scope="col" { "Last ping" } } }
            tbody {
                @for node in items(&answer, "nodes") {
                    tr { th scope="row" { (text::plain(&node["name"])) " #" (node["number"]) }
                        td { (text::state(&node["state"])) }
                        td { (list(&node["roles"])) } td { (list(&node["pools"])) }
                        td { (text::time(&node["joined_at"], now)) }
                        td { (text::time(&node["last_ping_at"], now)) } }
                }
            }
        }
    };
    layout::page(&session, "/nodes", "Nodes", &body)
}
