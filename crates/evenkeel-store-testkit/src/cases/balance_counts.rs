//! Tests that every change of a job updates the job counts of load profiles.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::balance::{ASSUMED_COST, Load};
use evenkeel_core::{Definition, Span};
use evenkeel_store::{Action, Applied, FinishResult, FireResult, JobChange, NewJob, Then};

use super::races::at_once;
use crate::Opened;
use crate::balance::{all_placements, all_profiles, assert_counted, batch_of, begin_one, move_to};
use crate::commands::{Commands, done, job_after, resume};
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now, unnamed_job};
use crate::rig::{Known, OVER, Rig};

const STOPS: Then = Then::EndRun { stop_job: true, next_at: None };

/// Checks the stored job counts of load profiles, and returns the number of counted jobs.
async fn counted(rig: &Rig) -> u64 {
    assert_counted(&*rig.store, &[rig.scope]).await;
    all_profiles(&*rig.store).await.iter().map(|profile| profile.jobs).sum()
}

async fn act(rig: &Rig, job: Known, action: Action, secs: i64) {
    done(rig.store.act(&rig.scope, job.id, action, now(secs)).await.unwrap());
}

async fn change(rig: &Rig, job: Known, change: JobChange, secs: i64) {
    job_after(rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap());
}

async fn redefine(rig: &Rig, job: Known, by: impl Fn(&mut Definition), secs: i64) {
    let mut definition = rig.job(job).await.definition;
    by(&mut definition);
    change(rig, job, JobChange { definition: Some(definition), ..JobChange::default() }, secs)
        .await;
}

fn every(secs: u64) -> evenkeel_core::schedule::Schedule {
    unnamed_job().every(secs).build().definition.schedule
}

fn with(job: JobBuilder, by: impl Fn(&mut Definition)) -> NewJob {
    let mut job = job.build();
    by(&mut job.definition);
    job
}

pub async fn a_job_counts_from_its_registration_on(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(counted(&rig).await, 0);
    let new = new_job("crawl").every(3600).first_at(4000).build();
    let load = Load::of(&new.definition, None, at(4000)).unwrap();
    rig.add(new).await;
    assert_eq!(counted(&rig).await, 1);
    let [profile] = &all_profiles(&*rig.store).await[..] else { panic!("one profile") };
    assert_eq!((profile.key, &profile.profile), (load.key, &load.profile));
    assert_eq!((profile.tenant, profile.cost), (rig.scope.tenant, ASSUMED_COST));
}

pub async fn jobs_of_one_load_profile_are_counted_together(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = |n: i64, first_at| new_job(&format!("{n}")).every(86_400).first_at(first_at).build();
    rig.register((0..5).map(|n| job(n, 900 + n)).chain([job(9, 1800)]).collect()).await;
    assert_eq!(counted(&rig).await, 6);
    let mut jobs: Vec<u64> = all_profiles(&*rig.store).await.iter().map(|one| one.jobs).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, [1, 5]);
}

pub async fn jobs_without_a_load_profile_or_next_time_do_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let now_once = evenkeel_core::schedule::Once::NOW;
    let once = with(new_job("now").first_at(1), |definition| {
        definition.schedule = evenkeel_core::schedule::Schedule::Once(now_once);
    });
    rig.add(once).await;
    rig.add(new_job("never").never().build()).await;
    assert_eq!(counted(&rig).await, 0);
    let [placement] = &all_placements(&*rig.store, &rig.scope).await[..] else { panic!("one") };
    assert_eq!(placement.profile, None);
}

pub async fn a_job_whose_name_is_taken_does_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.register(vec![new_job("a").build(), new_job("a").build(), new_job("b").build()]).await;
    assert_eq!(counted(&rig).await, 2);
}

pub async fn a_paused_job_does_not_count_until_it_is_resumed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(vec![new_job("a").build(), new_job("b").build()]).await;
    act(&rig, jobs[0], Action::Pause, 1).await;
    assert_eq!(counted(&rig).await, 1);
    redefine(&rig, jobs[0], |definition| definition.schedule = every(1200), 2).await;
    assert_eq!(counted(&rig).await, 1);
    act(&rig, jobs[0], resume(Some(at(777))), 3).await;
    assert_eq!(counted(&rig).await, 2);
    act(&rig, jobs[0], Action::Pause, 4).await;
    act(&rig, jobs[0], resume(None), 5).await;
    assert_eq!(counted(&rig).await, 1);
}

pub async fn a_cancelled_or_deleted_job_does_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["a", "b", "c", "paused"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    act(&rig, jobs[0], Action::Cancel, 1).await;
    assert_eq!(counted(&rig).await, 3);
    act(&rig, jobs[1], Action::Delete, 1).await;
    assert_eq!(counted(&rig).await, 2);
    act(&rig, jobs[0], Action::Delete, 2).await;
    act(&rig, jobs[3], Action::Pause, 2).await;
    act(&rig, jobs[3], Action::Cancel, 3).await;
    assert_eq!(counted(&rig).await, 1);
    rig.store.purge(&rig.scope, jobs[1].id, 100).await.unwrap();
    assert_eq!(counted(&rig).await, 1);
}

pub async fn a_changed_job_counts_with_its_new_definition(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").every(3600).first_at(3600).build()).await;
    rig.add(new_job("other").every(3600).first_at(3600).build()).await;
    redefine(&rig, job, |definition| definition.schedule = every(1200), 1).await;
    assert_eq!(counted(&rig).await, 2);
    change(&rig, job, JobChange { next_at: Some(Some(at(5000))), ..JobChange::default() }, 2).await;
    assert_eq!(counted(&rig).await, 2);
    redefine(&rig, job, |definition| definition.cost = Some(Span::from_secs(7)), 3).await;
    assert_eq!(counted(&rig).await, 2);
    redefine(&rig, job, |definition| definition.cost = None, 4).await;
    redefine(&rig, job, |definition| definition.average_override = Some(Span::from_secs(9)), 5)
        .await;
    assert_eq!(counted(&rig).await, 2);
    redefine(&rig, job, |definition| definition.retry.max_retries = 9, 6).await;
    let about = Some(new_job("renamed").build().about);
    change(&rig, job, JobChange { about, ..JobChange::default() }, 7).await;
    assert_eq!(counted(&rig).await, 2);
    change(&rig, job, JobChange { next_at: Some(None), ..JobChange::default() }, 8).await;
    assert_eq!(counted(&rig).await, 1);
    redefine(&rig, job, |definition| definition.schedule = every(600), 9).await;
    assert_eq!(counted(&rig).await, 1);
    change(&rig, job, JobChange { next_at: Some(Some(at(900))), ..JobChange::default() }, 10).await;
    assert_eq!(counted(&rig).await, 2);
}

pub async fn each_command_of_a_batch_is_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(vec![new_job("a").build(), new_job("b").build()]).await;
    let order = |job: Known, action| evenkeel_store::JobCommand {
        id: job.id,
        if_generation: None,
        if_fired: None,
        action,
    };
    let definition = Some(new_job("").every(900).build().definition);
    let change = JobChange { definition, ..JobChange::default() };
    let batches = [
        [order(jobs[0], Action::Pause), order(jobs[1], Action::Change(Box::new(change)))],
        [order(jobs[1], Action::Pause), order(jobs[0], resume(Some(at(300))))],
        [order(jobs[0], Action::Pause), order(jobs[1], resume(Some(at(400))))],
    ];
    for orders in batches {
        let answers = rig.store.apply_commands(&rig.scope, orders.to_vec(), now(1)).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Applied::Done(_))), "{answers:?}");
        assert_eq!(counted(&rig).await, 1);
    }
}

pub async fn a_refused_command_changes_no_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(vec![new_job("a").build(), new_job("b").build()]).await;
    let change = JobChange {
        about: Some(new_job("b").build().about),
        definition: Some(new_job("").every(900).build().definition),
        next_at: Some(Some(at(900))),
    };
    let answer = rig.store.update(&rig.scope, jobs[0].id, change, now(1)).await.unwrap();
    assert_eq!(answer, Applied::NameTaken(jobs[1].id));
    let action = resume(Some(at(900)));
    let answer = rig.store.act(&rig.scope, jobs[0].id, action, now(1)).await.unwrap();
    assert!(matches!(answer, Applied::NotAllowed(_)), "{answer:?}");
    assert_eq!(counted(&rig).await, 2);
}

pub async fn only_the_last_firing_changes_a_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let by_count = with(new_job("count"), |definition| definition.bounds.max_runs = Some(2));
    let by_time = with(new_job("time"), |definition| definition.bounds.end_at = Some(at(130)));
    let once = new_job("once").once_at(60).build();
    let periodic = new_job("periodic").periodic(600, 60).build();
    let jobs = rig.add_all(vec![by_count, by_time, once, periodic]).await;
    let before = all_profiles(&*rig.store).await;
    let mut held = Vec::new();
    for job in &jobs[..2] {
        held.push(rig.start(*job, 60).await);
    }
    assert_eq!(all_profiles(&*rig.store).await, before);
    held.push(rig.start(jobs[2], 60).await);
    assert_eq!(counted(&rig).await, 3);
    held.push(rig.start(jobs[3], 60).await);
    let ends = held.into_iter().map(|held| rig.success(held)).collect();
    assert_eq!(rig.finish_all(ends).await, [FinishResult::Done; 4]);
    assert_eq!(counted(&rig).await, 3);
    let mut batch = Vec::new();
    for job in &jobs[..2] {
        batch.push(fire_of(&rig.due(*job).await, at(120), Begin::Queued));
    }
    let fired = rig.fire(batch, 120).await;
    assert!(fired.iter().all(|one| matches!(one, FireResult::Fired(_))), "{fired:?}");
    assert_eq!(counted(&rig).await, 1);
}

pub async fn a_refused_fire_changes_no_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig
        .add_all(vec![new_job("early").once_at(60).build(), new_job("stale").once_at(60).build()]);
    let jobs = jobs.await;
    let mut stale = fire_of(&rig.due(jobs[1]).await, at(60), Begin::Claimed);
    stale.generation += 1;
    let early = fire_of(&rig.due(jobs[0]).await, at(60), Begin::Claimed);
    assert_eq!(rig.fire(vec![stale, early], 30).await, [FireResult::Stale, FireResult::Early]);
    assert_eq!(counted(&rig).await, 2);
}

pub async fn a_job_stopped_by_failures_does_not_count_until_a_retry(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(vec![new_job("a").build(), new_job("b").build()]).await;
    let held = [rig.start(jobs[0], 60).await, rig.start(jobs[1], 60).await];
    let ends = [(held[0], STOPS), (held[1], OVER)];
    let ends = ends.map(|(held, then)| rig.end(held, Outcome::Failed, then)).to_vec();
    assert_eq!(rig.finish_all(ends).await, [FinishResult::Done; 2]);
    assert_eq!(counted(&rig).await, 1);
    act(&rig, jobs[0], Action::Retry { n: 1, next_at: Some(at(777)) }, 70).await;
    act(&rig, jobs[1], Action::Retry { n: 2, next_at: Some(at(777)) }, 70).await;
    assert_eq!(counted(&rig).await, 2);
    assert_eq!(rig.job(jobs[1]).await.next_at, Some(at(120)));
}

pub async fn a_periodic_job_counts_whatever_its_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").periodic(600, 60).build()).await;
    let before = all_profiles(&*rig.store).await;
    let held = rig.start(job, 60).await;
    let then = Then::EndRun { stop_job: false, next_at: Some(at(9000)) };
    rig.finish(rig.end(held, Outcome::Completed, then)).await;
    assert_eq!(all_profiles(&*rig.store).await, before);
    assert_eq!(counted(&rig).await, 1);
    let held = rig.start(job, 9000).await;
    rig.finish(rig.end(held, Outcome::Failed, STOPS)).await;
    assert_eq!(counted(&rig).await, 0);
}

pub async fn each_tenant_is_counted_separately(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let nobody = rig.tenant("nobody").await;
    for secs in [900, 1800, 3600] {
        rig.add(new_job(&format!("{secs}")).every(secs).first_at(3600).build()).await;
        rig.add_for(&other, new_job(&format!("{secs}")).every(secs).first_at(3600).build()).await;
    }
    rig.add_for(&other, new_job("more").every(900).first_at(3600).build()).await;
    assert_counted(&*rig.store, &[rig.scope, other, nobody]).await;
    let all = all_profiles(&*rig.store).await;
    for (scope, jobs) in [(rig.scope, 3), (other, 4), (nobody, 0)] {
        let own: Vec<_> =
            all.iter().filter(|profile| profile.tenant == scope.tenant).cloned().collect();
        assert_eq!(own.iter().map(|profile| profile.jobs).sum::<u64>(), jobs);
        assert_eq!(rig.store.tenant_load_profiles(&scope, None, 100).await.unwrap(), own);
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map(|last: &evenkeel_store::LoadProfileCount| last.key);
            let page = rig.store.tenant_load_profiles(&scope, after, 2).await.unwrap();
            assert!(page.len() <= 2);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, own);
    }
}

pub async fn placements_of_given_jobs_are_those_of_the_scope(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let names = ["a", "b", "paused", "deleted"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let never = rig.add(new_job("never").never().build()).await;
    let theirs = rig.add_for(&other, new_job("theirs").build()).await;
    act(&rig, jobs[2], Action::Pause, 1).await;
    act(&rig, jobs[3], Action::Delete, 1).await;
    let asked: Vec<_> = jobs.iter().chain([&never, &theirs]).map(|job| job.no).collect();
    let found = rig.store.placements_of(&rig.scope, &asked).await.unwrap();
    assert_eq!(found, all_placements(&*rig.store, &rig.scope).await);
    assert_eq!(found.iter().map(|one| one.job).collect::<Vec<_>>(), [jobs[0].no, jobs[1].no]);
    let one = rig.store.placements_of(&rig.scope, &[jobs[1].no]).await.unwrap();
    assert_eq!(one, found[1..]);
    assert_eq!(rig.store.placements_of(&rig.scope, &[]).await.unwrap(), []);
    let of_others = rig.store.placements_of(&other, &asked).await.unwrap();
    assert_eq!(of_others.iter().map(|one| one.job).collect::<Vec<_>>(), [theirs.no]);
}

pub async fn a_placement_has_all_that_a_move_needs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 60).await;
    let [one] = &all_placements(&*rig.store, &rig.scope).await[..] else { panic!("one") };
    assert_eq!((one.seed, one.generation), (job.id.seed(), 1));
    assert_eq!((one.next_at, one.last_fired_at), (at(120), Some(at(60))));
    assert_eq!((one.placed_at, one.is_live), (at(0), true));
    assert_eq!(one.cost, ASSUMED_COST);
}

pub async fn concurrent_changes_keep_the_counts_right(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    let rebalance = begin_one(&rig, 1, 0).await;
    let mut moved = Vec::new();
    for n in 0..10 {
        let new = new_job(&format!("moved {n}")).every(86_400).first_at(3600).build();
        let job = rig.add(new).await;
        moved.push(move_to(&rig.job(job).await, at(7200 + n * 900)));
    }
    let batch = batch_of(rebalance, 0, moved);
    at_once(&rig, 4, |n, store| {
        let batch = batch.clone();
        async move {
            for round in 0..10_u64 {
                let names = (0..5).map(|job| format!("{n} {round} {job}"));
                let firsts = [900, 1800, 2700, 3600, 4500];
                let jobs: Vec<NewJob> = names
                    .zip(firsts)
                    .map(|(name, first)| new_job(&name).every(86_400).first_at(first).build())
                    .collect();
                let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
                // Concurrent calls that register jobs in different orders must not deadlock.
                let jobs = if n % 2 == 0 { jobs } else { jobs.into_iter().rev().collect() };
                store.register(&scope, jobs, now(0)).await.unwrap();
                let stop = [Action::Pause, Action::Cancel, Action::Delete];
                for (id, action) in ids.iter().zip(stop) {
                    done(store.act(&scope, *id, action, now(1)).await.unwrap());
                }
                if n == 3 && round == 5 {
                    store.move_jobs(&scope, batch.clone(), now(1)).await.unwrap();
                }
                store.recount_load(None, 1000).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(counted(&rig).await, 10 + 4 * 10 * 2);
}

pub async fn counts_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(vec![new_job("a").build(), new_job("b").every(900).build()]).await;
    let before = all_profiles(&*rig.store).await;
    let rig = rig.restart().await;
    assert_eq!(all_profiles(&*rig.store).await, before);
    assert_eq!(counted(&rig).await, 2);
}
