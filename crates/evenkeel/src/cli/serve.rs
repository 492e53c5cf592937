//! `evenkeel serve`

use clap::Args;

use super::Context;
use crate::config::raw::{RawEngine, RawServer, RawStore};
use crate::config::{
    OtherNames, RawAccess, RawBalance, RawExecutors, RawLimits, RawQueue, RawShell, RawTargets,
};
use crate::{Failure, config, serve};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel serve
  evenkeel serve --demo --listen 127.0.0.1:0
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
    engine: RawEngine,
    #[command(flatten)]
    executors: RawExecutors,
    #[command(flatten)]
    shell: RawShell,
    #[command(flatten)]
    access: RawAccess,
    #[command(flatten)]
    balance: RawBalance,
    #[command(flatten)]
    queue: RawQueue,
    #[command(flatten)]
    targets: RawTargets,
    #[command(flatten)]
    limits: RawLimits,
}

pub(super) fn run(context: &Context, args: ServeArgs) -> Result<(), Failure> {
    let file = &context.file;
    let other = OtherNames::of_process()?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let config = config::resolve(
        &context.global,
        &args.store.or(&file.store),
        args.server.or(&file.server),
        config::RawTables {
            engine: args.engine.or(&other.engine).or(&file.engine),
            executors: args.executors.or(&file.executors),
            shell: args.shell.or(&file.shell),
            access: args.access.or(&file.access),
            balance: args.balance.or(&file.balance),
            queue: args.queue.or(&file.queue),
            targets: args.targets.or(&other.targets).or(&file.targets),
            limits: args.limits.or(&file.limits),
        },
        &machine,
    )?;
    let runtime = context.multi_threaded_runtime()?;
    let served = runtime.block_on(serve::serve(config));
    // A pending DNS lookup must not delay the exit of the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    served
}
