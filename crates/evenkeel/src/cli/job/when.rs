//! Flags for schedules, first and last run, blackouts and load balancing.

use clap::Args;
use evenkeel_commands::read_schedule;
use evenkeel_core::{Span, Timestamp};
use serde_json::{Map, Value, json};

use super::policies::{put, put_same};
use crate::{Failure, Result};

#[derive(Args, Clone)]
#[command(group = clap::ArgGroup::new("when").args(["every", "cron", "periodic", "at", "now", "schedule"]))]
pub(super) struct WhenArgs {
    /// Run the job at this interval: 30m, PT30M, or P1M for a calendar month
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    every: Option<String>,
    /// Run the job by a cron expression: '0 9 * * 1-5', @daily
    #[arg(long, value_name = "EXPR", conflicts_with = "file", help_heading = "When")]
    cron: Option<String>,
    /// Run the job so often that its last successful run never started longer ago than this time
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    periodic: Option<Span>,
    /// Run the job once, at this time or after this delay: 2026-12-01T09:00:00Z or +10m
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    at: Option<String>,
    /// Run the job once, immediately
    #[arg(long, conflicts_with = "file", help_heading = "When")]
    now: bool,
    /// Run the job by a schedule expression of any form: '0 9 * * *', '@every 30m', PT30M,
    /// R5/2026-12-01T00:00:00Z/PT30M
    #[arg(long, value_name = "EXPR", conflicts_with = "file", help_heading = "When")]
    schedule: Option<String>,
    /// The time zone of the schedule
    #[arg(long, value_name = "ZONE", conflicts_with = "file", help_heading = "When")]
    tz: Option<String>,
    /// With --periodic: the minimum pause after each run [default: half the period]
    #[arg(long, value_name = "TIME", requires = "periodic", help_heading = "When")]
    #[arg(conflicts_with_all = ["every", "cron", "at", "now", "schedule", "file"])]
    cooldown: Option<Span>,
    /// Deadline of each run, as a delay after its scheduled time. With --every and --cron, a run
    /// must end before its deadline [default: the next run time]; with --at, a run must start
    /// before its deadline [default: one minute]. A job with a missed deadline has the condition
    /// ERROR
    #[arg(long, value_name = "TIME", help_heading = "When")]
    #[arg(conflicts_with_all = ["periodic", "schedule", "file"])]
    tolerance: Option<Span>,
    /// With --cron: delay each run by up to a minute, by a different number of seconds for each job
    #[arg(long, requires = "cron", help_heading = "When")]
    #[arg(conflicts_with_all = ["every", "periodic", "at", "now", "schedule", "file"])]
    spread: bool,
    /// With --every: start at the beginning of a time slot, and never let a rebalance move the job
    #[arg(long, requires = "every", help_heading = "When")]
    #[arg(conflicts_with_all = ["cron", "periodic", "at", "now", "schedule", "file"])]
    exact: bool,
    /// With an interval: preferred hours for runs, in the job's time zone, like 22:00-06:00
    #[arg(long, value_name = "START-END", conflicts_with = "file", help_heading = "When")]
    prefer_window: Option<String>,
    /// Load that the balancer counts for each run [default: the average duration]
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    cost: Option<Span>,
    /// Do not run the job before this time: 2026-12-01T09:00:00Z or +10m
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    start_at: Option<String>,
    /// Do not run the job after this time
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "When")]
    end_at: Option<String>,
    /// The maximum number of scheduled runs
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "When")]
    max_runs: Option<u64>,
    /// What to do with a run whose local time a clock change skips: shift or skip [default: shift]
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "When")]
    dst_gap: Option<String>,
    /// When to run if a clock change repeats the local time: first, last or both [default: first]
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "When")]
    dst_overlap: Option<String>,
    /// Do not run the job in these hours of its time zone, like 22:00-06:00; repeatable
    #[arg(long, value_name = "START-END", conflicts_with = "file", help_heading = "When")]
    blackout: Vec<String>,
    /// Do not start a run that would probably last into a blackout
    #[arg(long, requires = "blackout", conflicts_with = "file", help_heading = "When")]
    avoid_blackout: bool,
}

impl WhenArgs {
    pub(super) fn add_to(&self, job: &mut Map<String, Value>, now: Timestamp) -> Result {
        let time = |flag: &str, text: &Option<String>| {
            text.as_ref().map(|text| read_time(flag, text, now)).transpose()
        };
        put(job, "schedule", self.schedule(now)?);
        put(job, "timezone", self.tz.as_ref());
        let spread = self.spread.then_some(false);
        put(job, "exact", spread.or(self.exact.then_some(true)));
        let preferred = self.prefer_window.as_ref();
        let preferred = preferred.map(|text| read_hours("--prefer-window", text)).transpose()?;
        put(job, "prefer_window", preferred);
        put(job, "start_at", time("--start-at", &self.start_at)?);
        put(job, "end_at", time("--end-at", &self.end_at)?);
        put_same!(job, self, cost, max_runs, dst_gap, dst_overlap);
        let blackouts = self.blackout.iter().map(|text| read_hours("--blackout", text));
        let blackouts = blackouts.collect::<Result<Vec<_>, _>>()?;
        put(job, "blackout_periods", (!blackouts.is_empty()).then_some(blackouts));
        put(job, "avoid_blackout", self.avoid_blackout.then_some(true));
        Ok(())
    }

    /// True if the flag `--tolerance` is given without a flag for the schedule.
    pub(super) fn is_tolerance_alone(&self) -> bool {
        let has_schedule =
            self.every.is_some() || self.cron.is_some() || self.at.is_some() || self.now;
        self.tolerance.is_some() && !has_schedule
    }

    fn schedule(&self, now: Timestamp) -> Result<Option<Value>> {
        let (mut schedule, tolerance) = if let Some(every) = &self.every {
            check("--every", every)?;
            // Written like all other spans.
            let every = every.parse::<Span>().map_or_else(|_| every.clone(), |it| it.to_string());
            (json!({"kind": "interval", "every": every}), Some("tolerance"))
        } else if let Some(expression) = &self.cron {
            check("--cron", expression)?;
            (json!({"kind": "cron", "expression": expression}), Some("max_duration"))
        } else if let Some(period) = self.periodic {
            (json!({"kind": "periodic", "period": period}), None)
        } else if let Some(at) = &self.at {
            let at = read_time("--at", at, now)?;
            (json!({"kind": "once", "at": at}), Some("tolerance"))
        } else if let Some(expression) = &self.schedule {
            check("--schedule", expression)?;
            (expression.clone().into(), None)
        } else if self.now || self.tolerance.is_some() {
            (json!({"kind": "once"}), Some("tolerance"))
        } else {
            return Ok(None);
        };
        if let Some(cooldown) = self.cooldown {
            schedule["cooldown"] = json!(cooldown);
        }
        if let (Some(name), Some(span)) = (tolerance, self.tolerance) {
            schedule[name] = json!(span);
        }
        Ok(Some(schedule))
    }
}

/// Returns an error with a caret under the invalid character if `text` is not a valid schedule.
fn check(flag: &str, text: &str) -> Result {
    let Err(misread) = read_schedule(text) else { return Ok(()) };
    let position = misread.position;
    let failure = Failure::usage(format!("{flag}: {}", misread.message)).at(text, position);
    Err(failure.or_else(format!("for example {flag} '{}'", misread.example)))
}

pub(super) fn read_time(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp> {
    let relative = text.strip_prefix('+').map(str::parse::<Span>);
    let time = match relative {
        Some(span) => span.ok().map(|span| now.saturating_add(span)),
        None => text.parse().ok(),
    };
    time.ok_or_else(|| {
        Failure::usage(format!("{flag}: {text:?} is not a time"))
            .or_else("write it like 2026-12-01T09:00:00Z, or +10m for ten minutes from now")
    })
}

fn read_hours(flag: &str, text: &str) -> Result<Value> {
    let edges = text.split_once('-').filter(|(_, end)| !end.contains('-'));
    let (start, end) = edges.ok_or_else(|| {
        Failure::usage(format!("{flag}: {text:?} has no start and end"))
            .or_else(format!("write it like {flag} 22:00-06:00"))
    })?;
    Ok(json!({"start": start.trim(), "end": end.trim()}))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Exit;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: WhenArgs,
        /// The flag `--file` of `job create`, to which the flags of `WhenArgs` refer.
        #[arg(long)]
        file: Option<String>,
    }

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn document(words: &[&str]) -> Result<Value, Failure> {
        let words = std::iter::once(&"create").chain(words);
        let mut job = Map::new();
        Only::try_parse_from(words).unwrap().args.add_to(&mut job, NOW)?;
        Ok(Value::Object(job))
    }

    #[test]
    fn every_kind_of_schedule_has_its_flag() {
        for (words, schedule) in [
            (&["--every", "90s"][..], json!({"kind": "interval", "every": "1m 30s"})),
            (&["--every", "P1M"], json!({"kind": "interval", "every": "P1M"})),
            (
                &["--every", "1h", "--tolerance", "5m"],
                json!({"kind": "interval", "every": "1h", "tolerance": "5m"}),
            ),
            (&["--cron", "@daily"], json!({"kind": "cron", "expression": "@daily"})),
            (
                &["--cron", "0 0 * * *", "--tolerance", "6h"],
                json!({"kind": "cron", "expression": "0 0 * * *", "max_duration": "6h"}),
            ),
            (&["--periodic", "24h"], json!({"kind": "periodic", "period": "1d"})),
            (
                &["--periodic", "24h", "--cooldown", "1h"],
                json!({"kind": "periodic", "period": "1d", "cooldown": "1h"}),
            ),
            (&["--now"], json!({"kind": "once"})),
            (&["--schedule", "R5/PT30M"], json!("R5/PT30M")),
        ] {
            assert_eq!(document(words).unwrap(), json!({"schedule": schedule}), "{words:?}");
        }
    }

    #[test]
    fn bounds_and_blackouts_become_fields() {
        assert_eq!(
            document(&[
                "--cron", "0 9 * * *", "--tz", "Europe/Berlin", "--start-at", "+1h", "--end-at",
                "2030-01-01T00:00:00Z", "--max-runs", "7", "--dst-gap", "skip", "--dst-overlap",
                "both", "--blackout", "22:00-06:00", "--blackout", "12:00:00-12:30:00",
                "--avoid-blackout", "--spread",
            ])
            .unwrap(),
            json!({"schedule": {"kind": "cron", "expression": "0 9 * * *"},
                   "timezone": "Europe/Berlin", "exact": false,
                   "start_at": NOW.saturating_add(Span::from_secs(3600)),
                   "end_at": "2030-01-01T00:00:00.000000Z", "max_runs": 7, "dst_gap": "skip",
                   "dst_overlap": "both", "avoid_blackout": true,
                   "blackout_periods": [{"start": "22:00", "end": "06:00"},
                                        {"start": "12:00:00", "end": "12:30:00"}]})
        );
    }

    #[test]
    fn placement_flags_become_fields() {
        let words = ["--every", "1d", "--prefer-window", "22:00-06:00", "--cost", "90s", "--exact"];
        assert_eq!(
            document(&words).unwrap(),
            json!({"schedule": {"kind": "interval", "every": "1d"}, "exact": true,
                   "prefer_window": {"start": "22:00", "end": "06:00"}, "cost": "1m 30s"})
        );
    }

    #[test]
    fn syntax_errors_get_a_caret() {
        let failure = document(&["--cron", "0 25 * * *"]).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.place, Some(("0 25 * * *".into(), 2)));
        for words in [
            &["--every", "30"][..],
            &["--schedule", "never"],
            &["--at", "soon"],
            &["--every", "1h", "--end-at", "later"],
            &["--every", "1h", "--blackout", "22:00"],
            &["--every", "1h", "--prefer-window", "22:00"],
        ] {
            let failure = document(words).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{words:?}");
            assert!(failure.way_out.is_some(), "{words:?}");
        }
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for words in [
            &["--every", "1h", "--cron", "@daily"][..],
            &["--every", "1h", "--cooldown", "1m"],
            &["--cooldown", "1m"],
            &["--periodic", "1h", "--tolerance", "1m"],
            &["--every", "1h", "--spread"],
            &["--every", "1h", "--avoid-blackout"],
            &["--file", "x", "--every", "1h"],
        ] {
            let words: Vec<_> = std::iter::once(&"create").chain(words).collect();
            assert!(Only::try_parse_from(&words).is_err(), "{words:?}");
        }
    }
}
