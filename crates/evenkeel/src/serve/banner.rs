//! What a person sees first.

use std::io::{IsTerminal as _, Write as _};

use crate::config::ServeConfig;

/// Tells where the server is and what to do next; all of it only at the first start.
pub fn show(config: &ServeConfig, url: &str, is_first: bool) {
    if config.log.json {
        // Programs read the log line by line.
        tracing::info!(server.url = url, "Evenkeel runs at {url}");
        return;
    }
    // Whoever started it as a service has the log.
    let _ = write!(std::io::stderr().lock(), "{}", text(config, url, is_first, bold()));
}

fn bold() -> (&'static str, &'static str) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stderr().is_terminal() && !plain { ("\x1b[1m", "\x1b[0m") } else { ("", "") }
}

fn text(config: &ServeConfig, url: &str, is_first: bool, bold: (&str, &str)) -> String {
    let (on, off) = bold;
    let mut text =
        format!("\n  {on}Evenkeel runs at {url}{off}\n  data in  {}\n", config.data_dir.display());
    let in_dir = crate::config::StoreChoice::in_dir(&config.data_dir);
    if config.store != in_dir {
        text.push_str(&format!("  store    {}\n", config.store));
    }
    if is_first && config.roles.api {
        // Found by default: then it needs no word.
        let dir = if config.data_dir == std::path::Path::new("evenkeel-data") {
            String::new()
        } else {
            format!(" --data-dir {}", config.data_dir.display())
        };
        text.push_str(&format!(
            "\n  Try this in another terminal:\n    \
             evenkeel job create --name hello --every 10s --noop{dir}\n    \
             evenkeel run list{dir}\n"
        ));
        if !config.shell.enabled.is_on() {
            text.push_str(
                "\n  Jobs call public addresses; --enable-shell lets them run programs.\n",
            );
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RawTables;
    use crate::config::raw::{RawGlobal, RawServer, RawStore};

    #[test]
    fn the_first_start_says_what_to_do_next_and_later_ones_are_short() {
        let config = crate::config::resolve(
            &RawGlobal { data_dir: Some("d".into()), ..RawGlobal::default() },
            &RawStore::default(),
            RawServer::default(),
            RawTables::default(),
            "box",
        )
        .unwrap();
        let first = text(&config, "http://a", true, ("", ""));
        assert!(first.contains("evenkeel job create --name hello --every 10s --noop --data-dir d"));
        let later = text(&config, "http://a", false, ("", ""));
        assert_eq!(later, "\n  Evenkeel runs at http://a\n  data in  d\n\n");
    }
}
