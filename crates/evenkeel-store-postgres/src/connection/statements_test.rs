//! Tests how many statements each store method sends.

use evenkeel_core::order::Lane;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, Span, Timestamp};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store::{
    Action, Applied, EVENTS_KEPT, EventJob, EventKind, EventStore as _, Job, JobChange, JobCommand,
    JobStore, NewEvent, NewJob, Now, Role, Scope, Store,
};

use crate::PostgresStore;
use crate::options::PostgresOptions;
use crate::rows::get;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

struct Rig {
    store: PostgresStore,
    scope: Scope,
    _server: PrivatePostgres,
}

impl Rig {
    /// Opens a store with one API connection, which counts its statements.
    async fn new() -> Self {
        let server = PrivatePostgres::start(Options::unit_test()).unwrap();
        let options = PostgresOptions::new(server.url().to_owned());
        let options = PostgresOptions { api_connections: 1, ..options };
        let store = PostgresStore::connect(options).await.unwrap();
        let scope = Scope { tenant: store.tenant("test").await.unwrap(), role: Role::Admin };
        Self { store, scope, _server: server }
    }

    /// Returns how many times statements that match `like` ran.
    async fn executed(&self, like: &'static str) -> i64 {
        let sql = "SELECT coalesce(sum(generic_plans + custom_plans), 0)::int8
                     FROM pg_prepared_statements WHERE statement LIKE $1";
        run!(self.store.api, |connection| get(&connection.query_one(sql, &[&like]).await?, 0))
            .unwrap()
    }

    /// Registers jobs that have labels and whose last run failed.
    async fn failed_jobs(&self, first: u8, count: u8) -> Vec<Job> {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let metadata = serde_json::json!({"team": "news"});
        let about = About { metadata, ..About::default() };
        let new = |n: u8| NewJob {
            id: JobId::new(NOW, [n; 10]),
            about: about.clone(),
            definition: Definition::noop(Schedule::Interval(every)),
            next_at: Some(NOW),
        };
        let jobs: Vec<NewJob> = (first..first + count).map(new).collect();
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        self.store.register(&self.scope, jobs, Now::At(NOW)).await.unwrap();
        run!(self.store.api, |connection| {
            Ok(connection.batch_execute("UPDATE job_state SET last_status = 3").await?)
        })
        .unwrap();
        self.store.get_jobs(&self.scope, &ids).await.unwrap()
    }

    /// Returns how many statements it takes to apply `action` to all of `jobs`.
    async fn statements(&self, jobs: &[Job], action: impl Fn(&Job) -> Action) -> i64 {
        let command = |job: &Job| JobCommand {
            id: job.id,
            if_generation: None,
            if_fired: None,
            action: action(job),
        };
        let commands = jobs.iter().map(command).collect();
        let before = self.executed("%").await;
        let answers = self.store.apply_commands(&self.scope, commands, Now::At(NOW)).await.unwrap();
        assert_eq!(answers.len(), jobs.len());
        assert!(answers.iter().all(|answer| matches!(answer, Applied::Done(_))), "{answers:?}");
        self.executed("%").await - before
    }

    async fn assert_one_for_all(&self, first: u8, action: impl Fn(&Job) -> Action) {
        let one = self.failed_jobs(first, 1).await;
        let many = self.failed_jobs(first + 1, 30).await;
        let of_one = self.statements(&one, &action).await;
        assert_eq!(self.statements(&many, &action).await, of_one);
    }
}

#[tokio::test]
async fn many_commands_take_as_many_statements_as_one() {
    let rig = Rig::new().await;
    rig.assert_one_for_all(0, |_| Action::Retry { n: 0, next_at: None }).await;
    rig.assert_one_for_all(40, |job| {
        let definition = Definition { lane: Lane::Batch, ..job.definition.clone() };
        let metadata = serde_json::json!({"team": "sport"});
        let about = About { metadata, ..job.about.clone() };
        Action::Change(Box::new(JobChange {
            about: Some(about),
            definition: Some(definition),
            ..JobChange::default()
        }))
    })
    .await;
    rig.assert_one_for_all(80, |_| Action::Pause).await;
    rig.assert_one_for_all(120, |_| Action::Cancel).await;
    rig.assert_one_for_all(160, |_| Action::Delete).await;
}

#[tokio::test]
async fn old_events_are_deleted_only_occasionally() {
    let rig = Rig::new().await;
    let event = || NewEvent {
        kind: EventKind::JobCreated,
        tenant: rig.scope.tenant,
        job: EventJob::Id(JobId::new(NOW, [1; 10])),
        run: None,
        at: NOW,
        data: "{}".into(),
    };
    for _ in 0..20 {
        rig.store.publish(vec![event()], false).await.unwrap();
    }
    let trim = "DELETE FROM event WHERE%";
    assert_eq!(rig.executed(trim).await, 1, "only the first publish deletes old events");
    for _ in 0..4 {
        rig.store.publish((0..EVENTS_KEPT / 20).map(|_| event()).collect(), false).await.unwrap();
    }
    assert_eq!(rig.executed(trim).await, 3);
}
