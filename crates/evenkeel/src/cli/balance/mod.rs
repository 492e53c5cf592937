//! `evenkeel distribution` and `evenkeel rebalance`

mod act;
pub(in crate::cli) mod bars;
mod day;
mod history;
mod plan;
pub(in crate::cli) mod views;

use clap::Args;

use super::Session;
use crate::Result;

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

pub(super) async fn run_distribution(session: &Session, args: DistributionArgs) -> Result {
    let Session { client, output } = session;
    if !args.history {
        let answer = client.get_with(&["scheduler", "distribution"], &[("by", args.by)]).await?;
        if output.is_json() {
            return output.line(&answer.text);
        }
        return output.line(&day::draw(&views::read(&answer)?, output.width(), *output));
    }
    let mut query = vec![("limit", "2160".into())];
    query.extend(args.from.map(|from| ("from", from)));
    query.extend(args.until.map(|until| ("until", until)));
    let answer = client.get_with(&["scheduler", "distribution", "history"], &query).await?;
    if output.is_json() {
        return output.line(&answer.text);
    }
    output.line(&history::draw(&views::read(&answer)?))
}
