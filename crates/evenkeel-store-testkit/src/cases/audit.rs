//! The audit log.

use evenkeel_store::{
    AUDIT_SCAN_MAX, AuditCursor, AuditEntry, AuditFilter, Page, PageRequest, Role, Scope,
};
use futures::future::join_all;

use crate::Opened;
use crate::fixtures::at;
use crate::rig::Rig;

type AuditPage = Page<(AuditCursor, AuditEntry), AuditCursor>;

fn entry(scope: &Scope, secs: i64, subject: &str) -> AuditEntry {
    AuditEntry {
        at: at(secs),
        tenant: Some(scope.tenant),
        subject: subject.into(),
        role: Some(Role::Operator),
        action: "create_job".into(),
        target: None,
        status: 201,
        denied: false,
        detail: None,
        remote: None,
        request_id: format!("{subject}-{secs}"),
    }
}

async fn list(rig: &Rig, filter: &AuditFilter, page: PageRequest<AuditCursor>) -> AuditPage {
    rig.store.list_audit(&rig.scope, filter, page).await.unwrap()
}

async fn subjects(rig: &Rig, filter: &AuditFilter) -> Vec<String> {
    let page = list(rig, filter, PageRequest::first(100)).await;
    assert_eq!((page.total, page.total_is_estimate), (page.items.len() as u64, false));
    assert_eq!(page.next, None);
    page.items.into_iter().map(|(_, entry)| entry.subject).collect()
}

pub async fn an_entry_is_read_back_as_it_was_written(opened: Opened) {
    let rig = Rig::new(opened).await;
    let bare = AuditEntry { role: None, ..entry(&rig.scope, 1, "bare") };
    let full = AuditEntry {
        role: Some(Role::Admin),
        target: Some("job 7".into()),
        status: 403,
        denied: true,
        detail: Some("é \"quoted\"".into()),
        remote: Some("::1".into()),
        ..entry(&rig.scope, 2, "full")
    };
    rig.store.record_audit(vec![bare.clone(), full.clone()]).await.unwrap();
    rig.store.record_audit(Vec::new()).await.unwrap();
    let page = list(&rig, &AuditFilter::default(), PageRequest::first(9)).await;
    let entries: Vec<AuditEntry> = page.items.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(entries, [full, bare]);
}

pub async fn the_newest_entry_comes_first_whatever_the_order_of_arrival(opened: Opened) {
    let rig = Rig::new(opened).await;
    for secs in [3, 1, 2] {
        rig.store.record_audit(vec![entry(&rig.scope, secs, &format!("s{secs}"))]).await.unwrap();
    }
    assert_eq!(subjects(&rig, &AuditFilter::default()).await, ["s3", "s2", "s1"]);
}

pub async fn a_cursor_continues_within_one_moment(opened: Opened) {
    let rig = Rig::new(opened).await;
    let entries = (0..7).map(|n| entry(&rig.scope, n / 4, &format!("s{n}"))).collect();
    rig.store.record_audit(entries).await.unwrap();
    let (mut seen, mut page) = (Vec::new(), PageRequest::first(2));
    loop {
        let found = list(&rig, &AuditFilter::default(), page).await;
        assert_eq!(found.total, 7);
        seen.extend(found.items.iter().map(|(_, entry)| entry.subject.clone()));
        let Some(next) = found.next else { break };
        page.after = Some(next);
    }
    assert_eq!(seen, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
}

pub async fn an_offset_continues_the_list(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store
        .record_audit((0..5).map(|n| entry(&rig.scope, n, &format!("s{n}"))).collect())
        .await
        .unwrap();
    let page = PageRequest { limit: 2, offset: 1, after: None };
    let found = list(&rig, &AuditFilter::default(), page).await;
    let seen: Vec<_> = found.items.iter().map(|(_, entry)| entry.subject.as_str()).collect();
    assert_eq!(seen, ["s3", "s2"]);
    assert!(found.next.is_some());
}

pub async fn each_filter_selects_its_entries(opened: Opened) {
    let rig = Rig::new(opened).await;
    let about = |target: &str| Some(target.to_owned());
    rig.store
        .record_audit(vec![
            AuditEntry { target: about("x"), ..entry(&rig.scope, 1, "ann") },
            AuditEntry { denied: true, status: 403, ..entry(&rig.scope, 2, "ann") },
            AuditEntry { target: about("xy"), ..entry(&rig.scope, 3, "bob") },
            entry(&rig.scope, 4, "Ann"),
        ])
        .await
        .unwrap();
    let all = AuditFilter::default;
    for (filter, expected) in [
        (AuditFilter { subject: Some("ann".into()), ..all() }, &["ann", "ann"][..]),
        (AuditFilter { target: Some("x".into()), ..all() }, &["ann"]),
        (AuditFilter { denied: Some(true), ..all() }, &["ann"]),
        (AuditFilter { denied: Some(false), ..all() }, &["Ann", "bob", "ann"]),
        (AuditFilter { from: Some(at(3)), ..all() }, &["Ann", "bob"]),
        (AuditFilter { before: Some(at(3)), ..all() }, &["ann", "ann"]),
        (AuditFilter { from: Some(at(2)), before: Some(at(4)), ..all() }, &["bob", "ann"]),
        (AuditFilter { subject: Some("nobody".into()), ..all() }, &[]),
    ] {
        assert_eq!(subjects(&rig, &filter).await, expected, "{filter:?}");
    }
}

pub async fn a_tenant_sees_its_own_entries(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.store
        .record_audit(vec![entry(&rig.scope, 1, "ann"), entry(&other, 2, "bob")])
        .await
        .unwrap();
    let filter = AuditFilter { with_unknown: true, ..AuditFilter::default() };
    assert_eq!(subjects(&rig, &filter).await, ["ann"]);
    let page = rig.store.list_audit(&other, &filter, PageRequest::first(9)).await.unwrap();
    assert_eq!((page.items.len(), page.total), (1, 1));
}

pub async fn entries_without_a_tenant_are_returned_on_request(opened: Opened) {
    let rig = Rig::new(opened).await;
    let unknown = |secs| AuditEntry { tenant: None, role: None, ..entry(&rig.scope, secs, "?") };
    let entries = vec![unknown(1), entry(&rig.scope, 2, "ann"), unknown(3)];
    rig.store.record_audit(entries).await.unwrap();
    assert_eq!(subjects(&rig, &AuditFilter::default()).await, ["ann"]);
    let with_unknown = AuditFilter { with_unknown: true, ..AuditFilter::default() };
    assert_eq!(subjects(&rig, &with_unknown).await, ["?", "ann", "?"]);
    let page = list(&rig, &with_unknown, PageRequest::first(1)).await;
    assert_eq!(page.items[0].1.tenant, None);
}

pub async fn a_page_scans_a_bounded_number_of_entries(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store.record_audit(vec![entry(&rig.scope, 0, "rare")]).await.unwrap();
    let many = AUDIT_SCAN_MAX + 50;
    for from in (0..many).step_by(1000) {
        let part = from..many.min(from + 1000);
        let entries = part.map(|n| entry(&rig.scope, 1 + i64::from(n), "often")).collect();
        rig.store.record_audit(entries).await.unwrap();
    }
    let filter = AuditFilter { subject: Some("rare".into()), ..AuditFilter::default() };
    let first = list(&rig, &filter, PageRequest::first(5)).await;
    assert_eq!((first.items.len(), first.total_is_estimate), (0, true));
    let after = first.next;
    assert!(after.is_some());
    let second = list(&rig, &filter, PageRequest { after, ..PageRequest::first(5) }).await;
    assert_eq!((second.items.len(), second.next), (1, None));
    let all = list(&rig, &AuditFilter::default(), PageRequest::first(5)).await;
    assert_eq!((all.total, all.total_is_estimate), (u64::from(AUDIT_SCAN_MAX), true));
}

pub async fn old_entries_are_pruned_oldest_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    rig.store
        .record_audit((0..6).map(|n| entry(&rig.scope, n, &format!("s{n}"))).collect())
        .await
        .unwrap();
    assert_eq!(rig.store.prune_audit(at(4), 3).await.unwrap(), 3);
    assert_eq!(subjects(&rig, &AuditFilter::default()).await, ["s5", "s4", "s3"]);
    assert_eq!(rig.store.prune_audit(at(4), 3).await.unwrap(), 1);
    assert_eq!(rig.store.prune_audit(at(4), 3).await.unwrap(), 0);
    assert_eq!(subjects(&rig, &AuditFilter::default()).await, ["s5", "s4"]);
}

pub async fn concurrent_entries_are_all_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let second = rig.second().await;
    let writers = (0..20).map(|n| {
        let store = if n % 2 == 0 { &rig.store } else { &second };
        store.record_audit((0..50).map(|m| entry(&rig.scope, m, &format!("w{n}"))).collect())
    });
    join_all(writers).await.into_iter().for_each(Result::unwrap);
    let page = list(&rig, &AuditFilter::default(), PageRequest::first(1000)).await;
    assert_eq!((page.items.len(), page.total, page.next), (1000, 1000, None));
}
