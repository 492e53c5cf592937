//! API keys.

use evenkeel_store::{ApiKey, KeyHash, NewApiKey, Now, PageRequest, Role};
use futures::future::join_all;
use uuid::Uuid;

use crate::Opened;
use crate::fixtures::{at, fresh_id, now};
use crate::rig::Rig;

fn new_key(name: &str, hash: u8) -> NewApiKey {
    NewApiKey {
        id: fresh_id().0,
        name: name.into(),
        role: Role::Operator,
        hash: [hash; 32],
        created_by: "ann".into(),
        expires_at: None,
    }
}

async fn make(rig: &Rig, name: &str, hash: u8) -> Uuid {
    let key = new_key(name, hash);
    let id = key.id;
    assert!(rig.store.create_key(&rig.scope, key, now(0)).await.unwrap());
    id
}

async fn found(rig: &Rig, hash: u8) -> ApiKey {
    let hash: KeyHash = [hash; 32];
    rig.store.find_key(&hash).await.unwrap().unwrap()
}

pub async fn a_key_is_found_by_its_hash_with_all_fields(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (hash, role, expires_at) in
        [(1, Role::Viewer, None), (2, Role::Operator, Some(at(60))), (3, Role::Admin, Some(at(1)))]
    {
        let name = format!("key {hash}");
        let key = NewApiKey { role, expires_at, ..new_key(&name, hash) };
        let id = key.id;
        assert!(rig.store.create_key(&rig.scope, key, now(5)).await.unwrap());
        let expected = ApiKey {
            id,
            tenant: rig.scope.tenant,
            tenant_name: "main".into(),
            name,
            role,
            created_by: "ann".into(),
            created_at: at(5),
            expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        assert_eq!(found(&rig, hash).await, expected);
    }
}

pub async fn an_unknown_hash_finds_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, "a", 1).await;
    assert_eq!(rig.store.find_key(&[2; 32]).await.unwrap(), None);
}

pub async fn a_name_is_taken_until_its_key_is_revoked(opened: Opened) {
    let rig = Rig::new(opened).await;
    let expired = NewApiKey { expires_at: Some(at(1)), ..new_key("ci", 1) };
    let id = expired.id;
    assert!(rig.store.create_key(&rig.scope, expired, now(0)).await.unwrap());
    assert!(!rig.store.create_key(&rig.scope, new_key("ci", 2), now(9)).await.unwrap());
    assert_eq!(rig.store.find_key(&[2; 32]).await.unwrap(), None);
    assert!(rig.store.revoke_key(&rig.scope, id, now(10)).await.unwrap());
    assert!(rig.store.create_key(&rig.scope, new_key("ci", 3), now(11)).await.unwrap());
}

pub async fn concurrent_creations_of_a_name_succeed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let second = rig.second().await;
    for round in 0_u8..10 {
        let name = format!("ci {round}");
        let makers = (0_u8..4).map(|n| {
            let store = if n % 2 == 0 { &rig.store } else { &second };
            store.create_key(&rig.scope, new_key(&name, round * 4 + n), now(0))
        });
        let made = join_all(makers).await;
        assert_eq!(made.into_iter().filter(|made| *made.as_ref().unwrap()).count(), 1);
    }
}

pub async fn another_tenant_may_use_the_name(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    make(&rig, "ci", 1).await;
    assert!(rig.store.create_key(&other, new_key("ci", 2), now(0)).await.unwrap());
    let key = found(&rig, 2).await;
    assert_eq!((key.tenant, key.tenant_name.as_str()), (other.tenant, "other"));
}

pub async fn a_revoked_key_is_found_and_marked(opened: Opened) {
    let rig = Rig::new(opened).await;
    let id = make(&rig, "ci", 1).await;
    assert!(rig.store.revoke_key(&rig.scope, id, now(7)).await.unwrap());
    assert_eq!(found(&rig, 1).await.revoked_at, Some(at(7)));
}

pub async fn a_key_is_revoked_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let id = make(&rig, "ci", 1).await;
    assert!(rig.store.revoke_key(&rig.scope, id, now(7)).await.unwrap());
    assert!(!rig.store.revoke_key(&rig.scope, id, now(8)).await.unwrap());
    assert_eq!(found(&rig, 1).await.revoked_at, Some(at(7)));
    assert!(!rig.store.revoke_key(&rig.scope, fresh_id().0, now(9)).await.unwrap());
}

pub async fn a_key_of_another_tenant_is_not_revoked(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let id = make(&rig, "ci", 1).await;
    assert!(!rig.store.revoke_key(&other, id, now(1)).await.unwrap());
    assert_eq!(found(&rig, 1).await.revoked_at, None);
    let page = rig.store.list_keys(&other, PageRequest::first(9)).await.unwrap();
    assert_eq!((page.items.len(), page.total), (0, 0));
}

pub async fn the_latest_use_is_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (one, two) = (make(&rig, "a", 1).await, make(&rig, "b", 2).await);
    rig.store.use_keys(&[one, two, fresh_id().0], at(20)).await.unwrap();
    rig.store.use_keys(&[one], at(10)).await.unwrap();
    rig.store.use_keys(&[two], at(30)).await.unwrap();
    rig.store.use_keys(&[], at(40)).await.unwrap();
    assert_eq!(found(&rig, 1).await.last_used_at, Some(at(20)));
    assert_eq!(found(&rig, 2).await.last_used_at, Some(at(30)));
}

pub async fn keys_are_listed_oldest_first_in_pages(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut ids = Vec::new();
    for n in 0_u8..5 {
        ids.push(make(&rig, &format!("key {n}"), n).await);
    }
    ids.sort_unstable();
    rig.store.revoke_key(&rig.scope, ids[1], now(1)).await.unwrap();
    let (mut seen, mut page) = (Vec::new(), PageRequest::first(2));
    loop {
        let found = rig.store.list_keys(&rig.scope, page).await.unwrap();
        assert_eq!((found.total, found.total_is_estimate), (5, false));
        seen.extend(found.items.iter().map(|key| key.id));
        let Some(next) = found.next else { break };
        page.after = Some(next);
    }
    assert_eq!(seen, ids);
    let by_offset = PageRequest { limit: 9, offset: 3, after: None };
    let found = rig.store.list_keys(&rig.scope, by_offset).await.unwrap();
    assert_eq!(found.items.iter().map(|key| key.id).collect::<Vec<_>>(), ids[3..]);
    assert_eq!(found.next, None);
}

pub async fn the_database_clock_sets_creation_and_revocation(opened: Opened) {
    let rig = Rig::new(opened).await;
    let before = rig.store.now().await.unwrap();
    let key = new_key("ci", 1);
    let id = key.id;
    rig.store.create_key(&rig.scope, key, Now::Database).await.unwrap();
    rig.store.revoke_key(&rig.scope, id, Now::Database).await.unwrap();
    let after = rig.store.now().await.unwrap();
    let key = found(&rig, 1).await;
    assert!(before <= key.created_at && key.revoked_at.unwrap() <= after);
    assert!(key.created_at <= key.revoked_at.unwrap());
}

pub async fn keys_outlive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    make(&rig, "ci", 1).await;
    let before = found(&rig, 1).await;
    let rig = rig.restart().await;
    assert_eq!(found(&rig, 1).await, before);
}
