//! `evenkeel migrate`

use clap::Args;
use serde_json::json;

use super::Context;
use crate::config::raw::RawStore;
use crate::serve::{data_dir, store};
use crate::{Result, config};

pub(super) const EXAMPLES: &str = "A server also does this when it starts.

Examples:
  evenkeel migrate
  evenkeel migrate --store postgres://evenkeel@db/evenkeel";

#[derive(Args, Clone)]
pub struct MigrateArgs {
    #[command(flatten)]
    store: RawStore,
}

pub(super) fn run(context: &Context, args: MigrateArgs) -> Result {
    let data_dir = context.data_dir();
    let choice = config::store_of(&args.store.or(&context.file.store), &data_dir)?;
    data_dir::create_for(&choice, &data_dir)?;
    context.multi_threaded_runtime()?.block_on(store::open(&choice))?;
    // Opening the store migrates its tables, or returns an error.
    let json = json!({"store": choice.to_string(), "up_to_date": true});
    context.output.json_or_text(&json, &format!("The tables of {choice} are up to date."))
}
