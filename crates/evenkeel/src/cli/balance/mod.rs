//! `evenkeel distribution` and `evenkeel rebalance`

mod act;
mod bars;
mod day;
mod history;
mod plan;
mod views;

use clap::Args;

use super::Context;
use crate::Failure;
use crate::config::raw::RawClient;

pub use act::RebalanceArgs;
pub(super) use act::{EXAMPLES as REBALANCE_EXAMPLES, run as run_rebalance};

pub(super) const DISTRIBUTION_EXAMPLES: &str = "Examples:
  evenkeel distribution
  evenkeel distribution --by cost
  evenkeel distribution --history --from 2026-12-01T00:00:00Z
  evenkeel distribution --json | jq .distribution_score

Hours are UTC. Small bars show the slots of an hour. The line across the large bars marks an even
spread of the same jobs.";

#[derive(Args, Clone)]
pub struct DistributionArgs {
    #[command(flatten)]
    client: RawClient,
    /// What to count in each hour: all runs of the day, only the next run of each job, or the cost
    /// of runs
    #[arg(long, value_name = "WHAT", default_value = "runs")]
    #[arg(value_parser = ["runs", "next", "cost"], conflicts_with = "history")]
    by: String,
    /// Show the distribution score of past hours
    #[arg(long)]
    history: bool,
    /// Start of the period, at most 90 days ago [default: seven days ago]
    #[arg(long, value_name = "TIME", requires = "history")]
    from: Option<String>,
    /// End of the period [default: now]
    #[arg(long, value_name = "TIME", requires = "history")]
    until: Option<String>,
}

pub(super) fn run_distribution(context: &Context, args: DistributionArgs) -> Result<(), Failure> {
    let client = context.client(args.client.clone())?;
    let runtime = context.runtime()?;
    if !args.history {
        let query = [("by", args.by.as_str())];
        let answer = runtime.block_on(client.get(&["scheduler", "distribution"], &query))?;
        if context.output.is_json() {
            return context.output.line(&answer.text);
        }
        let day = views::read(&answer)?;
        return context.output.line(&day::draw(&day, context.output.width(), context.output));
    }
    let mut query = vec![("limit", "2160")];
    query.extend(args.from.as_deref().map(|from| ("from", from)));
    query.extend(args.until.as_deref().map(|until| ("until", until)));
    let answer = runtime.block_on(client.get(&["scheduler", "distribution", "history"], &query))?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    context.output.line(&history::draw(&views::read(&answer)?))
}
