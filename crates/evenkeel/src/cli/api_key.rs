//! `evenkeel api-key`

use clap::{Args, Subcommand};
use evenkeel_core::{Span, Timestamp};
use serde_json::{Value, json};

use super::Session;
use super::list::{CursorArgs, OffsetArgs};
use super::run::{moment, when};
use super::token::RoleArg;
use crate::client::Client;
use crate::output::{Table, Tone, clean};
use crate::{Exit, Failure, Result};

#[derive(Subcommand, Clone)]
pub(super) enum ApiKeyCommand {
    /// Create an API key and print it on standard output; the key is shown only once
    ///
    /// The API key belongs to the tenant of its creator and is valid until it expires or is
    /// revoked.
    #[command(after_help = "Examples:
  evenkeel api-key create ci --role operator --ttl 90d
  export EVENKEEL_TOKEN=$(evenkeel api-key create grafana --role viewer)")]
    Create(CreateArgs),
    /// List the API keys (their values are never shown)
    #[command(after_help = "Examples:
  evenkeel api-key list
  evenkeel api-key list --json | jq '.api_keys[] | select(.last_used_at == null).name'")]
    List(OffsetArgs),
    /// Revoke a key for good
    #[command(after_help = "Examples:
  evenkeel api-key revoke ci
  evenkeel api-key revoke 019a8000-0000-7000-8000-000000000000")]
    Revoke {
        /// Name or id of the key
        #[arg(value_name = "KEY")]
        key: String,
    },
}

#[derive(Args, Clone)]
pub(super) struct CreateArgs {
    /// Name of the key
    #[arg(value_name = "NAME")]
    name: String,
    /// Role of the key
    #[arg(long, value_name = "ROLE")]
    role: RoleArg,
    /// Lifetime of the key [default: until the key is revoked]
    #[arg(long, value_name = "TIME")]
    ttl: Option<Span>,
}

pub(super) async fn run(session: &Session, command: ApiKeyCommand) -> Result {
    match command {
        ApiKeyCommand::Create(args) => create(session, args).await,
        ApiKeyCommand::List(args) => list(session, args).await,
        ApiKeyCommand::Revoke { key } => revoke(session, &key).await,
    }
}

async fn create(session: &Session, args: CreateArgs) -> Result {
    let role = evenkeel_store::Role::from(args.role).as_str();
    let mut document = json!({"name": args.name, "role": role});
    if let Some(ttl) = args.ttl {
        document["expires_in"] = json!(ttl.to_string());
    }
    let answer = session.client.post(&["api-keys"], Some(&document)).await?;
    session.answer(&answer, answer.text_of("key"))
}

async fn list(session: &Session, args: OffsetArgs) -> Result {
    let answer = session.client.get_with(&["api-keys"], &args.query()).await?;
    let now = session.now();
    let headings = ["KEY", "NAME", "ROLE", "STATE", "CREATED BY", "CREATED", "USED"];
    let rows = answer.list_of("api_keys").iter().map(|key| {
        let text = |field: &str| key[field].as_str().unwrap_or_default().to_owned();
        [
            (text("id"), Tone::Quiet),
            (text("name"), Tone::Plain),
            (text("role"), Tone::Plain),
            state(key, now),
            (text("created_by"), Tone::Quiet),
            (when(&key["created_at"], now, ""), Tone::Plain),
            (when(&key["last_used_at"], now, "never"), Tone::Plain),
        ]
    });
    let table = Table::of(session.output, headings, rows);
    let nothing = "There are no API keys. Create one with: evenkeel api-key create NAME";
    let next = args.next(&answer, table.len());
    session.page(&answer, table, &next, nothing)
}

/// Returns the state of an API key for display, such as `revoked`.
fn state(key: &Value, now: Timestamp) -> (String, Tone) {
    if !key["revoked_at"].is_null() {
        return ("revoked".into(), Tone::Quiet);
    }
    match moment(&key["expires_at"]) {
        Some(end) if end <= now => ("expired".into(), Tone::Quiet),
        Some(end) => (format!("until {end}"), Tone::Plain),
        None => ("valid".into(), Tone::Plain),
    }
}

async fn revoke(session: &Session, key: &str) -> Result {
    let id = match key.parse::<uuid::Uuid>() {
        Ok(id) => id.to_string(),
        Err(_) => find(&session.client, key).await?,
    };
    let answer = session.client.delete(&["api-keys", &id], &[]).await?;
    session.answer(&answer, &format!("Revoked {}.", clean(key)))
}

/// Returns the id of the API key that has this name and is not revoked.
async fn find(client: &Client, name: &str) -> Result<String> {
    let mut page = CursorArgs { limit: 1000, cursor: None };
    loop {
        let answer = client.get_with(&["api-keys"], &page.query()).await?;
        let fits = |key: &&Value| key["name"] == name && key["revoked_at"].is_null();
        if let Some(key) = answer.list_of("api_keys").iter().find(fits) {
            return Ok(key["id"].as_str().unwrap_or_default().to_owned());
        }
        page.cursor = answer.value["next_cursor"].as_str().map(String::from);
        if page.cursor.is_none() {
            let what = format!("there is no valid key with the name {name:?}");
            return Err(Failure::new(Exit::NotFound, what)
                .or_else("list the keys with `evenkeel api-key list`"));
        }
    }
}
