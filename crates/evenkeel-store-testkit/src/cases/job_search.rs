//! Tests searches in the texts of jobs.

use evenkeel_core::{About, JobSearch};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, JobChange, JobFilter, JobSort, NewTarget,
    PageRequest, Scope, TargetFields, UNINDEXED_SEARCHED,
};
use serde_json::json;

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{new_job, now, unnamed_job};
use crate::paging::index_all;
use crate::rig::{Known, Rig};

fn searching(text: &str) -> JobFilter {
    JobFilter { search: Some(JobSearch::parse(text).unwrap()), ..JobFilter::default() }
}

/// Returns the jobs of a tenant that the search finds.
async fn found_by(rig: &Rig, scope: &Scope, text: &str) -> Vec<String> {
    let page = PageRequest::first(100);
    let page = rig.store.list_jobs(scope, &searching(text), JobSort::default(), page).await;
    let page = page.unwrap();
    assert_eq!((page.total, page.total_is_estimate), (page.items.len() as u64, false));
    page.items.into_iter().map(|job| job.about.name.unwrap_or_default()).collect()
}

async fn found(rig: &Rig, text: &str) -> Vec<String> {
    found_by(rig, &rig.scope, text).await
}

/// Asserts for each search that it finds the listed jobs, before and after they are indexed.
async fn expect(rig: &Rig, searches: &[(&str, &[&str])]) {
    for _ in 0..2 {
        for (text, expected) in searches {
            assert_eq!(found(rig, text).await, *expected, "{text}");
        }
        index_all(rig).await;
    }
}

async fn change(rig: &Rig, job: Known, about: About) {
    let change = JobChange { about: Some(about), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(5)).await.unwrap();
}

pub async fn a_search_finds_words_and_parts_of_words_in_all_texts_of_a_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut job = new_job("Nightly-Import").configuration("staging").source("SRC-1").build();
    job.about.description = Some("Reads Ångström\nfeeds".into());
    job.about.source_name = Some("The Gazette".into());
    job.about.url = Some("https://user:hidden@Example.com/path?token=secret".into());
    job.about.metadata = json!({"Team": "Red", "deep": {"tier": [15, true]}});
    rig.add(job).await;
    rig.add(new_job("other").build()).await;
    rig.add(unnamed_job().build()).await;
    let all: &[&str] = &["Nightly-Import"];
    let texts = [
        "nightly", "LY-IMP", "staging", "src-1", "ångström", "A\u{30a}NGSTR", "feeds", "gazet",
        "example.com/path", "token", "team", "red", "tier", "15", "true", "rea", "the import red",
    ];
    expect(&rig, &texts.map(|text| (text, all))).await;
    expect(&rig, &[("hidden", &[]), ("secret", &[]), ("user:", &[]), ("nightly2", &[])]).await;
}

pub async fn a_search_requires_every_word(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(["red apple", "red pear", "green apple"].map(|name| new_job(name).build()).into())
        .await;
    expect(
        &rig,
        &[
            ("red", &["red apple", "red pear"]),
            ("apple red", &["red apple"]),
            ("app ear", &[]),
            ("  PEAR  ", &["red pear"]),
            ("redapple", &[]),
        ],
    )
    .await;
}

pub async fn a_short_word_matches_only_the_beginnings_of_words(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.add_all(["de-news", "sued", "東京都"].map(|name| new_job(name).build()).into()).await;
    expect(
        &rig,
        &[
            ("de", &["de-news"]),
            ("d", &["de-news"]),
            ("n sued", &[]),
            ("su", &["sued"]),
            ("京都", &["東京都"]),
            ("都", &["東京都"]),
        ],
    )
    .await;
}

pub async fn no_character_of_a_search_has_a_special_meaning(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["100% sure", "100_ sure", "it's \"it\" \\n", "a* AND b", "{1,2}:x"];
    rig.add_all(names.map(|name| new_job(name).build()).into()).await;
    expect(
        &rig,
        &[
            ("100%", &["100% sure"]),
            ("100_", &["100_ sure"]),
            ("%%%", &[]),
            ("___", &[]),
            ("it's", &["it's \"it\" \\n"]),
            ("\"it\"", &["it's \"it\" \\n"]),
            ("a* and", &["a* AND b"]),
            ("sur*", &[]),
            ("not sure", &[]),
            ("{1,2}:x", &["{1,2}:x"]),
        ],
    )
    .await;
}

pub async fn a_changed_job_is_found_by_its_new_text_only(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("before").metadata(json!({"team": "blue"})).build()).await;
    expect(&rig, &[("before", &["before"]), ("blue", &["before"])]).await;
    change(&rig, job, About { name: Some("after".into()), ..About::default() }).await;
    expect(&rig, &[("before", &[]), ("blue", &[]), ("after", &["after"])]).await;
    // Back to the first name, before the change is indexed.
    change(&rig, job, About { name: Some("between".into()), ..About::default() }).await;
    change(&rig, job, About { name: Some("before".into()), ..About::default() }).await;
    expect(&rig, &[("before", &["before"]), ("between", &[]), ("after", &[])]).await;
}

pub async fn a_deleted_job_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("fleeting").build()).await;
    index_all(&rig).await;
    rig.store.delete(&rig.scope, job.id, now(5)).await.unwrap();
    expect(&rig, &[("fleeting", &[])]).await;
    rig.store.purge(&rig.scope, job.id, 100).await.unwrap();
    expect(&rig, &[("fleeting", &[])]).await;
    rig.add(new_job("fleeting").build()).await;
    expect(&rig, &[("fleeting", &["fleeting"])]).await;
}

pub async fn a_search_finds_no_jobs_of_other_tenants(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.add(new_job("shared name, mine").build()).await;
    rig.add_for(&other, new_job("shared name, theirs").build()).await;
    expect(&rig, &[("shared", &["shared name, mine"]), ("theirs", &[])]).await;
    assert_eq!(found_by(&rig, &other, "shared").await, ["shared name, theirs"]);
    assert!(found_by(&rig, &other, "mine").await.is_empty());
}

pub async fn a_search_finds_jobs_by_the_name_of_their_target(opened: Opened) {
    let rig = Rig::new(opened).await;
    let named = |name: &str| TargetFields { name: Some(name.into()), ..TargetFields::default() };
    let new = NewTarget { number: Some(7), fields: named("Old Forum") };
    let made = rig.store.create_target(&rig.scope, new, now(1)).await.unwrap();
    assert!(matches!(made, CreatedTarget::Created(_)));
    let names = ["one", "two", "three"];
    rig.add_all(names.map(|name| new_job(name).target(7).build()).into()).await;
    rig.add(new_job("elsewhere").build()).await;
    expect(&rig, &[("forum", &names), ("old two", &["two"])]).await;
    let changed =
        rig.store.change_target(&rig.scope, 7, None, named("New Board"), now(2)).await.unwrap();
    assert!(matches!(changed, ChangedTarget::Done(_)));
    assert!(found(&rig, "forum").await.is_empty());
    // The jobs of a target are indexed in several steps.
    assert!(rig.store.index_jobs(1).await.is_ok());
    index_all(&rig).await;
    assert_eq!(found(&rig, "board").await, names);
    let deleted = rig.store.delete_target(&rig.scope, 7, true).await.unwrap();
    assert_eq!(deleted, DeletedTarget::Done { detached: 3 });
    expect(&rig, &[("board", &[])]).await;
}

pub async fn the_newest_jobs_are_found_before_they_are_indexed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let many = 0..UNINDEXED_SEARCHED + 500;
    rig.add_all(many.map(|n| new_job(&format!("bulk {n}")).build()).collect()).await;
    rig.add(new_job("newest").build()).await;
    assert_eq!(found(&rig, "newest").await, ["newest"]);
    index_all(&rig).await;
    assert_eq!(found(&rig, "bulk 1499").await, ["bulk 1499"]);
    assert_eq!(found(&rig, "newest").await, ["newest"]);
}

pub async fn index_jobs_returns_false_when_all_jobs_are_indexed(opened: Opened) {
    let rig = Rig::new(opened).await;
    index_all(&rig).await;
    assert!(!rig.store.index_jobs(10).await.unwrap());
    for n in 0..5 {
        rig.add(new_job(&format!("job {n}")).build()).await;
    }
    index_all(&rig).await;
    assert!(!rig.store.index_jobs(10).await.unwrap());
    let page = PageRequest { offset: 1, ..PageRequest::first(2) };
    let page = rig.store.list_jobs(&rig.scope, &searching("job"), JobSort::default(), page).await;
    let page = page.unwrap();
    assert_eq!((page.items.len(), page.total, page.next.is_some()), (2, 5, true));
}
