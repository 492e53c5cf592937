//! Tests rules that apply to all commands on jobs, and batches of commands.

use evenkeel_core::status::JobStatus;
use evenkeel_store::{Action, Applied, JobChange, JobCommand, Registered};

use crate::Opened;
use crate::commands::{Commands, done, gone, job_after, resume};
use crate::fixtures::{at, fresh_id, new_job, now};
use crate::rig::{Known, Rig};

fn command(job: Known, action: Action) -> JobCommand {
    JobCommand { id: job.id, if_generation: None, if_fired: None, action }
}

fn renamed(name: &str) -> Action {
    let about = Some(new_job(name).build().about);
    Action::Change(Box::new(JobChange { about, ..JobChange::default() }))
}

async fn jobs(rig: &Rig, count: usize) -> Vec<Known> {
    rig.add_all((0..count).map(|n| new_job(&format!("job {n}")).build()).collect()).await
}

pub async fn results_are_in_order_and_a_refusal_affects_no_other_command(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 6).await;
    let unknown = Known { id: fresh_id(), ..jobs[0] };
    let stale = JobCommand { if_generation: Some(9), ..command(jobs[4], Action::Pause) };
    let answers = rig
        .store
        .apply_commands(
            &rig.scope,
            vec![
                command(jobs[5], Action::Pause),
                command(unknown, Action::Pause),
                command(jobs[1], resume(None)),
                command(jobs[0], Action::Delete),
                stale,
                command(jobs[2], renamed("job 3")),
                command(jobs[3], Action::Cancel),
            ],
            now(10),
        )
        .await
        .unwrap();
    assert_eq!(answers.len(), 7);
    assert_eq!(job_after(answers[0].clone()).status(at(0)), JobStatus::Paused);
    assert_eq!(answers[1], Applied::NotFound);
    assert!(matches!(answers[2], Applied::NotAllowed(_)));
    assert_eq!(answers[3], gone(Vec::new()));
    assert_eq!(answers[4], Applied::Stale(Box::new(rig.job(jobs[4]).await)));
    assert_eq!(answers[5], Applied::NameTaken(jobs[3].id));
    assert_eq!(job_after(answers[6].clone()).status(at(0)), JobStatus::Cancelled);
    for untouched in [jobs[1], jobs[2], jobs[4]] {
        assert_eq!(rig.job(untouched).await.generation, 1);
    }
}

pub async fn of_two_commands_for_one_name_the_first_gets_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 2).await;
    let batch = vec![command(jobs[0], renamed("new")), command(jobs[1], renamed("new"))];
    let answers = rig.store.apply_commands(&rig.scope, batch, now(10)).await.unwrap();
    assert!(matches!(answers[0], Applied::Done(_)));
    assert_eq!(answers[1], Applied::NameTaken(jobs[0].id));
    let taken = rig.register(vec![new_job("new").build()]).await;
    assert_eq!(taken, [Registered::NameTaken(jobs[0].id)]);
}

pub async fn each_applied_command_raises_the_generation(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    let actions = [Action::Pause, resume(Some(at(90))), renamed("other"), Action::Cancel];
    for (nth, action) in actions.into_iter().enumerate() {
        let answer = rig.store.act(&rig.scope, job.id, action, now(10)).await.unwrap();
        assert_eq!(job_after(answer).generation, nth as i32 + 2);
    }
}

pub async fn a_command_may_require_a_generation(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (nth, action) in
        [Action::Pause, Action::Cancel, Action::Delete, renamed("other")].into_iter().enumerate()
    {
        let job = rig.add(new_job(&format!("one {nth}")).build()).await;
        let before = rig.job(job).await;
        let other = JobCommand { if_generation: Some(2), ..command(job, action.clone()) };
        let answer = rig.store.apply_one(&rig.scope, other, now(10)).await.unwrap();
        assert_eq!(answer, Applied::Stale(Box::new(before.clone())));
        assert_eq!(rig.job(job).await, before);
        let this = JobCommand { if_generation: Some(1), ..command(job, action) };
        done(rig.store.apply_one(&rig.scope, this, now(10)).await.unwrap());
    }
}

pub async fn a_command_may_require_a_number_of_fired_times(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    rig.run_successfully(job, 60).await;
    let before = rig.job(job).await;
    assert_eq!(before.fired, 1);
    let overtaken = JobCommand { if_fired: Some(0), ..command(job, Action::Pause) };
    let answer = rig.store.apply_one(&rig.scope, overtaken, now(70)).await.unwrap();
    assert_eq!(answer, Applied::Stale(Box::new(before)));
    let this = JobCommand { if_fired: Some(1), ..command(job, Action::Pause) };
    done(rig.store.apply_one(&rig.scope, this, now(70)).await.unwrap());
}

pub async fn a_forbidden_command_is_reported_before_a_stale_generation(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    let wrong = JobCommand { if_generation: Some(9), ..command(job, resume(None)) };
    let answer = rig.store.apply_one(&rig.scope, wrong, now(10)).await.unwrap();
    assert!(matches!(answer, Applied::NotAllowed(_)), "{answer:?}");
}

pub async fn jobs_of_another_tenant_are_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = jobs(&rig, 1).await[0];
    let before = rig.job(job).await;
    let stranger = rig.tenant("stranger").await;
    for action in [
        Action::Pause,
        resume(None),
        Action::Cancel,
        Action::Retry { n: 0, next_at: None },
        Action::Delete,
        renamed("theirs"),
    ] {
        let answer = rig.store.act(&stranger, job.id, action, now(1)).await.unwrap();
        assert_eq!(answer, Applied::NotFound);
    }
    assert_eq!(rig.job(job).await, before);
    assert_eq!(rig.store.get_jobs(&stranger, &[job.id]).await.unwrap(), []);
}

pub async fn a_thousand_commands_are_applied_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, evenkeel_store::COMMANDS_MAX).await;
    let batch = |action: Action| jobs.iter().map(|job| command(*job, action.clone())).collect();
    let all_done = |answers: &[Applied]| answers.iter().all(|it| matches!(it, Applied::Done(_)));
    let answers =
        rig.store.apply_commands(&rig.scope, batch(Action::Pause), now(10)).await.unwrap();
    assert!(all_done(&answers));
    let answers =
        rig.store.apply_commands(&rig.scope, batch(resume(Some(at(90)))), now(20)).await.unwrap();
    assert!(all_done(&answers));
    assert_eq!(job_after(answers[999].clone()), rig.job(jobs[999]).await);
    let answers =
        rig.store.apply_commands(&rig.scope, batch(Action::Delete), now(30)).await.unwrap();
    assert!(all_done(&answers));
    assert_eq!(rig.census().await.jobs, 0);
}

pub async fn get_jobs_returns_those_that_exist(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = jobs(&rig, 3).await;
    rig.store.delete(&rig.scope, jobs[1].id, now(1)).await.unwrap();
    let ids = [jobs[2].id, fresh_id(), jobs[1].id, jobs[0].id];
    let mut found = rig.store.get_jobs(&rig.scope, &ids).await.unwrap();
    found.sort_by_key(|job| job.no);
    assert_eq!(found, [rig.job(jobs[0]).await, rig.job(jobs[2]).await]);
}
