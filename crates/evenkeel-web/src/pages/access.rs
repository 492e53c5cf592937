//! API keys: list, create and revoke. Only administrators may do this.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lists::{address, count};
use super::{PAGE_ITEMS, items, next_page};
use crate::backend::escape;
use crate::layout::primary_button;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/access";
const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    cursor: String,
    /// The name of the key that was just revoked.
    revoked: Option<String>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { cursor, revoked }): Query<Parameters>,
) -> Response {
    let list = address(&format!("/api/v1/api-keys?limit={PAGE_ITEMS}"), &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let keys = items(&answer, "api_keys");
    let body = html! {
        h1 { "Access" }
        @if let Some(name) = revoked { p.notice role="status" { "The key " (name) " is revoked." } }
        (create_form(&session))
        h2 { "API keys" }
        @if keys.is_empty() {
            p { "There is no API key. A program sends its key as " code { "Authorization: Bearer ek_…" }
                ", and a person can sign in with one." }
        } @else {
            p { (count(answer["total"].as_u64().unwrap_or_default(), "key")) }
            (table(&session, keys, web.now()))
        }
        (next_page(&answer, PATH, &[]))
    };
    layout::page(&session, PATH, "Access", &body)
}

fn create_form(session: &Session) -> Markup {
    html! {
        h2 { "Create an API key" }
        form.filter method="post" action="/ui/api-keys" {
            input type="hidden" name="token" value=(session.form_token);
            div.pair {
                label for="name" { "Name" }
                input id="name" name="name" required maxlength="255" placeholder="ci";
            }
            div.pair {
                label for="role" { "Role" }
                select id="role" name="role" { @for role in ROLES { option { (role) } } }
            }
            div.pair {
                label for="expires_in" { "Valid for " small { "(empty: until it is revoked)" } }
                input id="expires_in" name="expires_in" placeholder="90d";
            }
            button.primary { "Create" }
        }
    }
}

fn table(session: &Session, keys: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="API keys" {
            thead { tr { th scope="col" { "Name" } th scope="col" { "Role" }
                th scope="col" { "Created" } th scope="col" { "Last used" }
                th scope="col" { "Expires" } th scope="col" { "Revoked" } } }
            tbody {
                @for key in keys {
                    @let revoke = format!("{PATH}/revoke/{}", escape(&text::plain(&key["id"])));
                    @let target = address(&revoke, &[("name", &text::plain(&key["name"]))]);
                    tr { th scope="row" { (text::plain(&key["name"])) }
                        td { (text::plain(&key["role"])) }
                        td { (text::time(&key["created_at"], now)) " by " (text::plain(&key["created_by"])) }
                        td { (text::time(&key["last_used_at"], now)) }
                        td { (text::time(&key["expires_at"], now)) }
                        td { @if key["revoked_at"].is_string() { (text::time(&key["revoked_at"], now)) }
                            @else if session.role == evenkeel_store::Role::Admin {
                                a href=(target) { "Revoke…" }
                            } } }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Key {
    #[serde(default)]
    token: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    expires_in: String,
}

/// Creates a key and shows it. Only this answer contains the key, so it is not a redirect.
pub(crate) async fn create(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(form): Form<Key>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let mut document = json!({"name": form.name, "role": form.role});
    if !form.expires_in.trim().is_empty() {
        document["expires_in"] = json!(form.expires_in.trim());
    }
    let answer = web.backend.post(&session.credential, "/api/v1/api-keys", Some(&document)).await;
    let made = match answer {
        Ok(made) => made,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let body = html! {
        h1 { "The key " (text::plain(&made["name"])) " is created" }
        p.notice role="status" { "Copy the key now. The server stores only its hash and can't show it again." }
        pre { (text::plain(&made["key"])) }
        dl {
            dt { "Role" } dd { (text::plain(&made["role"])) }
            dt { "Expires" } dd { (text::time(&made["expires_at"], web.now())) }
        }
        p { a href=(PATH) { "Back to the API keys" } }
    };
    layout::page(&session, PATH, "New API key", &body)
}

#[derive(Deserialize)]
pub(crate) struct Revocation {
    #[serde(default)]
    token: String,
    #[serde(default)]
    name: String,
}

/// Asks before a key is revoked, because clients that use it stop working at once.
pub(crate) async fn confirm_revoke(
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Query(Revocation { name, .. }): Query<Revocation>,
) -> Response {
    let action = format!("/ui/api-keys/{}/revoke", escape(&id));
    let body = html! {
        h1 { "Revoke the key " (name) "?" }
        p { "Programs and sessions with this key are refused at once. A revoked key can't be restored." }
        div.commands {
            (primary_button(&session, &action, &[("name", &name)], "Revoke the key"))
            a href=(PATH) { "Go back without a change" }
        }
    };
    layout::page(&session, PATH, "Revoke a key", &body)
}

pub(crate) async fn revoke(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Form(form): Form<Revocation>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let path = format!("/api/v1/api-keys/{}", escape(&id));
    match web.backend.delete(&session.credential, &path).await {
        Ok(_) => Redirect::to(&address(PATH, &[("revoked", &form.name)])).into_response(),
        Err(refused) => layout::refused(&session, PATH, &refused),
    }
}
