//! `evenkeel import`

mod files;
mod postgres;
mod probe;
mod report;
mod send;
mod source;
mod zone;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use evenkeel_commands::import::Planned;
use evenkeel_commands::import::crontab::{self, CrontabOptions};
use evenkeel_commands::import::legacy::{LegacyImport, LegacyOptions};
use evenkeel_executors::CATALOG;
use indicatif::ProgressBar;

use super::Context;
use crate::config::raw::RawClient;
use crate::{Failure, Result};
use report::Report;
use send::Sender;
use source::{Format, Source};

const LEGACY_EXAMPLES: &str = "Examples:
  evenkeel import legacy --from postgres://reader@db/crawler
  evenkeel import legacy --from jobs.csv
  evenkeel import legacy --from jobs.csv --yes
  evenkeel import legacy --from - --format ndjson --json < jobs.ndjson | jq .counts
  psql -d crawler -c '\\copy jobs TO jobs.csv CSV HEADER'

The source is only read. Without --yes, no job is created; entries that need a manual change are listed.";

const CRONTAB_EXAMPLES: &str = "Examples:
  crontab -l | evenkeel import crontab -
  evenkeel import crontab /etc/crontab
  ssh web cat /etc/crontab | evenkeel import crontab - --system
  evenkeel import crontab my-crontab --tz Europe/Berlin --cwd /srv/app --yes

The jobs run programs, so the server needs --enable-shell. Without --yes, no job is
created.";

#[derive(Subcommand, Clone)]
pub(super) enum ImportCommand {
    /// Import the jobs table of Evenkeel's cron-based predecessor
    #[command(after_help = LEGACY_EXAMPLES)]
    Legacy(LegacyArgs),
    /// Import a crontab
    #[command(after_help = CRONTAB_EXAMPLES)]
    Crontab(CrontabArgs),
}

#[derive(Args, Clone)]
pub(super) struct LegacyArgs {
    /// Database (postgres://USER@HOST/DATABASE), file (.csv with a header, .ndjson), or - for
    /// standard input; if the address contains a password, use the environment variable
    #[arg(long, env = "EVENKEEL_IMPORT_FROM", hide_env_values = true, value_name = "SOURCE")]
    from: String,
    /// Table in the database
    #[arg(long, value_name = "TABLE", default_value = "jobs")]
    table: String,
    /// Format of the file [default: by the file name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Time zone of the predecessor
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Keep the next run times of interval jobs; without this flag, the server chooses start times
    /// with little load
    #[arg(long)]
    keep_phase: bool,
    /// Also import jobs with a disabled schedule, as paused jobs
    #[arg(long)]
    include_disabled: bool,
    /// If several jobs have the same name, append the old id to all names but the first
    #[arg(long)]
    rename_duplicates: bool,
    #[command(flatten)]
    mode: ImportMode,
}

#[derive(Args, Clone)]
pub(super) struct CrontabArgs {
    /// Crontab file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Each entry names a user [default: true for /etc/crontab and files in /etc/cron.d]
    #[arg(long, value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    system: Option<bool>,
    /// Run the programs as this user; the server must run as root and allow it with --shell-users
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Time zone of the crontab [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Working directory of the programs, if the crontab sets no HOME [default: home of the
    /// program's user]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    #[command(flatten)]
    mode: ImportMode,
}

#[derive(Args, Clone)]
struct ImportMode {
    /// Create the jobs; without this flag, only show a preview
    #[arg(long)]
    yes: bool,
    /// Number of entries to show for each kind of result
    #[arg(short = 'n', long = "show", value_name = "N", default_value_t = 50)]
    show: usize,
}

pub(super) fn run(context: &Context, client: RawClient, command: ImportCommand) -> Result {
    let runtime = context.runtime()?;
    match command {
        ImportCommand::Legacy(args) => runtime.block_on(from_legacy(context, client, args)),
        ImportCommand::Crontab(args) => runtime.block_on(from_crontab(context, client, args)),
    }
}

async fn from_legacy(context: &Context, client: RawClient, args: LegacyArgs) -> Result {
    let options = LegacyOptions {
        zone: zone::named(&args.tz)?,
        keep_phase: args.keep_phase,
        include_disabled: args.include_disabled,
        rename_duplicates: args.rename_duplicates,
        executors: CATALOG,
    };
    // A missing server address is reported before the import reads any job.
    let session = args.mode.yes.then(|| context.session(client)).transpose()?;
    let sender = session.map(|session| Sender::new(session.client));
    let mut source = Source::open(&args.from, &args.table, args.format).await?;
    let mut import = LegacyImport::new(options);
    let mut report = Report::new(source.name.clone(), context.output.is_json(), args.mode.yes);
    let progress = match context.output.is_json() {
        true => ProgressBar::hidden(),
        false => ProgressBar::no_length().with_message("rows"),
    };
    loop {
        let rows = source.next_rows().await?;
        if rows.is_empty() {
            break;
        }
        let now = context.now();
        let planned: Vec<Planned> = rows
            .iter()
            .map(|(line, row)| import.plan(*line, row.as_ref().map_err(String::as_str), now))
            .collect();
        progress.inc(planned.len() as u64);
        report.take(planned, sender.as_ref()).await?;
    }
    source.close().await?;
    progress.finish_and_clear();
    report.finish(context.output, args.mode.show)
}

async fn from_crontab(context: &Context, client: RawClient, args: CrontabArgs) -> Result {
    let zone = match &args.tz {
        Some(name) => zone::named(name)?,
        None => zone::of_this_machine(),
    };
    let shown = source::shown(&args.file);
    let text = read_text(&args.file)?;
    let system = args.system.unwrap_or_else(|| is_system_crontab(&args.file));
    if system && args.user.is_some() {
        let what = format!("{shown} names a user in each entry, so --user can't be used");
        return Err(Failure::usage(what)
            .or_else("omit --user, or use --system=false if the entries name no user"));
    }
    let options = CrontabOptions {
        zone: zone.clone(),
        system,
        user: args.user,
        cwd: args.cwd,
        executors: CATALOG,
    };
    let plan = crontab::plan(&text, &options);
    let client = match context.session(client) {
        Ok(session) => Some(session.client),
        // A preview needs no server.
        Err(failure) if args.mode.yes => return Err(failure),
        Err(_) => None,
    };
    let mut report = Report::new(shown, context.output.is_json(), args.mode.yes);
    report.remarks.push(format!("its times are local times of {zone}; change that with --tz"));
    report.remarks.extend(plan.remarks);
    if plan.entries.iter().any(|entry| entry.document.is_some()) {
        report.remarks.extend(probe::shell(client.as_ref(), args.mode.yes).await?);
    }
    let sender = client.filter(|_| args.mode.yes).map(Sender::new);
    report.take(plan.entries, sender.as_ref()).await?;
    report.finish(context.output, args.mode.show)
}

/// Returns true if cron expects a user in each entry of this file.
fn is_system_crontab(path: &Path) -> bool {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    path == Path::new("/etc/crontab") || path.parent() == Some(Path::new("/etc/cron.d"))
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| {
        Failure::usage(format!("{} can't be read: {error}", path.display()))
            .or_else("give an existing file, or - for standard input: crontab -l | evenkeel import crontab -")
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{} is not UTF-8 text", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_crontabs_are_recognised_by_path() {
        for (path, system) in [
            ("/etc/crontab", true),
            ("/etc/cron.d/backup", true),
            ("/etc/cron.daily/backup", false),
            ("crontab", false),
            ("-", false),
        ] {
            assert_eq!(is_system_crontab(Path::new(path)), system, "{path}");
        }
    }
}
