//! The CLI: one module per command.

mod activity;
mod api_key;
mod ask;
mod audit;
mod balance;
mod bench;
mod bulk;
mod completions;
mod context;
mod dead_letters;
mod events;
mod failures;
mod import;
mod job;
mod list;
mod migrate;
mod next;
mod nodes;
mod page;
mod run;
mod secret;
mod serve;
mod targets;
mod token;

use clap::{Parser, Subcommand};

use crate::Result;
use crate::config::raw::{RawClient, RawGlobal};
use context::{Context, Session};

/// A job scheduler that spreads load evenly and keeps deadlines
///
/// `evenkeel serve` starts a server that keeps all its data in one folder; `evenkeel job create`
/// creates a job.
#[derive(Parser, Clone)]
#[command(name = "evenkeel", version, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Start here:
  evenkeel serve
  evenkeel job create --name hello --every 10s --noop
  evenkeel run list

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 server not reachable")]
pub struct Args {
    #[command(flatten)]
    pub global: RawGlobal,
    #[command(subcommand)]
    command: Command,
}

/// The arguments of a command without subcommands that sends requests to a server.
#[derive(clap::Args, Clone)]
struct Remote<A: clap::Args> {
    #[command(flatten)]
    client: RawClient,
    #[command(flatten)]
    args: A,
}

/// The arguments of a command with subcommands that sends requests to a server.
#[derive(clap::Args, Clone)]
struct RemoteCommand<C: Subcommand> {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    args: C,
}

#[derive(Subcommand, Clone)]
enum Command {
    /// Start a server: API, scheduler and worker in one process
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeArgs>),
    /// Create and manage jobs
    Job(RemoteCommand<job::JobCommand>),
    /// Manage targets, which several jobs can share
    Targets(RemoteCommand<targets::TargetsCommand>),
    /// List, show, follow and cancel runs
    Run(RemoteCommand<run::RunCommand>),
    /// Show failures, grouped by message
    #[command(after_help = "Examples:
  evenkeel failures
  evenkeel failures --job hello
  evenkeel failures --json | jq '.failures[0].error_message'")]
    Failures(Remote<failures::FailuresArgs>),
    /// Show the nodes of the cluster, and which pools each serves
    #[command(after_help = nodes::EXAMPLES)]
    Nodes(RawClient),
    /// List, redrive and delete dead letters: runs that failed and have no retry left
    DeadLetters(RemoteCommand<dead_letters::DeadLettersCommand>),
    /// Show what happened to runs in past time slots
    #[command(after_help = activity::EXAMPLES)]
    Activity(Remote<activity::ActivityArgs>),
    /// Show the expected load of the next 24 hours
    #[command(after_help = balance::DISTRIBUTION_EXAMPLES)]
    Distribution(Remote<balance::DistributionArgs>),
    /// Move jobs to other start times, so that the load is even
    #[command(after_help = balance::REBALANCE_EXAMPLES)]
    Rebalance(Box<Remote<balance::RebalanceArgs>>),
    /// Search and read crawled pages
    Page(RemoteCommand<page::PageCommand>),
    /// Show events as they happen
    #[command(after_help = events::EXAMPLES)]
    Events(Remote<events::EventsArgs>),
    /// Show the next run times of a schedule; needs no server
    #[command(after_help = next::EXAMPLES)]
    Next(next::NextArgs),
    /// Import jobs; shows a preview unless --yes is given
    Import(RemoteCommand<import::ImportCommand>),
    /// Create access tokens; needs no running server
    Token(token::TokenArgs),
    /// Create, list and revoke API keys
    ApiKey(RemoteCommand<api_key::ApiKeyCommand>),
    /// Manage secrets that jobs use
    Secret(RemoteCommand<secret::SecretCommand>),
    /// Show the audit log: changes and refused requests
    #[command(after_help = audit::EXAMPLES)]
    Audit(Remote<audit::AuditArgs>),
    /// Migrate the tables of a store to this version
    #[command(after_help = migrate::EXAMPLES)]
    Migrate(migrate::MigrateArgs),
    /// Run benchmarks on this machine
    Bench(evenkeel_bench::BenchArgs),
    /// Print shell completions
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
}

/// Runs a command.
pub fn run(args: Args) -> Result {
    let context = Context::new(args.global)?;
    match args.command {
        Command::Serve(args) => serve::run(&context, *args),
        Command::Job(it) => job::run(&context, it.client, it.args),
        Command::Targets(it) => context.run(it.client, it.args, targets::run),
        Command::Run(it) => context.run(it.client, it.args, run::run),
        Command::Failures(it) => context.run(it.client, it.args, failures::run),
        Command::Nodes(client) => context.run(client, (), nodes::run),
        Command::DeadLetters(it) => context.run(it.client, it.args, dead_letters::run),
        Command::Activity(it) => context.run(it.client, it.args, activity::run),
        Command::Distribution(it) => context.run(it.client, it.args, balance::run_distribution),
        Command::Rebalance(it) => balance::run_rebalance(&context, it.client, it.args),
        Command::Page(it) => context.run(it.client, it.args, page::run),
        Command::Events(it) => context.run(it.client, it.args, events::run),
        Command::Next(args) => next::run(&context, &args),
        Command::Import(it) => import::run(&context, it.client, it.args),
        Command::Token(args) => token::run(&context, args),
        Command::ApiKey(it) => context.run(it.client, it.args, api_key::run),
        Command::Secret(it) => context.run(it.client, it.args, secret::run),
        Command::Audit(it) => context.run(it.client, it.args, audit::run),
        Command::Migrate(args) => migrate::run(&context, args),
        Command::Bench(args) => bench::run(&context, &args),
        Command::Completions(args) => completions::run(&context, &args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Args::command().debug_assert();
    }

    /// An argument with the same name as a global argument would hide the global argument.
    #[test]
    fn no_argument_hides_a_global_argument() {
        let faults = hidden(&Args::command(), &mut Vec::new());
        assert!(faults.is_empty(), "these hide global arguments: {faults:?}");
    }

    fn hidden(command: &clap::Command, above: &mut Vec<[String; 2]>) -> Vec<String> {
        let called = |argument: &clap::Arg| {
            let long = argument.get_long().unwrap_or_default();
            [argument.get_id().to_string(), long.to_owned()]
        };
        let hides = |argument: &&clap::Arg| {
            let [id, long] = called(argument);
            above.iter().any(|other| other[0] == id || !long.is_empty() && other[1] == long)
        };
        let place = |argument: &clap::Arg| format!("{} {}", command.get_name(), argument.get_id());
        let mut faults: Vec<String> = command.get_arguments().filter(hides).map(place).collect();
        let before = above.len();
        let global = command.get_arguments().filter(|argument| argument.is_global_set());
        above.extend(global.map(called));
        for inner in command.get_subcommands() {
            faults.extend(hidden(inner, above));
        }
        above.truncate(before);
        faults
    }

    #[test]
    fn every_server_flag_has_an_environment_variable() {
        let command = Args::command();
        let serve = command.find_subcommand("serve").unwrap();
        for argument in serve.get_arguments() {
            let flag = argument.get_long().unwrap();
            if flag != "help" && flag != "version" {
                let name = format!("EVENKEEL_{}", flag.to_uppercase().replace('-', "_"));
                assert_eq!(argument.get_env().and_then(|env| env.to_str()), Some(name.as_str()));
            }
        }
    }

    #[test]
    fn help_hides_values_of_secret_variables() {
        let mut command = Args::command();
        command.build();
        let job = command.find_subcommand("job").unwrap();
        let serve = command.find_subcommand("serve").unwrap();
        for (command, id) in [(job, "token"), (serve, "store"), (serve, "secret_key")] {
            let argument = command.get_arguments().find(|argument| argument.get_id() == id);
            assert!(argument.unwrap().is_hide_env_values_set(), "{id}");
        }
    }
}
