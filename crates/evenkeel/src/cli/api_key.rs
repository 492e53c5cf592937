//! `evenkeel api-key`

use clap::{Args, Subcommand};
use evenkeel_core::Span;
use serde_json::{Value, json};

use super::Context;
use super::list::next_offset;
use super::run::moment;
use super::token::RoleArg;
use crate::client::Client;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};
use crate::{Exit, Failure};

#[derive(Args, Clone)]
pub struct ApiKeyArgs {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    command: ApiKeyCommand,
}

#[derive(Subcommand, Clone)]
enum ApiKeyCommand {
    /// Create an API key and print it on standard output; the key is shown only once
    ///
    /// The key belongs to the tenant of its creator and is valid until it expires or is revoked.
    #[command(after_help = "Examples:
  evenkeel api-key create ci --role operator --ttl 90d
  export EVENKEEL_TOKEN=$(evenkeel api-key create grafana --role viewer)")]
    Create(CreateArgs),
    /// List the API keys (their values are never shown)
    #[command(after_help = "Examples:
  evenkeel api-key list
  evenkeel api-key list --json | jq '.api_keys[] | select(.last_used_at == null).name'")]
    List {
        /// Maximum number of entries
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Number of entries to skip
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: u32,
    },
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
struct CreateArgs {
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

pub(super) fn run(context: &Context, args: ApiKeyArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        match args.command {
            ApiKeyCommand::Create(args) => create(context, &client, args).await,
            ApiKeyCommand::List { limit, offset } => list(context, &client, limit, offset).await,
            ApiKeyCommand::Revoke { key } => revoke(context, &client, &key).await,
        }
    })
}

async fn create(context: &Context, client: &Client, args: CreateArgs) -> Result<(), Failure> {
    let role = evenkeel_store::Role::from(args.role).as_str();
    let mut document = json!({"name": args.name, "role": role});
    if let Some(ttl) = args.ttl {
        document["expires_in"] = json!(ttl.to_string());
    }
    let answer = client.post(&["api-keys"], Some(&document)).await?;
    context.output.answer(&answer, answer.text_of("key"))
}

async fn list(context: &Context, client: &Client, limit: u32, offset: u32) -> Result<(), Failure> {
    let (limit, skip) = (limit.to_string(), offset.to_string());
    let answer = client.get(&["api-keys"], &[("limit", &limit), ("offset", &skip)]).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let keys = answer.list_of("api_keys");
    if keys.is_empty() {
        return context
            .output
            .line("There are no API keys. Create one with: evenkeel api-key create NAME");
    }
    let mut table = Table::new(
        context.output,
        &["KEY", "NAME", "ROLE", "STATE", "CREATED BY", "CREATED", "USED"],
    );
    for key in keys {
        let text = |field: &str| clean(key[field].as_str().unwrap_or_default());
        let past = |field: &str| moment(&key[field]).map(|at| ago(at, context.now()));
        let (state, tone) = state(key, context);
        table.row([
            (text("id"), Tone::Quiet),
            (text("name"), Tone::Plain),
            (text("role"), Tone::Plain),
            (state, tone),
            (text("created_by"), Tone::Quiet),
            (past("created_at").unwrap_or_default(), Tone::Plain),
            (past("last_used_at").unwrap_or_else(|| "never".into()), Tone::Plain),
        ]);
    }
    let mut rendered = table.render();
    rendered.push_str(&next_offset(&answer, keys.len(), offset));
    context.output.line(&rendered)
}

/// Returns the state of a key for display, such as `revoked`.
fn state(key: &Value, context: &Context) -> (String, Tone) {
    if !key["revoked_at"].is_null() {
        return ("revoked".into(), Tone::Quiet);
    }
    match moment(&key["expires_at"]) {
        Some(end) if end <= context.now() => ("expired".into(), Tone::Quiet),
        Some(end) => (format!("until {end}"), Tone::Plain),
        None => ("valid".into(), Tone::Plain),
    }
}

async fn revoke(context: &Context, client: &Client, key: &str) -> Result<(), Failure> {
    let id = match key.parse::<uuid::Uuid>() {
        Ok(id) => id.to_string(),
        Err(_) => find(client, key).await?,
    };
    let answer = client.delete(&["api-keys", &id], &[]).await?;
    context.output.answer(&answer, &format!("Revoked {}.", clean(key)))
}

/// Returns the id of the valid key with this name.
async fn find(client: &Client, name: &str) -> Result<String, Failure> {
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", "1000")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.get(&["api-keys"], &query).await?;
        let fits = |key: &&Value| key["name"] == name && key["revoked_at"].is_null();
        if let Some(key) = page.list_of("api_keys").iter().find(fits) {
            return Ok(key["id"].as_str().unwrap_or_default().to_owned());
        }
        let next = page.value["next_cursor"].as_str().map(String::from);
        if next.is_none() {
            let what = format!("there is no valid key with the name {name:?}");
            return Err(Failure::new(Exit::NotFound, what)
                .or_else("list the keys with `evenkeel api-key list`"));
        }
        cursor = next;
    }
}
