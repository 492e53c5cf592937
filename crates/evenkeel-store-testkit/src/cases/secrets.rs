//! Named secrets.

use evenkeel_store::{
    NewSecret, PageRequest, Reseal, Scope, Sealed, SealedSecret, SecretInfo, SecretReach,
};

use crate::Opened;
use crate::fixtures::{at, now};
use crate::rig::Rig;

fn sealed(key: &str, n: u8) -> Sealed {
    Sealed { key_id: key.into(), nonce: vec![n; 12], ciphertext: vec![n, 0, 255, n] }
}

fn secret(name: &str, n: u8) -> NewSecret {
    NewSecret { name: name.into(), sealed: sealed("k1", n), by: "ann".into() }
}

async fn put(rig: &Rig, scope: &Scope, name: &str, n: u8) -> SecretInfo {
    rig.store.put_secret(scope, secret(name, n), now(0)).await.unwrap()
}

async fn get(rig: &Rig, scope: &Scope, name: &str) -> Option<SealedSecret> {
    rig.store.get_secrets(scope, &[name.to_owned()]).await.unwrap().pop()
}

async fn stale(rig: &Rig, scope: &Scope, reach: SecretReach) -> Vec<String> {
    let found = rig.store.stale_secrets(scope, reach, "k2", None, 100).await.unwrap();
    found.into_iter().map(|one| one.name).collect()
}

pub async fn a_secret_is_read_back_as_it_was_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let info = rig.store.put_secret(&rig.scope, secret("a.b-c_1", 7), now(5)).await.unwrap();
    let expected = SecretInfo {
        name: "a.b-c_1".into(),
        version: 1,
        key_id: "k1".into(),
        created_at: at(5),
        created_by: "ann".into(),
        updated_at: at(5),
        updated_by: "ann".into(),
    };
    assert_eq!(info, expected);
    let again = rig.store.get_secret(&rig.scope, "a.b-c_1").await.unwrap();
    assert_eq!(again, Some(expected));
    assert_eq!(rig.store.get_secret(&rig.scope, "other").await.unwrap(), None);
    let tenant = rig.scope.tenant;
    let stored = SealedSecret { tenant, name: "a.b-c_1".into(), sealed: sealed("k1", 7) };
    assert_eq!(get(&rig, &rig.scope, "a.b-c_1").await, Some(stored));
}

pub async fn a_new_value_raises_the_version_and_keeps_the_creator(opened: Opened) {
    let rig = Rig::new(opened).await;
    put(&rig, &rig.scope, "a", 1).await;
    let new = NewSecret { by: "bob".into(), sealed: sealed("k2", 2), ..secret("a", 2) };
    let info = rig.store.put_secret(&rig.scope, new, now(9)).await.unwrap();
    assert_eq!((info.version, info.key_id.as_str()), (2, "k2"));
    assert_eq!((info.created_at, info.created_by.as_str()), (at(0), "ann"));
    assert_eq!((info.updated_at, info.updated_by.as_str()), (at(9), "bob"));
    assert_eq!(get(&rig, &rig.scope, "a").await.unwrap().sealed, sealed("k2", 2));
}

pub async fn a_deleted_secret_starts_again_at_version_1(opened: Opened) {
    let rig = Rig::new(opened).await;
    put(&rig, &rig.scope, "a", 1).await;
    put(&rig, &rig.scope, "a", 2).await;
    assert!(rig.store.delete_secret(&rig.scope, "a").await.unwrap());
    assert!(!rig.store.delete_secret(&rig.scope, "a").await.unwrap());
    assert_eq!(get(&rig, &rig.scope, "a").await, None);
    assert_eq!(put(&rig, &rig.scope, "a", 3).await.version, 1);
}

pub async fn secrets_are_listed_by_name_in_pages(opened: Opened) {
    let rig = Rig::new(opened).await;
    // In byte order, capital letters come first, whatever the locale of the database.
    let names = ["A", "Z", "a", "a-b", "a.b", "aB"];
    for name in names.iter().rev() {
        put(&rig, &rig.scope, name, 1).await;
    }
    let (mut seen, mut page) = (Vec::new(), PageRequest::first(4));
    loop {
        let found = rig.store.list_secrets(&rig.scope, page.clone()).await.unwrap();
        assert_eq!((found.total, found.total_is_estimate), (6, false));
        seen.extend(found.items.into_iter().map(|info| info.name));
        let Some(next) = found.next else { break };
        page.after = Some(next);
    }
    assert_eq!(seen, names);
    let by_offset = PageRequest { limit: 9, offset: 5, after: None };
    let found = rig.store.list_secrets(&rig.scope, by_offset).await.unwrap();
    assert_eq!((found.items.len(), found.next), (1, None));
}

pub async fn a_tenant_reaches_its_own_secrets_only(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    put(&rig, &rig.scope, "a", 1).await;
    assert_eq!(get(&rig, &other, "a").await, None);
    assert_eq!(rig.store.get_secret(&other, "a").await.unwrap(), None);
    assert!(!rig.store.delete_secret(&other, "a").await.unwrap());
    let page = rig.store.list_secrets(&other, PageRequest::first(9)).await.unwrap();
    assert_eq!((page.items.len(), page.total), (0, 0));
    assert_eq!(put(&rig, &other, "a", 2).await.version, 1);
    assert_eq!(get(&rig, &rig.scope, "a").await.unwrap().sealed, sealed("k1", 1));
    assert_eq!(get(&rig, &other, "a").await.unwrap().tenant, other.tenant);
}

pub async fn only_names_that_exist_are_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    put(&rig, &rig.scope, "a", 1).await;
    put(&rig, &rig.scope, "c", 3).await;
    let names = ["c", "b", "a"].map(str::to_owned);
    let mut found = rig.store.get_secrets(&rig.scope, &names).await.unwrap();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(rig.store.get_secrets(&rig.scope, &[]).await.unwrap(), []);
}

pub async fn secrets_under_another_key_are_walked_in_batches(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    for (scope, name) in [(&rig.scope, "b"), (&rig.scope, "a"), (&other, "c")] {
        put(&rig, scope, name, 1).await;
    }
    let new = NewSecret { sealed: sealed("k2", 4), ..secret("d", 4) };
    rig.store.put_secret(&rig.scope, new, now(0)).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let reach = SecretReach::AllTenants;
        let found = rig.store.stale_secrets(&rig.scope, reach, "k2", after, 2).await.unwrap();
        let Some(last) = found.last() else { break };
        after = Some((last.tenant, last.name.clone()));
        seen.extend(found.into_iter().map(|one| one.name));
    }
    assert_eq!(seen, ["a", "b", "c"]);
    assert_eq!(stale(&rig, &rig.scope, SecretReach::OwnTenant).await, ["a", "b"]);
    assert_eq!(stale(&rig, &other, SecretReach::OwnTenant).await, ["c"]);
}

fn reseal(scope: &Scope, name: &str, from: u8, to: u8) -> Reseal {
    let sealed = sealed("k2", to);
    Reseal { tenant: scope.tenant, name: name.into(), if_nonce: vec![from; 12], sealed }
}

pub async fn a_value_is_resealed_only_if_it_is_still_the_same(opened: Opened) {
    let rig = Rig::new(opened).await;
    let before = put(&rig, &rig.scope, "same", 1).await;
    put(&rig, &rig.scope, "other", 2).await;
    let all = vec![
        reseal(&rig.scope, "same", 1, 11),
        reseal(&rig.scope, "other", 9, 12),
        reseal(&rig.scope, "gone", 3, 13),
    ];
    let reach = SecretReach::OwnTenant;
    assert_eq!(rig.store.reseal_secrets(&rig.scope, reach, all).await.unwrap(), 1);
    assert_eq!(get(&rig, &rig.scope, "same").await.unwrap().sealed, sealed("k2", 11));
    assert_eq!(get(&rig, &rig.scope, "other").await.unwrap().sealed, sealed("k1", 2));
    assert_eq!(get(&rig, &rig.scope, "gone").await, None);
    let page = rig.store.list_secrets(&rig.scope, PageRequest::first(9)).await.unwrap();
    let after = page.items.into_iter().find(|info| info.name == "same").unwrap();
    assert_eq!(after, SecretInfo { key_id: "k2".into(), ..before });
}

pub async fn secrets_of_other_tenants_are_resealed_only_on_request(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    put(&rig, &other, "a", 1).await;
    let all = vec![reseal(&other, "a", 1, 11)];
    let own = SecretReach::OwnTenant;
    assert_eq!(rig.store.reseal_secrets(&rig.scope, own, all.clone()).await.unwrap(), 0);
    assert_eq!(get(&rig, &other, "a").await.unwrap().sealed, sealed("k1", 1));
    let every = SecretReach::AllTenants;
    assert_eq!(rig.store.reseal_secrets(&rig.scope, every, all).await.unwrap(), 1);
    assert_eq!(get(&rig, &other, "a").await.unwrap().sealed, sealed("k2", 11));
}

pub async fn secrets_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    put(&rig, &rig.scope, "a", 1).await;
    let scope = rig.scope;
    let rig = rig.restart().await;
    assert_eq!(get(&rig, &scope, "a").await.unwrap().sealed, sealed("k1", 1));
}
