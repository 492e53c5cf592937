//! `evenkeel secret`

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::Session;
use super::list::OffsetArgs;
use super::run::when;
use crate::failure::Because as _;
use crate::output::{Table, Tone, clean};
use crate::{Failure, Result};

#[derive(Subcommand, Clone)]
pub(super) enum SecretCommand {
    /// Create a secret, or replace its value
    ///
    /// The value is read from standard input, from a prompt without echo, or from a file. The value
    /// is never an argument, because other users of the machine can see command lines. One line
    /// break at the end of the value is removed.
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
    List(OffsetArgs),
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

pub(super) async fn run(session: &Session, command: SecretCommand) -> Result {
    match command {
        SecretCommand::Set { name, from_file } => set(session, &name, from_file).await,
        SecretCommand::List(args) => list(session, args).await,
        SecretCommand::Delete { name } => {
            let answer = session.client.delete(&["secrets", &name], &[]).await?;
            session.answer(&answer, &format!("{} is deleted", clean(&name)))
        }
        SecretCommand::Rotate => rotate(session).await,
    }
}

async fn set(session: &Session, name: &str, from_file: Option<PathBuf>) -> Result {
    let value = match from_file {
        Some(path) => {
            let what = format!("{} can't be read as text", path.display());
            std::fs::read_to_string(&path).because(what)?
        }
        None => read_value(name)?,
    };
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let value = value.strip_suffix('\r').unwrap_or(value);
    let answer = session.client.put(&["secrets", name], &json!({"value": value})).await?;
    let version = answer.value["version"].as_i64().unwrap_or_default();
    let what = if version == 1 { "is created".into() } else { format!("has version {version}") };
    session.answer(&answer, &format!("{} {what}", clean(name)))
}

/// Reads the value of a secret from a pipe, or from a terminal without echo.
fn read_value(name: &str) -> Result<String> {
    let what = "the value can't be read";
    let mut stdin = std::io::stdin();
    let mut value = String::new();
    if !stdin.is_terminal() {
        stdin.read_to_string(&mut value).because(what)?;
        return Ok(value);
    }
    let before = tcgetattr(&stdin).because(what)?;
    let mut silent = before.clone();
    silent.local_modes -= LocalModes::ECHO;
    let mut terminal = std::io::stderr();
    let _ = write!(terminal, "Value of {}: ", clean(name));
    let _ = terminal.flush();
    tcsetattr(&stdin, OptionalActions::Flush, &silent).because(what)?;
    let read = stdin.read_line(&mut value);
    let restored = tcsetattr(&stdin, OptionalActions::Flush, &before);
    let _ = writeln!(terminal);
    read.because(what)?;
    restored.because(what)?;
    Ok(value)
}

async fn list(session: &Session, args: OffsetArgs) -> Result {
    let answer = session.client.get_with(&["secrets"], &args.query()).await?;
    let rows = answer.list_of("secrets").iter().map(|secret| {
        let text = |field: &str| secret[field].as_str().unwrap_or_default().to_owned();
        [
            (text("name"), Tone::Plain),
            (secret["version"].to_string(), Tone::Plain),
            (text("updated_by"), Tone::Quiet),
            (when(&secret["updated_at"], session.now(), ""), Tone::Plain),
            (text("key_id"), Tone::Quiet),
        ]
    });
    let table = Table::of(session.output, ["NAME", "VERSION", "SET BY", "SET", "KEY"], rows);
    let next = args.next(&answer, table.len());
    let nothing = "There is no secret: `evenkeel secret set NAME` creates one.";
    session.page(&answer, table, &next, nothing)
}

async fn rotate(session: &Session) -> Result {
    let (mut rotated, mut unreadable) = (0, Vec::new());
    let mut cursor: Option<String> = None;
    let key = loop {
        let query = Vec::from_iter(cursor.map(|cursor| ("cursor", cursor)));
        let answer = session.client.post_with(&["secret-rotations"], &query).await?;
        rotated += answer.value["rotated"].as_u64().unwrap_or_default();
        unreadable.extend(answer.list_of("unreadable").iter().cloned());
        cursor = answer.value["next_cursor"].as_str().map(String::from);
        if cursor.is_none() {
            break answer.value["key_id"].clone();
        }
    };
    let all = json!({"rotated": rotated, "unreadable": unreadable, "key_id": key});
    let key = clean(key.as_str().unwrap_or_default());
    let text = format!("{rotated} secrets were re-encrypted with the key {key}");
    session.output.json_or_text(&all, &text)?;
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
