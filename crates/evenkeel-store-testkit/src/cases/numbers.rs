//! Tests the public numbers of jobs, which are counted within each tenant.

use std::collections::BTreeSet;

use evenkeel_store::{JobFilter, JobSort, PageRequest, Registered};

use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{new_job, now};
use crate::rig::Rig;

fn number_of(answer: &Registered) -> i64 {
    let Registered::Created { number, .. } = answer else { panic!("not created: {answer:?}") };
    *number
}

pub async fn jobs_are_counted_from_one_in_the_order_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let batch = |names: [&str; 3]| names.map(|name| new_job(name).build()).to_vec();
    let first: Vec<i64> =
        rig.register(batch(["a", "b", "c"])).await.iter().map(number_of).collect();
    assert_eq!(first[0], 1);
    assert!(first.is_sorted_by(|one, next| one < next), "{first:?}");
    let second: Vec<i64> =
        rig.register(batch(["d", "e", "f"])).await.iter().map(number_of).collect();
    assert!(second.is_sorted_by(|one, next| one < next), "{second:?}");
    assert!(second[0] > first[2]);
}

pub async fn every_read_of_a_job_has_its_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add(new_job("first").build()).await;
    let new = new_job("crawl").build();
    let id = new.id;
    let number = number_of(&rig.register(vec![new]).await[0]);
    let (scope, store) = (&rig.scope, &rig.store);
    assert_eq!(store.get(scope, id).await.unwrap().unwrap().number, number);
    assert_eq!(store.get_with_now(scope, id).await.unwrap().unwrap().0.number, number);
    assert_eq!(store.get_jobs(scope, &[id]).await.unwrap()[0].number, number);
    let filter = JobFilter { name_prefix: Some("crawl".into()), ..JobFilter::default() };
    let page = store.list_jobs(scope, &filter, JobSort::default(), PageRequest::first(9)).await;
    assert_eq!(page.unwrap().items[0].number, number);
}

pub async fn a_number_leads_to_its_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c"].map(|name| new_job(name).build()).to_vec();
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let numbers: Vec<i64> = rig.register(jobs).await.iter().map(number_of).collect();
    let asked = [numbers[2], 0, numbers[0], -1, numbers[0], i64::MAX];
    let found = rig.store.ids_of_numbers(&rig.scope, &asked).await.unwrap();
    assert_eq!(found, [Some(ids[2]), None, Some(ids[0]), None, Some(ids[0]), None]);
    assert_eq!(rig.store.ids_of_numbers(&rig.scope, &[]).await.unwrap(), []);
}

pub async fn a_name_leads_to_the_jobs_that_have_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let named = async |scope, name, limit| {
        let found = rig.store.jobs_named(scope, name, limit).await.unwrap();
        found.into_iter().map(|job| (job.id, job.configuration)).collect::<Vec<_>>()
    };
    let plain = rig.add(new_job("a/b ü").build()).await;
    let zwei = rig.add(new_job("a/b ü").configuration("zwei").build()).await;
    let eins = rig.add(new_job("a/b ü").configuration("eins").build()).await;
    rig.add(new_job("a/b").build()).await;
    let all = [(plain.id, None), (eins.id, Some("eins".into())), (zwei.id, Some("zwei".into()))];
    assert_eq!(named(&rig.scope, "a/b ü", 9).await, all);
    assert_eq!(named(&rig.scope, "a/b ü", 2).await, all[..2]);
    for unknown in ["", "A/B ü", "a/b ", "a\0", "%"] {
        assert_eq!(named(&rig.scope, unknown, 9).await, [], "{unknown:?}");
    }
    assert_eq!(named(&other, "a/b ü", 9).await, [], "another tenant's");
    rig.store.delete(&rig.scope, plain.id, now(1)).await.unwrap();
    assert_eq!(named(&rig.scope, "a/b ü", 9).await, all[1..], "a deleted job has no name");
}

pub async fn a_number_is_not_reused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = new_job("crawl").build();
    let id = new.id;
    let number = number_of(&rig.register(vec![new]).await[0]);
    rig.store.delete(&rig.scope, id, now(1)).await.unwrap();
    let gone = rig.store.ids_of_numbers(&rig.scope, &[number]).await.unwrap();
    assert_eq!(gone, [None]);
    let again = number_of(&rig.register(vec![new_job("crawl").build()]).await[0]);
    assert!(again > number);
}

pub async fn a_name_that_is_taken_changes_no_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "a", "b"].map(|name| new_job(name).build());
    let id = jobs[2].id;
    let answers = rig.register(jobs.to_vec()).await;
    assert!(number_of(&answers[2]) > number_of(&answers[0]));
    let answers = rig.register(vec![new_job("a").build(), new_job("c").build()]).await;
    let last = number_of(&answers[1]);
    let found = rig.store.get(&rig.scope, id).await.unwrap().unwrap();
    assert!(last > found.number);
}

pub async fn each_tenant_has_its_own_numbers(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let mine = new_job("crawl").build();
    let my_id = mine.id;
    rig.register(vec![mine, new_job("more").build()]).await;
    let theirs = new_job("crawl").build();
    let their_id = theirs.id;
    let answers = rig.store.register(&other, vec![theirs], now(0)).await.unwrap();
    assert_eq!(number_of(&answers[0]), 1);
    let find = async |scope, numbers: &[i64]| rig.store.ids_of_numbers(scope, numbers).await;
    assert_eq!(find(&other, &[1, 2]).await.unwrap(), [Some(their_id), None]);
    assert_eq!(find(&rig.scope, &[1]).await.unwrap(), [Some(my_id)]);
}

pub async fn concurrent_registrations_get_different_numbers(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    let answers = at_once(&rig, 6, |n, store| async move {
        let batch = (0..20).map(|m| new_job(&format!("{n} {m}")).build()).collect();
        store.register(&scope, batch, now(0)).await.unwrap()
    })
    .await;
    let mut all = BTreeSet::new();
    for answers in &answers {
        let numbers: Vec<i64> = answers.iter().map(number_of).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        all.extend(numbers);
    }
    assert_eq!(all.len(), 120);
}

pub async fn a_concurrent_deletion_and_registration_of_a_name_do_not_deadlock(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    for round in 0..10 {
        let job = rig.add(new_job("crawl").build()).await;
        let answers = at_once(&rig, 4, |n, store| async move {
            if n == 0 {
                store.delete(&scope, job.id, now(round)).await.unwrap();
                return false;
            }
            let batch = vec![new_job("crawl").build(), new_job(&format!("{round} {n}")).build()];
            let answers = store.register(&scope, batch, now(round)).await.unwrap();
            matches!(answers[0], Registered::Created { .. })
        })
        .await;
        assert!(answers.iter().filter(|created| **created).count() <= 1);
        let filter = JobFilter { name_prefix: Some("crawl".into()), ..JobFilter::default() };
        let page = PageRequest::first(9);
        let left = rig.store.list_jobs(&scope, &filter, JobSort::default(), page).await.unwrap();
        for job in left.items {
            rig.store.delete(&scope, job.id, now(round)).await.unwrap();
        }
    }
}
