//! The keys that encrypt secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_secrets::Keyring;

use super::data_dir::DataDir;
use crate::config::{SecretKeys, ServeConfig, StoreChoice};
use crate::failure::Because as _;
use crate::{Failure, Result};

/// Name of the key file in the data directory, used with SQLite.
const OWN_FILE: &str = "secret-key";

/// Time limit for the command that prints the encryption keys.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Reads the encryption keys of secrets. With PostgreSQL, the server does not create a key, because
/// the other nodes of the cluster would not have it.
pub async fn load(
    config: &ServeConfig,
    dir: &DataDir,
    chance: &dyn Chance,
) -> Result<Option<Keyring>> {
    let (text, origin) = match &config.access.secret_keys {
        SecretKeys::File(path) => (read_file(path)?, path.display().to_string()),
        SecretKeys::Given(text) => (text.reveal().to_owned(), "EVENKEEL_SECRET_KEY".into()),
        SecretKeys::Command(command) => (run(command).await?, "secret_key_command".into()),
        SecretKeys::Unset => {
            let StoreChoice::Sqlite(_) = config.store else { return Ok(None) };
            let path = dir.path().join(OWN_FILE);
            if !dir.has(OWN_FILE) {
                dir.write(OWN_FILE, &format!("{}\n", Keyring::draw(chance)))?;
            }
            (read_file(&path)?, path.display().to_string())
        }
    };
    let keys = Keyring::read(&text).map_err(|error| {
        Failure::because(format!("the key for secrets from {origin} can't be used"), &error)
            .or_else("make one with `openssl rand -base64 32`")
    })?;
    Ok(Some(keys))
}

fn read_file(path: &Path) -> Result<String> {
    read_private(path, "the key for secrets")
}

/// Reads a file with a secret, and warns if other users can read it too. `content` names the secret
/// in the error.
pub fn read_private(path: &Path, content: &str) -> Result<String> {
    let what = format!("{content} can't be read from {}", path.display());
    if std::fs::metadata(path).because(&what)?.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "other users can read this file, which contains a secret; run chmod 600 on it");
    }
    std::fs::read_to_string(path).because(what)
}

async fn run(command: &[String]) -> Result<String> {
    let [program, args @ ..] = command else { return Ok(String::new()) };
    let what = || format!("secret_key_command {program:?} failed");
    let way_out = "run it by hand; it must print the keys, one on each line, and exit with 0";
    let output = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND_TIME, output)
        .await
        .map_err(|_| {
            let secs = COMMAND_TIME.as_secs();
            Failure::failed(format!("{}: it took more than {secs} s", what())).or_else(way_out)
        })?
        .map_err(|error| Failure::because(what(), &error).or_else(way_out))?;
    if !output.status.success() {
        return Err(Failure::failed(format!("{}: {}", what(), output.status)).or_else(way_out));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::failed(format!("{}: it printed no text", what())).or_else(way_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[tokio::test]
    async fn command_prints_the_keys_or_fails_with_the_reason() {
        let printed = run(&split("echo one two")).await.unwrap();
        assert_eq!(printed, "one two\n");
        assert!(run(&split("false")).await.unwrap_err().what.contains("exit status: 1"));
        assert!(
            run(&split("/no/such/program")).await.unwrap_err().what.contains("/no/such/program")
        );
    }

    #[test]
    fn missing_file_is_named() {
        assert!(read_file(Path::new("/no/such/key")).unwrap_err().what.contains("/no/such/key"));
    }
}
