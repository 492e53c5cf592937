//! The report of an import, as a table and as JSON.

use evenkeel_commands::import::{Disposition, Planned};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::send::{Sender, Sent};
use crate::output::{Output, Table, Tone};
use crate::{Failure, Result};

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    planned: Planned,
    #[serde(flatten)]
    sent: Option<Sent>,
}

pub(super) struct Report {
    source: String,
    as_json: bool,
    created_jobs: bool,
    /// Remarks about the whole import.
    pub(super) remarks: Vec<String>,
    entries: Vec<Entry>,
}

impl Report {
    pub(super) fn new(source: String, as_json: bool, created_jobs: bool) -> Self {
        Self { source, as_json, created_jobs, remarks: Vec::new(), entries: Vec::new() }
    }

    /// Adds import entries to the report. If `sender` is given, creates the jobs of the entries.
    pub(super) async fn take(&mut self, planned: Vec<Planned>, sender: Option<&Sender>) -> Result {
        let sent = match sender {
            Some(sender) => sender.send(&planned).await.map_err(|failure| self.stopped(failure))?,
            None => vec![None; planned.len()],
        };
        for (mut planned, sent) in planned.into_iter().zip(sent) {
            if !self.as_json {
                // The report's table does not show the job document, so the document is dropped.
                planned.document = None;
            }
            self.entries.push(Entry { planned, sent });
        }
        Ok(())
    }

    /// Adds a hint to a failure: a repeated import skips the jobs that were already created.
    fn stopped(&self, failure: Failure) -> Failure {
        let created = self.created();
        if created == 0 || failure.way_out.is_some() {
            return failure;
        }
        failure.or_else(format!(
            "run the import again: the {created} created jobs will not be changed"
        ))
    }

    fn created(&self) -> usize {
        let created = |entry: &&Entry| {
            matches!(entry.sent, Some(Sent::Created { .. } | Sent::NotPaused { .. }))
        };
        self.entries.iter().filter(created).count()
    }

    /// Prints the report. Returns an error if the server refused to create or pause a job.
    pub(super) fn finish(self, output: Output, show: usize) -> Result {
        output.line(&match output.is_json() {
            true => self.as_json().to_string(),
            false => self.as_text(output, show),
        })?;
        match self.count(|sent| matches!(sent, Sent::Refused { .. } | Sent::NotPaused { .. })) {
            0 => Ok(()),
            1 => Err(Failure::failed("1 job could not be created as planned")),
            n => Err(Failure::failed(format!("{n} jobs could not be created as planned"))),
        }
    }

    fn count(&self, which: impl Fn(&Sent) -> bool) -> usize {
        self.entries.iter().filter(|entry| entry.sent.as_ref().is_some_and(&which)).count()
    }

    fn count_of(&self, disposition: Disposition) -> usize {
        self.entries.iter().filter(|entry| entry.planned.disposition == disposition).count()
    }

    fn as_json(&self) -> Value {
        let count = |disposition| {
            let name = json!(disposition).as_str().unwrap_or_default().to_owned();
            (name, self.count_of(disposition).into())
        };
        let counts: Map<String, Value> = Disposition::ALL.into_iter().map(count).collect();
        let sent = self.created_jobs.then(|| {
            json!({
                "created": self.count(|sent| matches!(sent, Sent::Created { .. })),
                "already_there": self.count(|sent| matches!(sent, Sent::AlreadyThere)),
                "refused": self.count(|sent| matches!(sent, Sent::Refused { .. })),
                "not_paused": self.count(|sent| matches!(sent, Sent::NotPaused { .. })),
            })
        });
        json!({
            "source": self.source,
            "dry_run": !self.created_jobs,
            "counts": counts,
            "sent": sent,
            "remarks": self.remarks,
            "entries": self.entries,
        })
    }

    fn as_text(&self, output: Output, show: usize) -> String {
        let mut text = format!("{}: {} entries\n\n", self.source, self.entries.len());
        let mut counts = Table::new(output, &["", "ENTRIES"]);
        for disposition in Disposition::ALL {
            let tone = if disposition == Disposition::Person { Tone::Bad } else { Tone::Plain };
            counts.row([
                (label(disposition).into(), Tone::Plain),
                (self.count_of(disposition).to_string(), tone),
            ]);
        }
        text.push_str(&counts.render());
        text.push_str(&self.jobs(output, show));
        for (disposition, title) in
            [(Disposition::LeftOut, "Not imported"), (Disposition::Person, "Needs a manual change")]
        {
            text.push_str(&self.others(output, show, disposition, title));
        }
        if !self.remarks.is_empty() {
            text.push_str("\nRemarks:\n");
            self.remarks.iter().for_each(|remark| text.push_str(&format!("- {remark}\n")));
        }
        text.push('\n');
        text.push_str(&self.end());
        text
    }

    fn jobs(&self, output: Output, show: usize) -> String {
        let jobs: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.planned.disposition.creates_job()).collect();
        if jobs.is_empty() {
            return String::new();
        }
        let headings: &[&str] = if self.created_jobs {
            &["LINE", "NAME", "WAS", "BECOMES", "NOTES", "RESULT"]
        } else {
            &["LINE", "NAME", "WAS", "BECOMES", "NOTES"]
        };
        let mut table = Table::new(output, headings);
        for Entry { planned, sent } in jobs.iter().take(show) {
            let mut becomes = planned.becomes.clone().unwrap_or_default();
            if planned.paused {
                becomes.push_str(", paused");
            }
            let mut notes = planned.notes.clone();
            if planned.code != "cron" && planned.disposition == Disposition::Cron {
                notes.insert(0, planned.why.clone());
            }
            let mut row = vec![
                (planned.line.to_string(), Tone::Quiet),
                (planned.name.clone(), Tone::Plain),
                (planned.was.clone().unwrap_or_default(), Tone::Plain),
                (becomes, Tone::Plain),
                (notes.join("; "), Tone::Quiet),
            ];
            if self.created_jobs {
                row.push(result(sent.as_ref()));
            }
            table.row(row);
        }
        format!("\nJobs:\n{}{}", table.render(), and_more(jobs.len(), show))
    }

    fn others(&self, output: Output, show: usize, disposition: Disposition, title: &str) -> String {
        let others: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.planned.disposition == disposition).collect();
        if others.is_empty() {
            return String::new();
        }
        let mut table = Table::new(output, &["LINE", "NAME", "WAS", "WHY"]);
        for Entry { planned, .. } in others.iter().take(show) {
            table.row([
                (planned.line.to_string(), Tone::Quiet),
                (planned.name.clone(), Tone::Plain),
                (planned.was.clone().unwrap_or_default(), Tone::Plain),
                (planned.why.clone(), Tone::Plain),
            ]);
        }
        format!("\n{title}:\n{}{}", table.render(), and_more(others.len(), show))
    }

    fn end(&self) -> String {
        let jobs =
            self.entries.iter().filter(|entry| entry.planned.disposition.creates_job()).count();
        if !self.created_jobs {
            return match jobs {
                0 => "No entry can be imported without changes.\n".into(),
                jobs => format!("Nothing was changed. Use --yes to create {jobs} jobs.\n"),
            };
        }
        let existing = self.count(|sent| matches!(sent, Sent::AlreadyThere));
        let mut text = format!("Created {} jobs.", self.created());
        if existing > 0 {
            text.push_str(&format!(" {existing} existed already and were not changed."));
        }
        text.push('\n');
        text
    }
}

fn label(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Interval => "become jobs that run at intervals",
        Disposition::Cron => "become jobs that keep their cron expression",
        Disposition::Once => "become jobs that run once",
        Disposition::LeftOut => "are not imported",
        Disposition::Person => "need a manual change",
    }
}

fn result(sent: Option<&Sent>) -> (String, Tone) {
    match sent {
        None => (String::new(), Tone::Plain),
        Some(Sent::Created { .. }) => ("created".into(), Tone::Good),
        Some(Sent::AlreadyThere) => ("exists already".into(), Tone::Quiet),
        Some(Sent::Refused { error }) => (format!("refused: {error}"), Tone::Bad),
        Some(Sent::NotPaused { error, .. }) => {
            (format!("created, but not paused: {error}"), Tone::Bad)
        }
    }
}

fn and_more(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("… and {more} more; -n {all} or --json shows all\n"),
    }
}
