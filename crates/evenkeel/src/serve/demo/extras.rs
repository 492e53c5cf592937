//! What belongs to the sample jobs: their targets, crawled pages, pauses and audit entries.

use std::sync::Arc;

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobId, PageId, Span, Timestamp};
use evenkeel_store::{
    AuditEntry, JobCommand, NewTarget, Now, PageQuota, Role, Scope, Store, TargetFields,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::register::Placed;
use super::sample::{DAY, Story, hours};
use super::words::{SHOPS, shop, shop_slug, shop_url};
use crate::Result;
use crate::failure::Because as _;

/// Number of shops whose crawled pages are stored.
const CRAWLED_SHOPS: usize = 12;
/// Products of each of these shops, with their prices in cents.
const PRODUCTS: [(&str, u32); 4] = [
    ("Oak desk", 24_900),
    ("Reading lamp", 3_995),
    ("Trail shoes", 11_950),
    ("Garden hose", 2_499),
];

/// Creates the targets of the crawls. Target numbers count from 1, as the jobs name them.
pub async fn create_targets(store: &Arc<dyn Store>, scope: Scope, now: Timestamp) -> Result {
    let created = Now::At(now.saturating_sub(Span::from_secs(14 * DAY)));
    let mut creating = JoinSet::new();
    for number in 0..SHOPS {
        let fields = TargetFields {
            source_id: Some(shop_slug(number)),
            name: Some(shop(number)),
            url: Some(shop_url(number)),
        };
        let target = NewTarget { number: Some(number as i64 + 1), fields };
        let store = Arc::clone(store);
        // An existing target with this number stays as it is.
        creating.spawn(async move { store.create_target(&scope, target, created).await });
    }
    for created in creating.join_all().await {
        created.because("the sample targets can't be created")?;
    }
    Ok(())
}

/// Pauses the jobs that have been paused for some time. Returns their ids.
pub async fn pause(
    store: &dyn Store,
    scope: &Scope,
    jobs: &[(JobId, Story)],
    now: Timestamp,
) -> Result<Vec<JobId>> {
    let mut paused = Vec::new();
    for (id, story) in jobs {
        if let Story::PausedFor(span) = story {
            let at = Now::At(now.saturating_sub(*span));
            let applied = store.apply_commands(scope, vec![JobCommand::pause(*id)], at).await;
            applied.because("the sample jobs can't be paused")?;
            paused.push(*id);
        }
    }
    Ok(paused)
}

/// Records in the audit log that the demo has created and paused jobs.
pub async fn record(
    store: &dyn Store,
    scope: &Scope,
    paused: &[JobId],
    jobs: usize,
    now: Timestamp,
) -> Result {
    let entry = |action: &str, target: Option<String>, detail: Option<String>| AuditEntry {
        at: now,
        tenant: Some(scope.tenant),
        subject: "serve --demo".into(),
        role: Some(Role::Admin),
        action: action.into(),
        target,
        status: 200,
        denied: false,
        detail,
        remote: None,
        request_id: "demo".into(),
    };
    let created = entry("create_jobs", None, Some(format!("{jobs} sample jobs with their past")));
    let pauses = paused.iter().map(|id| entry("pause_job", Some(id.to_string()), None));
    let entries = std::iter::once(created).chain(pauses).collect();
    store.record_audit(entries).await.because("the audit log can't be written")
}

/// Stores the pages that the last crawls have read.
pub async fn save_pages(
    store: &dyn Store,
    scope: &Scope,
    placed: &[Placed],
    now: Timestamp,
) -> Result {
    for number in 0..CRAWLED_SHOPS {
        let name = format!("crawl-range-{}", shop_slug(number));
        let Some(job) = placed.iter().find(|job| job.name == name) else { continue };
        let (tenant, job) = (scope.tenant, job.no);
        let quota = PageQuota { tenant, job, bytes_max: 100_000_000 };
        let mut pages = vec![start_page(number)];
        pages.extend(PRODUCTS.iter().map(|product| product_page(number, *product)));
        for page in &mut pages {
            page.id = PageId::of(job, &page.url);
        }
        let seen = Now::At(now.saturating_sub(hours(1 + number as u64)));
        store.save_pages(quota, pages, seen).await.because("the sample pages can't be stored")?;
    }
    Ok(())
}

fn start_page(number: usize) -> PageContent {
    let shop = shop(number);
    let links: Vec<String> = PRODUCTS.iter().map(|(product, _)| address(number, product)).collect();
    let text =
        format!("Welcome to {shop}. Free delivery from 50 €. New this week: {}.", PRODUCTS[0].0);
    let title = format!("{shop} – everything for your home");
    PageContent { links, ..page(shop_url(number), 0, title, text, Value::Null) }
}

fn product_page(number: usize, (product, cents): (&str, u32)) -> PageContent {
    // Each shop has prices of its own.
    let cents = cents + 100 * (number as u32 * 7 % 23);
    let price = format!("{}.{:02} €", cents / 100, cents % 100);
    let shop = shop(number);
    let text = format!("{product}. {price}, in stock, delivered in two days. Sold by {shop}.");
    let fields = json!({"price": price, "in_stock": true});
    page(address(number, product), 1, format!("{product} – {shop}"), text, fields)
}

fn address(number: usize, product: &str) -> String {
    format!("{}{}", shop_url(number), product.to_lowercase().replace(' ', "-"))
}

fn page(url: String, depth: u16, title: String, text: String, fields: Value) -> PageContent {
    PageContent {
        // The caller sets the id, which depends on the job.
        id: PageId(uuid::Uuid::nil()),
        url,
        status: 200,
        content_type: "text/html".into(),
        etag: None,
        last_modified: None,
        content_hash: Sha256::digest(format!("{title}\n{text}")).into(),
        depth,
        title: Some(title),
        text,
        links: Vec::new(),
        metadata: json!({"lang": "en"}),
        fields,
    }
}
