//! How evenly runs are spread over time, and the rebalance.

mod heat_map;
mod history;
mod panel;
mod rebalance;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

pub(crate) use panel::{local_hour, panel};
pub(crate) use rebalance::not_started;

use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout};

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// The rebalance or plan to show.
    rebalance: Option<String>,
    /// What the heat map counts: `runs` or `cost`.
    #[serde(default)]
    by: String,
    /// The day that the heat map shows by quarter hours.
    #[serde(default)]
    day: String,
    /// Place in the list of moves, or in the list of earlier rebalances.
    cursor: Option<String>,
    /// Place in the list of skipped jobs.
    #[serde(default)]
    skipped: usize,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(chosen): Query<Parameters>,
) -> Response {
    if let Some(id) = &chosen.rebalance {
        return rebalance::show(&web, &session, id, chosen.cursor.as_deref(), chosen.skipped).await;
    }
    let get = async |path: &str| web.backend.get(&session.credential, path).await;
    let distribution = match get("/api/v1/scheduler/distribution").await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/balance", &refused),
    };
    let now = web.now();
    let first = heat_map::first_instant(now).map(|at| at.to_string()).unwrap_or_default();
    let past = get(&format!("/api/v1/scheduler/activity?step=15m&from={}", escape(&first))).await;
    let scores = get("/api/v1/scheduler/distribution/history").await;
    let earlier = rebalance::list(&web, &session, chosen.cursor.as_deref()).await;
    let map: Markup = match &past {
        Ok(past) => heat_map::Choice {
            by_cost: chosen.by == "cost",
            day: chosen.day.parse().ok(),
            now,
            past,
            forecast: &distribution,
        }
        .render(),
        Err(refused) => html! { p role="alert" { "The heat map is unknown: " (refused.detail) } },
    };
    let body = html! {
        h1 { "Balance" }
        (panel(&session, &distribution, now))
        (map)
        (history::section(&scores))
        (rebalance::earlier(&session, &earlier, now))
    };
    layout::page(&session, "/balance", "Balance", &body)
}
