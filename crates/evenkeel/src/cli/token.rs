//! `evenkeel token`

use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use evenkeel_access::{DEFAULT_TENANT, TokenRequest};
use evenkeel_core::Span;
use evenkeel_engine::RandomChance;
use evenkeel_store::Role;
use serde_json::json;

use super::Context;
use crate::config::StoreChoice;
use crate::config::raw::RawStore;
use crate::failure::Because as _;
use crate::serve::executors::signing_keys;
use crate::serve::{credentials, data_dir, store};
use crate::{Failure, Result, config};

#[derive(Args, Clone)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand, Clone)]
enum TokenCommand {
    /// Create a token and print it on standard output
    ///
    /// The token is signed with the secret in the store, so this command needs the data directory
    /// or the store, but no running server.
    #[command(after_help = "Examples:
  evenkeel token create --role viewer --ttl 365d --subject grafana
  export EVENKEEL_TOKEN=$(evenkeel token create --role operator --tenant acme)
  evenkeel token create --role admin --store postgres://evenkeel@db/evenkeel")]
    Create(CreateArgs),
    /// Print the keys that sign a tenant's HTTP calls, newest first
    ///
    /// A receiver uses a key to verify calls (Standard Webhooks). The keys are derived from the
    /// secret in the store, or from the secrets in the configuration.
    #[command(after_help = "Examples:
  evenkeel token signing-key
  evenkeel token signing-key --tenant acme --store postgres://evenkeel@db/evenkeel")]
    SigningKey(SigningKeyArgs),
}

#[derive(Args, Clone)]
struct SigningKeyArgs {
    /// Tenant whose HTTP calls are signed with the printed keys
    #[arg(long, value_name = "TENANT", default_value = DEFAULT_TENANT)]
    tenant: String,
    /// Signing secrets, if the server's configuration sets them
    #[arg(long, env = "EVENKEEL_SIGNING_SECRETS", hide_env_values = true, value_delimiter = ',')]
    #[arg(value_name = "SECRETS")]
    signing_secrets: Option<Vec<String>>,
    #[command(flatten)]
    store: RawStore,
}

#[derive(Copy, Clone, ValueEnum)]
pub(super) enum RoleArg {
    /// Read
    Viewer,
    /// Read, and control jobs
    Operator,
    /// Everything
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Operator => Self::Operator,
            RoleArg::Admin => Self::Admin,
        }
    }
}

#[derive(Args, Clone)]
struct CreateArgs {
    /// Role of the token
    #[arg(long, value_name = "ROLE")]
    role: RoleArg,
    /// Tenant of the token
    #[arg(long, value_name = "TENANT", default_value = DEFAULT_TENANT)]
    tenant: String,
    /// Lifetime
    #[arg(long, value_name = "TIME", default_value = "12h")]
    ttl: Span,
    /// Subject, as shown in logs
    #[arg(long, value_name = "NAME", default_value = "cli")]
    subject: String,
    #[command(flatten)]
    store: RawStore,
}

pub(super) fn run(context: &Context, args: TokenArgs) -> Result {
    match args.command {
        TokenCommand::Create(args) => create(context, args),
        TokenCommand::SigningKey(args) => signing_key(context, args),
    }
}

fn signing_key(context: &Context, args: SigningKeyArgs) -> Result {
    let data_dir = context.data_dir();
    let choice = config::store_of(&args.store.or(&context.file.store), &data_dir)?;
    data_dir::check_server_store(&choice, &data_dir)?;
    if let StoreChoice::Sqlite(path) = &choice
        && !path.exists()
    {
        // Opening a missing SQLite file would create a new store, and the command would print a key
        // that no server uses.
        let what = format!("there is no store at {}", path.display());
        return Err(Failure::usage(what).or_else("start a server there first, or name its --store"));
    }
    let configured =
        args.signing_secrets.or_else(|| context.file.tables.executors.signing_secrets.clone());
    let chance = RandomChance::from_system();
    let (secrets, tenant) = context.multi_threaded_runtime()?.block_on(async {
        let store = store::open(&choice).await?;
        let configured = configured.unwrap_or_default();
        let secrets = credentials::signing_secrets(&configured, &*store, &chance).await?;
        let tenant = store.tenant(&args.tenant).await.because("the tenant can't be found")?;
        Ok::<_, Failure>((secrets, tenant))
    })?;
    let keys: Vec<String> = secrets
        .iter()
        .filter_map(|secret| signing_keys(std::slice::from_ref(secret)))
        .map(|keys| keys.receiver_secret(tenant))
        .collect();
    context.output.json_or_text(&json!({"keys": keys}), &keys.join("\n"))
}

fn create(context: &Context, args: CreateArgs) -> Result {
    let data_dir = context.data_dir();
    let choice = config::store_of(&args.store.or(&context.file.store), &data_dir)?;
    data_dir::check_server_store(&choice, &data_dir)?;
    data_dir::create_for(&choice, &data_dir)?;
    let chance = Arc::new(RandomChance::from_system());
    let runtime = context.multi_threaded_runtime()?;
    let tokens = runtime.block_on(async {
        let store = store::open(&choice).await?;
        credentials::tokens(&*store, &*chance).await
    })?;
    let request = TokenRequest {
        role: args.role.into(),
        tenant: args.tenant,
        ttl: args.ttl,
        now: context.now(),
        subject: args.subject,
    };
    let token = tokens.issue(&request, &*chance).map_err(|error| {
        Failure::usage(error.to_string()).or_else("`evenkeel token create --help` has examples")
    })?;
    let expires_at = request.now.saturating_add(request.ttl);
    context.output.json_or_text(&json!({"token": token, "expires_at": expires_at}), &token)
}
