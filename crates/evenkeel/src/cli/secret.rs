//! `evenkeel secret`

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::Context;
use super::list::next_offset;
use super::run::moment;
use crate::Failure;
use crate::client::Client;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};

#[derive(Args, Clone)]
pub struct SecretArgs {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    command: SecretCommand,
}

#[derive(Subcommand, Clone)]
enum SecretCommand {
    /// Create a secret, or replace its value
    ///
    /// The value is read from standard input, from a prompt without echo, or from a file. The value
    /// is never an argument, because other users of the machine can see command lines. One trailing
    /// line break is removed.
    #[command(after_help = "Examples:
  evenkeel secret set api-token
  pass show api-token | evenkeel secret set api-token
  evenkeel secret set client-key --from-file key.pem

A job refers to it by name:
  evenkeel job create --name report --every 1h --http https://example.com/report \\
    --header 'Authorization: Bearer {{secret.api-token}}'")]
    Set {
        /// Name of the secret
        #[arg(value_name = "NAME")]
        name: String,
        /// Read the value from this file
        #[arg(long, value_name = "FILE")]
        from_file: Option<PathBuf>,
    },
    /// List secrets by name, without their values
    #[command(after_help = "Examples:
  evenkeel secret list
  evenkeel secret list --json")]
    List {
        /// Maximum number of entries
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Number of entries to skip
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: u32,
    },
    /// Delete a secret; attempts of jobs that refer to it will fail
    #[command(after_help = "Examples:
  evenkeel secret delete api-token")]
    Delete {
        /// Name of the secret
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Re-encrypt all secrets with the server's newest key
    ///
    /// After this command, the older keys can be removed from the server's configuration.
    #[command(after_help = "Examples:
  evenkeel secret rotate
  evenkeel secret rotate --json")]
    Rotate,
}

pub(super) fn run(context: &Context, args: SecretArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        match args.command {
            SecretCommand::Set { name, from_file } => set(context, &client, &name, from_file).await,
            SecretCommand::List { limit, offset } => list(context, &client, limit, offset).await,
            SecretCommand::Delete { name } => delete(context, &client, &name).await,
            SecretCommand::Rotate => rotate(context, &client).await,
        }
    })
}

async fn set(
    context: &Context,
    client: &Client,
    name: &str,
    from_file: Option<PathBuf>,
) -> Result<(), Failure> {
    let value = match from_file {
        Some(path) => std::fs::read_to_string(&path).map_err(|error| {
            Failure::because(format!("{} can't be read as text", path.display()), &error)
        })?,
        None => read_value(name)?,
    };
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let value = value.strip_suffix('\r').unwrap_or(value);
    let answer = client.put(&["secrets", name], &json!({"value": value})).await?;
    let version = answer.value["version"].as_i64().unwrap_or_default();
    let what = if version == 1 { "is created".into() } else { format!("has version {version}") };
    context.output.answer(&answer, &format!("{} {what}", clean(name)))
}

/// Reads the value from a pipe, or from a terminal without echo.
fn read_value(name: &str) -> Result<String, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::because("the value can't be read", error);
    let mut stdin = std::io::stdin();
    let mut value = String::new();
    if !stdin.is_terminal() {
        stdin.read_to_string(&mut value).map_err(|error| failed(&error))?;
        return Ok(value);
    }
    let before = tcgetattr(&stdin).map_err(|error| failed(&error))?;
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO;
    let mut terminal = std::io::stderr();
    let _ = write!(terminal, "Value of {}: ", clean(name));
    let _ = terminal.flush();
    tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(|error| failed(&error))?;
    let read = stdin.read_line(&mut value);
    let restored = tcsetattr(&stdin, OptionalActions::Flush, &before);
    let _ = writeln!(terminal);
    read.map_err(|error| failed(&error))?;
    restored.map_err(|error| failed(&error))?;
    Ok(value)
}

async fn list(context: &Context, client: &Client, limit: u32, offset: u32) -> Result<(), Failure> {
    let (limit, skip) = (limit.to_string(), offset.to_string());
    let answer = client.get(&["secrets"], &[("limit", &limit), ("offset", &skip)]).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let secrets = answer.list_of("secrets");
    if secrets.is_empty() {
        return context.output.line("There is no secret: `evenkeel secret set NAME` creates one.");
    }
    let mut table = Table::new(context.output, &["NAME", "VERSION", "SET BY", "SET", "KEY"]);
    for secret in secrets {
        let text = |field: &str| clean(secret[field].as_str().unwrap_or_default());
        let set = moment(&secret["updated_at"]).map(|at| ago(at, context.now()));
        table.row([
            (text("name"), Tone::Plain),
            (secret["version"].to_string(), Tone::Plain),
            (text("updated_by"), Tone::Quiet),
            (set.unwrap_or_default(), Tone::Plain),
            (text("key_id"), Tone::Quiet),
        ]);
    }
    let mut rendered = table.render();
    rendered.push_str(&next_offset(&answer, secrets.len(), offset));
    context.output.line(&rendered)
}

async fn delete(context: &Context, client: &Client, name: &str) -> Result<(), Failure> {
    let answer = client.delete(&["secrets", name], &[]).await?;
    context.output.answer(&answer, &format!("{} is deleted", clean(name)))
}

async fn rotate(context: &Context, client: &Client) -> Result<(), Failure> {
    let (mut rotated, mut unreadable) = (0, Vec::new());
    let mut cursor: Option<String> = None;
    let key = loop {
        let query: Vec<(&str, &str)> =
            cursor.as_deref().map(|cursor| ("cursor", cursor)).into_iter().collect();
        let answer = client.post_with(&["secret-rotations"], &query).await?;
        rotated += answer.value["rotated"].as_u64().unwrap_or_default();
        unreadable.extend(answer.list_of("unreadable").iter().cloned());
        cursor = answer.value["next_cursor"].as_str().map(String::from);
        if cursor.is_none() {
            break answer.value["key_id"].clone();
        }
    };
    if context.output.is_json() {
        let all = json!({"rotated": rotated, "unreadable": unreadable, "key_id": key});
        context.output.line(&all.to_string())?;
    } else {
        let key = clean(key.as_str().unwrap_or_default());
        context.output.line(&format!("{rotated} secrets were re-encrypted with the key {key}"))?;
    }
    if unreadable.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = unreadable
        .iter()
        .take(10)
        .map(|one| clean(one["name"].as_str().unwrap_or_default()))
        .collect();
    let what = format!("{} secrets could not be decrypted: {}", unreadable.len(), names.join(", "));
    Err(Failure::failed(what).or_else("add the key they are encrypted with, or set them again"))
}
