//! `evenkeel rebalance`

use std::time::Duration;

use clap::Args;
use evenkeel_commands::{FILTER_NAMES, METADATA_PREFIX};
use serde_json::{Map, Value, json};

use super::bars::{counted, reasons};
use super::plan;
use super::views::{Plan, Rebalance, Rebalances, Shape, read};
use crate::cli::ask::{self, agrees};
use crate::cli::job::{put, put_same};
use crate::cli::list::{CursorArgs, next_page};
use crate::cli::{Context, Session};
use crate::client::{Answer, Client};
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};
use crate::{Exit, Failure, Result};

pub(crate) const EXAMPLES: &str = "Examples:
  evenkeel rebalance --preview
  evenkeel rebalance --preview --max-moves 100 --filter metadata.category=news
  evenkeel rebalance
  evenkeel rebalance --target-score 0.95 --yes
  evenkeel rebalance --plan 019a8000-0000-7000-8000-000000000000
  evenkeel rebalance --list
  evenkeel rebalance --undo 019a8000-0000-7000-8000-000000000000

The command shows its plan and asks for confirmation before it moves jobs or undoes moves. Ctrl-C
stops it between two batches. Moves can be undone for 24 hours.";

/// Time between two progress updates.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Args, Clone)]
#[command(mut_arg("limit", |limit| limit.help("Number of moved jobs or of rebalances to show")))]
#[command(mut_arg("cursor", |cursor| cursor.requires("list")))]
pub struct RebalanceArgs {
    /// Show which jobs would move to other start times, without moving them
    #[arg(long, group = "what")]
    preview: bool,
    /// Apply the plan of this preview, or continue a stopped rebalance
    #[arg(long, value_name = "ID", group = "what")]
    plan: Option<String>,
    /// Undo a rebalance
    #[arg(long, value_name = "ID", group = "what")]
    undo: Option<String>,
    /// Stop a running rebalance
    #[arg(long, value_name = "ID", group = "what")]
    stop: Option<String>,
    /// Show a rebalance or plan
    #[arg(long, value_name = "ID", group = "what")]
    show: Option<String>,
    /// List earlier rebalances
    #[arg(long, group = "what")]
    list: bool,
    /// Maximum number of jobs to move; the moves with the highest gain come first
    #[arg(long, value_name = "N", conflicts_with_all = ["plan", "undo", "stop", "show", "list"])]
    max_moves: Option<u64>,
    /// Move as few jobs as possible to reach this distribution score (0 to 1)
    #[arg(long, value_name = "SCORE", conflicts_with_all = ["plan", "undo", "stop", "show", "list"])]
    target_score: Option<f64>,
    /// Move only matching jobs, such as name_prefix=news or metadata.team=red; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    #[arg(conflicts_with_all = ["plan", "undo", "stop", "show", "list"])]
    filter: Vec<String>,
    /// Skip the confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    page: CursorArgs,
}

pub(crate) fn run(context: &Context, client: RawClient, args: RebalanceArgs) -> Result {
    // Invalid arguments are reported before the server is contacted.
    let options = args.options()?;
    let acts = !(args.preview || args.list || args.show.is_some() || args.stop.is_some());
    let asks = acts && !args.yes;
    if asks {
        let other = match &args.undo {
            Some(id) => &format!("--show {id} shows what was moved"),
            None => "--preview only shows what would be moved",
        };
        let way_out = format!("--yes moves them without asking, {other}");
        ask::check(context, "whether to move jobs", &way_out)?;
    }
    context.run(client, args, async |session, args| sent(session, args, &options, asks).await)
}

/// Sends the rebalance command. `options` is the JSON body of a request for a preview.
async fn sent(session: &Session, args: RebalanceArgs, options: &Value, asks: bool) -> Result {
    let Session { client, output } = session;
    if args.list {
        return list(session, &args).await;
    }
    if let Some(id) = &args.show {
        let answer = client.get(&["scheduler", "rebalance", id]).await?;
        show(session, &answer)?;
        return show_moved(session, &answer, args.page.limit as usize);
    }
    if let Some(id) = &args.stop {
        let answer = client.post(&["scheduler", "rebalance", id, "stop"], None).await?;
        return show(session, &answer);
    }
    if let Some(id) = &args.undo {
        if asks && !agrees_to(session, id, true).await? {
            return output.line("Nothing was moved.");
        }
        let body = json!({"wait": false});
        let begun = client.post(&["scheduler", "rebalance", id, "undo"], Some(&body)).await?;
        return follow(session, begun).await;
    }
    let plan_id = match &args.plan {
        Some(id) => {
            if asks && !agrees_to(session, id, false).await? {
                return output.line("Nothing was moved.");
            }
            id.clone()
        }
        None => {
            let path = ["scheduler", "rebalance", "preview"];
            let answer = client.post(&path, Some(options)).await?;
            let plan: Plan = read(&answer)?;
            if args.preview && output.is_json() {
                return output.line(&answer.text);
            }
            show_plan(session, &plan, &args)?;
            if args.preview || (plan.would_move == 0 && !output.is_json()) {
                return Ok(());
            }
            if asks && !agrees(&format!("Move {}?", counted(plan.would_move, "job")))? {
                return output.line("Nothing was moved.");
            }
            plan.plan_id
        }
    };
    let body = json!({"plan_id": plan_id, "wait": false});
    let begun = client.post(&["scheduler", "rebalance"], Some(&body)).await?;
    follow(session, begun).await
}

impl RebalanceArgs {
    fn options(&self) -> Result<Value> {
        if let Some(score) = self.target_score.filter(|score| !(0.0..=1.0).contains(score)) {
            return Err(Failure::usage(format!("--target-score {score} is not from 0 to 1")));
        }
        let filter = filter(&self.filter)?;
        let mut options = Map::new();
        put_same!(&mut options, self, max_moves, target_score);
        put(&mut options, "filter", (!self.filter.is_empty()).then_some(filter));
        Ok(options.into())
    }
}

/// Parses `KEY=VALUE` pairs into a job filter. Returns an error if a key occurs twice.
fn filter(pairs: &[String]) -> Result<Value> {
    let (mut filter, mut labels) = (Map::new(), Map::new());
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::usage(format!("--filter {pair:?} has no ="))
                .or_else("write it like --filter name_prefix=news"));
        };
        let twice = if let Some(label) = key.strip_prefix(METADATA_PREFIX) {
            labels.insert(label.into(), value.into()).is_some()
        } else if FILTER_NAMES.contains(&key) {
            let value = if key == "condition" { value.to_uppercase() } else { value.into() };
            filter.insert(key.into(), value.into()).is_some()
        } else {
            return Err(Failure::usage(format!("--filter {key} is not known")).or_else(format!(
                "jobs are filtered by {} and {METADATA_PREFIX}KEY",
                FILTER_NAMES.join(", ")
            )));
        };
        if twice {
            return Err(Failure::usage(format!("--filter {key} is given twice")));
        }
    }
    if !labels.is_empty() {
        filter.insert("metadata".into(), labels.into());
    }
    Ok(filter.into())
}

fn show_plan(session: &Session, plan: &Plan, args: &RebalanceArgs) -> Result {
    let output = session.output;
    if output.is_json() {
        return Ok(());
    }
    let shown = args.page.limit as usize;
    let mut text = plan::draw(plan, session.now(), output.width(), shown, output);
    if args.preview && plan.would_move > 0 {
        text.push_str(&format!(
            "\nApply this plan: evenkeel rebalance --plan {}\nIt is valid until {} UTC.\n",
            clean(&plan.plan_id),
            plan::short(plan.expires_at)
        ));
    }
    output.line(&text)
}

/// Shows a rebalance, and asks the user whether to apply it, or to undo it if `undo` is true.
async fn agrees_to(session: &Session, id: &str, undo: bool) -> Result<bool> {
    let answer = session.client.get(&["scheduler", "rebalance", id]).await?;
    let rebalance: Rebalance = read(&answer)?;
    session.output.line(&drawn(session, &rebalance))?;
    let Rebalance { planned_total, moved_total, .. } = rebalance;
    agrees(&match undo {
        true => format!("Move {} back?", counted(moved_total, "job")),
        false => format!("Move {}?", counted(planned_total - moved_total, "job")),
    })
}

/// Shows the progress of a rebalance until it ends. Ctrl-C stops the rebalance.
async fn follow(session: &Session, begun: Answer) -> Result {
    let first: Rebalance = read(&begun)?;
    let id = first.rebalance_id.clone();
    let style = "{bar:30} {pos}/{len} jobs {elapsed} {msg}";
    let bar = session.output.progress(Some(first.planned_total), style);
    bar.set_message("Ctrl-C stops it");
    let mut answer = begun;
    let mut is_stopped = false;
    loop {
        let rebalance: Rebalance = read(&answer)?;
        bar.set_position(rebalance.moved_total);
        if rebalance.state != "running" {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            interrupted = tokio::signal::ctrl_c(), if !is_stopped => {
                interrupted?;
                is_stopped = true;
                bar.set_message("stopping");
                stop(&session.client, &id).await?;
            }
        }
        answer = session.client.get(&["scheduler", "rebalance", &id]).await?;
    }
    bar.finish_and_clear();
    show(session, &answer)?;
    let rebalance: Rebalance = read(&answer)?;
    if rebalance.state == "done" {
        return Ok(());
    }
    let id = clean(&id);
    Err(Failure::failed("the rebalance was stopped before its end").or_else(format!(
        "undo it with `evenkeel rebalance --undo {id}`\ncontinue it with `evenkeel rebalance --plan {id}`"
    )))
}

/// Stops the rebalance. Returns no error if the rebalance has already ended.
async fn stop(client: &Client, id: &str) -> Result {
    match client.post(&["scheduler", "rebalance", id, "stop"], None).await {
        Err(failure) if failure.exit != Exit::Conflict => Err(failure),
        _ => Ok(()),
    }
}

fn show(session: &Session, answer: &Answer) -> Result {
    if session.output.is_json() {
        return session.output.line(&answer.text);
    }
    session.output.line(&drawn(session, &read(answer)?))
}

/// Prints the first moved jobs.
fn show_moved(session: &Session, answer: &Answer, limit: usize) -> Result {
    let rebalance: Rebalance = read(answer)?;
    if session.output.is_json() || rebalance.moved.is_empty() || limit == 0 {
        return Ok(());
    }
    let moved = rebalance.moved.iter().take(limit);
    let moved = moved.map(|one| (one.job_id.as_str(), one.old_time, one.new_time));
    let mut text = format!("\n{}", plan::moves_table(session.output, moved));
    let left = rebalance.moved_total.saturating_sub(limit.min(rebalance.moved.len()) as u64);
    if left > 0 {
        text.push_str(&format!("and {left} more; -n shows more\n"));
    }
    session.output.line(&text)
}

/// Describes a rebalance. Also draws the load before and after a planned rebalance.
fn drawn(session: &Session, rebalance: &Rebalance) -> String {
    let mut text = String::new();
    let both: Option<(&Shape, &Shape)> = rebalance.before.as_ref().zip(rebalance.after.as_ref());
    if let Some((before, after)) = both.filter(|_| rebalance.state == "planned") {
        let (now, width) = (session.now(), session.output.width());
        text = format!("{}\n", plan::side_by_side(before, after, now, width));
    }
    text.push_str(&summary(rebalance));
    text
}

fn summary(rebalance: &Rebalance) -> String {
    let id = clean(&rebalance.rebalance_id);
    let (moved, planned) =
        (counted(rebalance.moved_total, "job"), counted(rebalance.planned_total, "job"));
    let mut text = match rebalance.state.as_str() {
        "planned" => format!("Would move {planned}."),
        "running" => {
            format!(
                "Moving: {} of {planned}, {:.0} %.",
                rebalance.moved_total,
                rebalance.progress * 100.0
            )
        }
        "stopped" => format!("Stopped: {} of {planned} moved.", rebalance.moved_total),
        _ if rebalance.undoes.is_some() => format!("Moved {moved} back."),
        _ => format!("Moved {moved}."),
    };
    if rebalance.skipped_total > 0 {
        let stayed = counted(rebalance.skipped_total, "job");
        text.push_str(&format!(" {stayed} stayed"));
        if !rebalance.skipped_by_reason.is_empty() {
            text.push_str(&format!(" ({})", reasons(&rebalance.skipped_by_reason)));
        }
        text.push('.');
    }
    let after = match rebalance.new_distribution_score.filter(|_| rebalance.state != "planned") {
        Some(score) => format!("now {score:.2}"),
        None => format!("then {:.2}", rebalance.projected_score),
    };
    text.push_str(&format!("\nScore: {:.2} before, {after}.\n", rebalance.current_score));
    if let Some(until) = rebalance.expires_at {
        text.push_str(&format!(
            "Apply it until {} UTC: evenkeel rebalance --plan {id}\n",
            plan::short(until)
        ));
    }
    if let Some(by) = &rebalance.undone_by {
        text.push_str(&format!("Undone by {}.\n", clean(by)));
    }
    if let Some(until) = rebalance.undo_until {
        text.push_str(&format!(
            "Undo it until {} UTC: evenkeel rebalance --undo {id}\n",
            plan::short(until)
        ));
    }
    text
}

async fn list(session: &Session, args: &RebalanceArgs) -> Result {
    let query = args.page.query();
    let answer = session.client.get_with(&["scheduler", "rebalances"], &query).await?;
    if session.output.is_json() {
        return session.output.line(&answer.text);
    }
    let list: Rebalances = read(&answer)?;
    let headings = ["ID", "WHEN", "BY", "STATE", "MOVED", "STAYED", "SCORE"];
    let rows = list.rebalances.iter().map(|rebalance| {
        let (state, tone) =
            match (rebalance.state.as_str(), &rebalance.undone_by, &rebalance.undoes) {
                (_, Some(_), _) => ("undone".into(), Tone::Quiet),
                ("done", _, Some(_)) => ("undo".into(), Tone::Good),
                ("done", ..) => ("done".into(), Tone::Good),
                ("running", ..) => (format!("{:.0} %", rebalance.progress * 100.0), Tone::Busy),
                (other, ..) => (other.to_owned(), Tone::Plain),
            };
        let scores = format!("{:.2} → {:.2}", rebalance.current_score, rebalance.projected_score);
        [
            (rebalance.rebalance_id.clone(), Tone::Plain),
            (ago(rebalance.created_at, session.now()), Tone::Quiet),
            (rebalance.created_by.clone(), Tone::Plain),
            (state, tone),
            (rebalance.moved_total.to_string(), Tone::Plain),
            (rebalance.skipped_total.to_string(), Tone::Plain),
            (scores, Tone::Plain),
        ]
    });
    let table = Table::of(session.output, headings, rows);
    let next = next_page(&answer, table.len(), "rebalance --list");
    let nothing = "There are no rebalances yet. Preview one with: evenkeel rebalance --preview";
    session.page(&answer, table, &next, nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn filter_pairs_become_a_filter() {
        let read = filter(&pairs(&["name_prefix=news", "condition=error", "metadata.a.b=c=d"]));
        assert_eq!(
            read.unwrap(),
            json!({"name_prefix": "news", "condition": "ERROR", "metadata": {"a.b": "c=d"}})
        );
        for wrong in [&["news"][..], &["name=x"], &["lane=batch", "lane=critical"]] {
            assert_eq!(filter(&pairs(wrong)).unwrap_err().exit, Exit::Usage, "{wrong:?}");
        }
    }

    fn sample(state: &str) -> Rebalance {
        serde_json::from_value(json!({
            "rebalance_id": "r", "state": state, "created_by": "me",
            "created_at": "2026-12-01T13:00:00Z", "expires_at": null, "planned_total": 12,
            "moved_total": 10, "skipped_total": 3, "progress": 0.83, "current_score": 0.65,
            "projected_score": 0.91, "undoes": null, "undone_by": null,
            "undo_until": "2026-12-02T13:00:00Z", "skipped_by_reason": {"changed": 2, "job_running": 1},
            "new_distribution_score": 0.9,
        }))
        .unwrap()
    }

    #[test]
    fn summary_shows_how_to_undo() {
        assert_eq!(
            summary(&sample("done")),
            "Moved 10 jobs. 3 jobs stayed (2 changed, 1 job_running).\n\
             Score: 0.65 before, now 0.90.\n\
             Undo it until 2026-12-02 13:00:00 UTC: evenkeel rebalance --undo r\n"
        );
        assert!(summary(&sample("stopped")).starts_with("Stopped: 10 of 12 jobs moved."));
        assert!(summary(&sample("running")).starts_with("Moving: 10 of 12 jobs, 83 %."));
    }
}
