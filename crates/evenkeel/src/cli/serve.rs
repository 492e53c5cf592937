//! `evenkeel serve`

use clap::Args;

use super::Context;
use crate::config::RawTables;
use crate::config::raw::{RawServer, RawStore};
use crate::{Result, config, serve};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel serve
  evenkeel serve --open
  evenkeel serve --demo --open --data-dir demo-data
  evenkeel serve --enable-shell --allow-network 127.0.0.0/8
  evenkeel serve --store postgres://evenkeel@db/evenkeel --data-dir /var/lib/evenkeel
  evenkeel serve --listen 0.0.0.0:8443 --tls-cert server.pem --tls-key server.key
  evenkeel serve --config evenkeel.toml

Every flag is also a key of the config file (--drain-grace is drain_grace); those under Engine,
Executors, Access, Queue and Targets (see --help) are in its tables [engine], [executors],
[access], [queue] and [targets], --balance-slot is slot in its table [balance], and --limit-tenant
is tenant in its table [limits]. Flags override variables, and variables override the file.";

#[derive(Args, Clone)]
pub struct ServeArgs {
    #[command(flatten)]
    store: RawStore,
    #[command(flatten)]
    server: RawServer,
    #[command(flatten)]
    tables: RawTables,
}

pub(super) fn run(context: &Context, args: ServeArgs) -> Result {
    let file = &context.file;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let config = config::resolve(
        &context.global,
        &args.store.or(&file.store),
        args.server.or(&file.server),
        args.tables.or(&config::other_names()?).or(&file.tables),
        &machine,
    )?;
    let runtime = context.multi_threaded_runtime()?;
    let served = runtime.block_on(serve::serve(config));
    // A pending DNS lookup must not delay the exit of the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    served
}
