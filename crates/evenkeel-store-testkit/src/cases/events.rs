//! Events.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptKey, JobNo, TenantNo};
use evenkeel_store::{
    EVENTS_KEPT, Event, EventJob, EventKind, EventNo, EventPage, JobTitle, NewEvent, Scope, Signal,
    Store,
};

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{at, fresh_id, new_job, unnamed_job};
use crate::rig::Rig;

fn event(tenant: TenantNo, secs: i64) -> NewEvent {
    NewEvent {
        kind: EventKind::JobCreated,
        tenant,
        job: EventJob::Id(fresh_id()),
        run: None,
        at: at(secs),
        data: format!("{{\"n\":{secs}}}"),
    }
}

async fn publish(store: &Arc<dyn Store>, events: Vec<NewEvent>) {
    store.publish(events, false).await.expect("events can be published");
}

async fn after(rig: &Rig, no: EventNo, limit: u32) -> EventPage {
    rig.store.events_after(&rig.scope, no, limit).await.expect("events can be read")
}

async fn newest(rig: &Rig) -> EventNo {
    rig.store.newest_event().await.expect("the newest event can be read")
}

/// Publishes an event and returns its position, so that reads after this position report no gap.
async fn beginning(rig: &Rig) -> EventNo {
    publish(&rig.store, vec![event(rig.scope.tenant, 0)]).await;
    newest(rig).await
}

fn moments(events: &[Event]) -> Vec<i64> {
    let secs = |event: &Event| (event.at.as_micros() - at(0).as_micros()) / 1_000_000;
    events.iter().map(secs).collect()
}

pub async fn an_event_is_read_back_as_published(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("returned").build()).await;
    let start = beginning(&rig).await;
    let run = Some(AttemptKey::regular(job.no, at(60)));
    let tenant = rig.scope.tenant;
    let returned: Vec<NewEvent> = (0..)
        .zip(EventKind::ALL)
        .map(|(n, kind)| NewEvent {
            kind,
            job: match n % 3 {
                0 => EventJob::No(job.no),
                1 => EventJob::Id(job.id),
                _ => EventJob::None,
            },
            run: run.filter(|_| n > 6),
            ..event(tenant, n)
        })
        .collect();
    publish(&rig.store, returned.clone()).await;
    let page = after(&rig, start, 99).await;
    assert!(!page.gap);
    assert_eq!(page.events.len(), returned.len());
    for (got, returned) in page.events.iter().zip(&returned) {
        let NewEvent { kind, tenant, job: told_of, run, at, data } = returned.clone();
        let known = (told_of != EventJob::None).then_some(job.id);
        let job_name = known.map(|_| "returned".to_owned());
        let expected = Event { no: got.no, kind, tenant, job: known, job_name, run, at, data };
        assert_eq!(*got, expected);
    }
}

pub async fn an_event_keeps_the_job_name_of_its_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let named = rig.add(new_job("before").build()).await;
    let unnamed = rig.add(unnamed_job().build()).await;
    let start = beginning(&rig).await;
    let about = |job| NewEvent { job, ..event(rig.scope.tenant, 1) };
    let jobs = [EventJob::Id(named.id), EventJob::No(unnamed.no), EventJob::Id(fresh_id())];
    publish(&rig.store, jobs.map(about).to_vec()).await;
    rig.store.delete(&rig.scope, named.id, crate::fixtures::now(1)).await.unwrap();
    publish(&rig.store, vec![about(EventJob::Id(named.id)), about(EventJob::No(named.no))]).await;
    let page = after(&rig, start, 99).await;
    let names: Vec<_> = page.events.iter().map(|event| event.job_name.as_deref()).collect();
    let before = Some("before");
    assert_eq!(names, [before, None, None, before, before], "a deleted job is also found");
}

pub async fn numbers_rise_in_the_order_of_publication(opened: Opened) {
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    for secs in 1..=3 {
        publish(&rig.store, vec![event(rig.scope.tenant, secs), event(rig.scope.tenant, -secs)])
            .await;
    }
    let page = after(&rig, start, 99).await;
    assert_eq!(
        moments(&page.events),
        [1, -1, 2, -2, 3, -3],
        "events are in the order of publication, not of their timestamps"
    );
    assert!(page.events.is_sorted_by(|a, b| a.no < b.no));
    assert!(page.events[0].no > start);
    assert_eq!((page.seen, newest(&rig).await), (page.events[5].no, page.events[5].no));
}

pub async fn a_page_reads_no_more_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let start = beginning(&rig).await;
    let of = |scope: &Scope, secs| event(scope.tenant, secs);
    publish(&rig.store, vec![of(&rig.scope, 1), of(&other, 2), of(&other, 3), of(&rig.scope, 4)])
        .await;
    let first = after(&rig, start, 2).await;
    assert_eq!(moments(&first.events), [1]);
    let second = after(&rig, first.seen, 1).await;
    assert_eq!(second.events, []);
    assert!(second.seen > first.seen, "events of others were read");
    let third = after(&rig, second.seen, 9).await;
    assert_eq!(moments(&third.events), [4]);
    let last = after(&rig, third.seen, 9).await;
    assert_eq!(last, EventPage { events: vec![], seen: third.seen, gap: false });
    assert!(![first, second, third].iter().any(|page| page.gap));
}

pub async fn a_tenant_reads_its_own_events(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let start = beginning(&rig).await;
    publish(&rig.store, vec![event(other.tenant, 1)]).await;
    let page = after(&rig, start, 9).await;
    assert_eq!((page.events, page.gap), (vec![], false));
    let theirs = rig.store.events_after(&other, start, 9).await.unwrap();
    assert_eq!(moments(&theirs.events), [1]);
    assert_eq!(theirs.seen, page.seen);
}

pub async fn a_gap_is_reported_where_events_were_lost(opened: Opened) {
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    publish(&rig.store, vec![event(rig.scope.tenant, 1)]).await;
    rig.store.publish(vec![event(rig.scope.tenant, 2)], true).await.unwrap();
    rig.store.publish(vec![], true).await.unwrap();
    let before = after(&rig, start, 1).await;
    assert_eq!((moments(&before.events), before.gap), (vec![1], false));
    let across = after(&rig, before.seen, 2).await;
    assert_eq!((moments(&across.events), across.gap), (vec![2], true));
    let last = after(&rig, across.seen, 9).await;
    assert_eq!((last.events, last.gap), (vec![], true));
    let behind = after(&rig, last.seen, 9).await;
    assert!(!behind.gap, "a gap is reported once");
    let nothing = rig.store.publish(vec![], false).await;
    assert!(nothing.is_ok());
    assert_eq!(newest(&rig).await, last.seen);
}

pub async fn the_newest_events_are_kept(opened: Opened) {
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    let tenant = rig.scope.tenant;
    let many = |from: usize, to: usize| (from..to).map(|n| event(tenant, n as i64)).collect();
    publish(&rig.store, many(0, EVENTS_KEPT - 1)).await;
    assert!(!after(&rig, start, 1).await.gap);
    let first = after(&rig, start, 2).await;
    let some_more = EVENTS_KEPT / 10;
    for _ in 0..2 {
        publish(&rig.store, many(0, some_more)).await;
    }
    let page = after(&rig, start, u32::MAX >> 1).await;
    assert!(page.gap, "earlier events are unknown");
    let kept = page.events.len();
    assert!((EVENTS_KEPT..=EVENTS_KEPT + some_more).contains(&kept), "{kept}");
    assert!(first.events[0].no < page.events[0].no);
    let whole = after(&rig, page.events[0].no, u32::MAX >> 1).await;
    assert_eq!((whole.events.len(), whole.gap), (kept - 1, false));
}

pub async fn without_events_there_is_no_gap(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(newest(&rig).await, EventNo(0));
    let nothing = after(&rig, EventNo(7), 9).await;
    assert_eq!(nothing, EventPage { events: vec![], seen: EventNo(7), gap: false });
    publish(&rig.store, vec![event(rig.scope.tenant, 1)]).await;
    let page = after(&rig, EventNo(7), 9).await;
    assert_eq!((moments(&page.events), page.gap), (vec![1], true));
}

pub async fn numbers_continue_after_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    let rig = rig.restart().await;
    publish(&rig.store, vec![event(rig.scope.tenant, 1)]).await;
    let page = after(&rig, start, 9).await;
    assert_eq!(moments(&page.events), [1]);
    assert!(page.seen > start);
}

pub async fn the_latest_listener_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let until = async || rig.store.listened_until().await.expect("the listening time can be read");
    assert_eq!(until().await, None);
    rig.store.listen(at(60)).await.unwrap();
    assert_eq!(until().await, Some(at(60)));
    rig.store.listen(at(30)).await.unwrap();
    assert_eq!(until().await, Some(at(60)));
    let second = rig.second().await;
    second.listen(at(90)).await.unwrap();
    assert_eq!(until().await, Some(at(90)), "the latest announcement of all nodes counts");
    rig.store.listen(at(120)).await.unwrap();
    assert_eq!(second.listened_until().await.unwrap(), Some(at(120)));
}

pub async fn events_reach_other_nodes_and_wake_them(opened: Opened) {
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    let second = rig.second().await;
    // A store handle that was just opened may not receive signals yet.
    let mut heard = rig.store.signals().subscribe();
    let wait = async {
        loop {
            publish(&second, vec![event(rig.scope.tenant, 1)]).await;
            let one = tokio::time::timeout(Duration::from_millis(200), async {
                while heard.recv().await.expect("the channel is open") != Signal::Events {}
            });
            if one.await.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the subscriber is woken");
    assert!(!after(&rig, start, 9).await.events.is_empty());
}

pub async fn concurrent_publishers_lose_no_event(opened: Opened) {
    const TELLERS: i64 = 8;
    const EACH: i64 = 25;
    let rig = Rig::new(opened).await;
    let start = beginning(&rig).await;
    let mut tellers = tokio::task::JoinSet::new();
    for teller in 0..TELLERS {
        let (store, tenant) = (Arc::clone(&rig.store), rig.scope.tenant);
        tellers.spawn(async move {
            for n in 0..EACH {
                publish(&store, vec![event(tenant, teller * 1000 + n)]).await;
            }
        });
    }
    // A reader that continues after the event number `seen` must not miss an event that is stored
    // later with a lower number.
    let (mut seen, mut got) = (start, Vec::new());
    while got.len() < (TELLERS * EACH) as usize {
        let page = after(&rig, seen, 7).await;
        assert!(!page.gap);
        seen = page.seen;
        got.extend(moments(&page.events));
    }
    tellers.join_all().await;
    for teller in 0..TELLERS {
        let of = got.iter().filter(|n| **n / 1000 == teller).map(|n| n % 1000);
        assert_eq!(of.collect::<Vec<_>>(), (0..EACH).collect::<Vec<_>>());
    }
}

pub async fn deleted_jobs_are_found_by_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut about_news = new_job("one").build();
    about_news.about.source_name = Some("example.com".into());
    let (one, two) = (rig.add(about_news).await, rig.add(new_job("two").build()).await);
    rig.store.delete(&rig.scope, one.id, crate::fixtures::now(1)).await.unwrap();
    let titles = rig.store.job_titles(&[two.no, JobNo(99), one.no, two.no]).await.unwrap();
    let title = |id, name: &str, source_name: Option<&str>| {
        Some(JobTitle { id, name: Some(name.into()), source_name: source_name.map(String::from) })
    };
    let second = title(two.id, "two", None);
    let expected = [second.clone(), None, title(one.id, "one", Some("example.com")), second];
    assert_eq!(titles, expected);
    assert_eq!(rig.store.job_titles(&[]).await.unwrap(), []);
}
