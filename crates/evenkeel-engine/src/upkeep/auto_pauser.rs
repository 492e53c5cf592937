//! Pauses jobs after too many failed runs in a row.
//!
//! The store counts failures in the transaction that stores a result, and lists the jobs that must
//! be paused. Any node may pause a listed job: the node that stored the result checks the list at
//! once, and the housekeeping node checks it at a fixed interval. A pause applies only to the
//! version (generation) of the job that was read, so a job that a user has just resumed stays
//! active.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::on_failure::pause_note;
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    Action, Applied, AuditEntry, CommandEffect, EventJob, EventKind, FailingJob, JobCommand,
    NewEvent, Role, Scope, StoreError,
};
use serde_json::json;
use tracing::warn;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Jobs per pass.
const BATCH: u32 = 100;
/// Number of poll intervals between two checks by the housekeeping node.
const POLLS_PER_CHECK: u32 = 5;
/// Subject that the audit log shows for automatic pauses.
const SUBJECT: &str = "evenkeel";

pub struct AutoPauser {
    pub ctx: Arc<NodeContext>,
}

impl AutoPauser {
    /// Pauses one batch of the jobs that must be paused. Returns whether the list of failing jobs
    /// may contain more jobs.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let failing = self.ctx.store.list_failing(BATCH).await?;
        let may_be_more = failing.len() == BATCH as usize;
        let mut of_tenants: BTreeMap<TenantNo, Vec<(FailingJob, String)>> = BTreeMap::new();
        // Jobs that are removed from the list of failing jobs without being paused.
        let mut not_paused = Vec::new();
        for job in failing {
            match self.note_of(&job) {
                Some(note) => of_tenants.entry(job.tenant).or_default().push((job, note)),
                None => not_paused.push(job.no),
            }
        }
        let mut changed = false;
        for (tenant, jobs) in of_tenants {
            let before = not_paused.len();
            changed |= self.pause(tenant, &jobs, &mut not_paused).await?;
            changed |= not_paused.len() > before;
        }
        if !not_paused.is_empty() {
            self.ctx.store.prune_failing(&not_paused).await?;
        }
        Ok(may_be_more && changed)
    }

    /// Returns the note that explains why the job is paused, or `None` if the job's current
    /// definition does not require a pause.
    fn note_of(&self, job: &FailingJob) -> Option<String> {
        let definition = self.ctx.definitions.read(job.no, &job.definition).ok()?;
        pause_note(&definition.on_failure, job.failures)
    }

    /// Pauses jobs of one tenant. Returns whether any job was paused. Adds jobs that cannot be
    /// paused to `not_paused`.
    async fn pause(
        &self,
        tenant: TenantNo,
        jobs: &[(FailingJob, String)],
        not_paused: &mut Vec<JobNo>,
    ) -> Result<bool, StoreError> {
        let scope = Scope { tenant, role: Role::Operator };
        let order = |(job, note): &(FailingJob, String)| JobCommand {
            id: job.id,
            if_generation: Some(job.generation),
            if_fired: None,
            action: Action::Suspend { note: note.clone() },
        };
        let orders = jobs.iter().map(order).collect();
        let answers = self.ctx.store.apply_commands(&scope, orders, NodeContext::NOW).await?;
        let mut entries = Vec::new();
        for ((job, note), answer) in jobs.iter().zip(answers) {
            match answer {
                Applied::Done(done) => {
                    let at = self.ctx.db_now();
                    self.report(job, note, &done, at);
                    entries.push(audit_entry(job, note, at));
                }
                // The job is already paused or finished.
                Applied::NotFound | Applied::NotAllowed(_) => not_paused.push(job.no),
                // A user changed the job at the same time. The next pass of the auto-pauser reads
                // the changed job again.
                Applied::Stale(_) | Applied::NameTaken(_) | Applied::Duplicate(_) => {}
            }
        }
        let paused = !entries.is_empty();
        if paused {
            self.ctx.store.record_audit(entries).await?;
        }
        Ok(paused)
    }

    fn report(&self, job: &FailingJob, note: &str, done: &CommandEffect, at: Timestamp) {
        metrics::counter!("evenkeel_jobs_paused_by_failures_total").increment(1);
        warn!(
            job.id = %job.id,
            job.failures = job.failures,
            note,
            "paused a job after too many consecutive failed runs; an operator can resume it"
        );
        if self.ctx.events.has_listeners() {
            let data = json!({"note": note, "consecutive_failed_runs": job.failures});
            let (kind, about) = (EventKind::JobPaused, EventJob::Id(job.id));
            let paused = NewEvent::new(kind, job.tenant, about, at, &data);
            let withdrawn =
                done.withdrawn.iter().map(|run| NewEvent::run_withdrawn(job.tenant, *run, at));
            self.ctx.events.emit([paused].into_iter().chain(withdrawn));
        }
    }

    pub async fn run(self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        while !*stopping.borrow_and_update() {
            let check = tokio::select! {
                biased;
                _ = stopping.changed() => false,
                () = ctx.failing.notified() => true,
                () = tokio::time::sleep(ctx.settings.poll * POLLS_PER_CHECK) => ctx.is_housekeeper(),
            };
            let mut may_be_more = check;
            while may_be_more && !*stopping.borrow() {
                may_be_more = self.run_once().await.unwrap_or_else(|error| {
                    log_trouble(&error, "could not pause jobs that fail too often; will retry");
                    false
                });
            }
        }
    }
}

fn audit_entry(job: &FailingJob, note: &str, at: Timestamp) -> AuditEntry {
    AuditEntry {
        at,
        tenant: Some(job.tenant),
        subject: SUBJECT.into(),
        role: None,
        action: "pause_job".into(),
        target: Some(job.id.to_string()),
        status: 200,
        denied: false,
        detail: Some(note.into()),
        remote: None,
        request_id: String::new(),
    }
}
