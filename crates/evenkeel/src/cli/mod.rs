//! The commands.

mod api_key;
mod ask;
mod audit;
mod balance;
mod bench;
mod completions;
mod context;
mod dead_letters;
mod events;
mod failures;
mod import;
mod job;
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

use crate::Failure;
use crate::config::raw::RawGlobal;
use context::Context;

/// A job scheduler that spreads its load and keeps its promises.
///
/// One command starts everything, with its data in one folder; a second one creates a job.
#[derive(Parser, Clone)]
#[command(name = "evenkeel", version, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Start here:
  evenkeel serve
  evenkeel job create --name hello --every 10s --noop
  evenkeel run list

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 server not reachable")]
pub struct Args {
    /// What every command has.
    #[command(flatten)]
    pub global: RawGlobal,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Subcommand, Clone)]
pub enum Command {
    /// Start a server: HTTP interface, scheduler and worker in one process
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeArgs>),
    /// Create jobs and look after them
    Job(job::JobArgs),
    /// Say what jobs are about, once for all of them
    Targets(targets::TargetsArgs),
    /// See what has run, runs and will run
    Run(run::RunArgs),
    /// Show what goes wrong, equal failures as one
    #[command(after_help = "Examples:
  evenkeel failures
  evenkeel failures --job hello
  evenkeel failures --json | jq '.failures[0].error_message'")]
    Failures(failures::FailuresArgs),
    /// Show the nodes of the cluster, and which pools each serves
    #[command(after_help = nodes::EXAMPLES)]
    Nodes(nodes::NodesArgs),
    /// See runs that failed for good, run them again or throw them away
    DeadLetters(dead_letters::DeadLettersArgs),
    /// Draw how load is spread over the day
    #[command(after_help = balance::DISTRIBUTION_EXAMPLES)]
    Distribution(balance::DistributionArgs),
    /// Move jobs so that load is spread more evenly
    #[command(after_help = balance::REBALANCE_EXAMPLES)]
    Rebalance(Box<balance::RebalanceArgs>),
    /// Search and read the pages that crawls have kept
    Page(page::PageArgs),
    /// Show what happens, as it happens
    #[command(after_help = events::EXAMPLES)]
    Events(events::EventsArgs),
    /// Show the next times of a schedule; needs no server
    #[command(after_help = next::EXAMPLES)]
    Next(next::NextArgs),
    /// Bring jobs from elsewhere; shows what would become of them unless told to do it
    Import(import::ImportArgs),
    /// Make credentials; needs no running server
    Token(token::TokenArgs),
    /// Make API keys for programs, and take them back
    ApiKey(api_key::ApiKeyArgs),
    /// Keep values that jobs need and nobody may see
    Secret(secret::SecretArgs),
    /// See what was changed and what was refused
    #[command(after_help = audit::EXAMPLES)]
    Audit(audit::AuditArgs),
    /// Bring the tables of a store up to date
    #[command(after_help = migrate::EXAMPLES)]
    Migrate(migrate::MigrateArgs),
    /// Measure what Evenkeel does on this machine
    Bench(evenkeel_bench::BenchArgs),
    /// Print the completions of a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
}

/// Does what the command line says.
pub fn run(args: Args) -> Result<(), Failure> {
    let context = Context::new(args.global)?;
    match args.command {
        Command::Serve(args) => serve::run(&context, *args),
        Command::Job(args) => job::run(&context, args),
        Command::Targets(args) => targets::run(&context, args),
        Command::Run(args) => run::run(&context, args),
        Command::Failures(args) => failures::run(&context, args),
        Command::Nodes(args) => nodes::run(&context, args),
        Command::DeadLetters(args) => dead_letters::run(&context, args),
        Command::Distribution(args) => balance::run_distribution(&context, args),
        Command::Rebalance(args) => balance::run_rebalance(&context, *args),
        Command::Page(args) => page::run(&context, args),
        Command::Events(args) => events::run(&context, args),
        Command::Next(args) => next::run(&context, &args),
        Command::Import(args) => import::run(&context, args),
        Command::Token(args) => token::run(&context, args),
        Command::ApiKey(args) => api_key::run(&context, args),
        Command::Secret(args) => secret::run(&context, args),
        Command::Audit(args) => audit::run(&context, args),
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
    fn the_command_line_fits_together() {
        Args::command().debug_assert();
    }

    /// One that does takes the other's place: what is said for one is heard as the other.
    #[test]
    fn no_argument_hides_one_of_all_commands() {
        let faults = hidden(&Args::command(), &mut Vec::new());
        assert!(faults.is_empty(), "these stand in the way of global ones: {faults:?}");
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
    fn every_setting_of_a_server_has_its_environment_variable() {
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
    fn what_may_hold_a_secret_is_not_shown_in_the_help() {
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
