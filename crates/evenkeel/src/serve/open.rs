//! Prints a link that signs in once, and opens the browser with such a link.

use std::io::Write as _;
use std::process::Stdio;

use evenkeel_core::Timestamp;
use evenkeel_core::chance::Chance;
use evenkeel_web::OneTimeLinks;

use super::data_dir::DataDir;
use crate::config::ServeConfig;

/// A page in the data directory that leads the browser to the link. The link is not an argument of
/// the browser's command, because other users of the machine can read the arguments of commands.
const PAGE: &str = "open.html";

/// Creates links that sign in with the local token.
pub struct SignIn {
    pub links: OneTimeLinks,
    pub local_token: String,
}

impl SignIn {
    /// Shows a link if only this machine can reach the server, and opens the browser if `--open`
    /// is set.
    pub fn offer(
        &self,
        config: &ServeConfig,
        dir: &DataDir,
        url: &str,
        now: Timestamp,
        chance: &dyn Chance,
    ) {
        let link = || format!("{url}{}", self.links.create(&self.local_token, now, chance));
        if config.listen.ip().is_loopback() {
            show(config.log.json, &link());
        }
        if config.open {
            open(dir, &link());
        }
    }
}

fn show(is_json: bool, link: &str) {
    if is_json {
        tracing::info!(sign_in.url = link, "one-time sign-in link, valid for 5 minutes");
        return;
    }
    let text = format!("  sign in  {link}\n           (works once, within 5 minutes)\n\n");
    // A failed write to standard error is ignored.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Opens the browser in the background. The server works without a browser, so a failure is only
/// logged.
fn open(dir: &DataDir, link: &str) {
    // The link has no characters with a meaning in HTML.
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Evenkeel</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><a href=\"{link}\">Sign in</a>\n"
    );
    if let Err(failure) = dir.write(PAGE, &page) {
        tracing::warn!(
            error = failure.what,
            "browser was not opened; open the server's address in it"
        );
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = tokio::process::Command::new(program);
    command
        .arg(dir.path().join(PAGE))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    tokio::spawn(async move {
        let error = match command.status().await {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(program, error, "browser was not opened; open the server's address in it");
    });
}
