//! Jobs that each show one thing: a failure, a late run, a pause, progress, a limit.

use evenkeel_core::Timestamp;
use serde_json::{Value, json};

use super::sample::{Phase, Sample, Story, cron, every, hours};

pub fn all(now: Timestamp) -> Vec<Sample> {
    [failing(), late(), running(), held(), calendar(now)].concat()
}

fn job(name: &str, about: &str, schedule: Value, sleep: (u64, u64)) -> Sample {
    Sample::new(name.into(), about, schedule, sleep)
}

fn failing() -> Vec<Sample> {
    let retries = |sample: Sample, number: u64, seconds: u64| {
        sample
            .with("max_retries", number)
            .with("retry_backoff", "fixed")
            .with("retry_backoff_seconds", seconds)
            .with("retry_jitter", "none")
    };
    let about = "Copies the prices of a supplier. Its server has not answered for hours";
    let supplier = job("sync-prices-lieferant-nord", about, every("1h"), (30_000, 0))
        .config("fail", "sftp.lieferant-nord.example: connection timed out after 30 s")
        .team("pricing")
        .story(Story::BrokenFor(hours(5)));
    let about = "Forecasts the cash of the next 13 weeks. A column of its table was renamed today";
    let report = job("report-cash-flow", about, every("24h"), (9_000, 3_000))
        .at(Phase::FromStart(-3 * 3600))
        .config("fail", "ERROR: column \"vat_rate\" of relation \"invoice_line\" does not exist")
        .with("pool", "reports")
        .team("finance")
        .story(Story::BrokenFor(hours(4)));
    let about = "Reads exchange rates from a service that often refuses; a retry usually succeeds";
    let rates = job("import-exchange-rates", about, every("15m"), (300, 900))
        .at(Phase::Clock(7 * 60))
        .config("fail", "HTTP 503 from rates.example: too many requests")
        .config("fail_rate", 0.3)
        .team("finance");
    let about = "Sends orders to a marketplace. Orders that it refuses twice become dead letters";
    let orders = job("push-marketplace-orders", about, every("30m"), (800, 1_500))
        .at(Phase::Clock(12 * 60))
        .config("fail", "HTTP 422 from marketplace.example: order 48213 has no VAT id")
        .config("fail_rate", 0.35)
        .with("on_failure", json!({"action": "dead_letter"}))
        .team("payments");
    let about = "Copies contacts from the CRM. It pauses itself after three failures";
    let note = "The CRM's token has expired. Ask the sales team for a new one.";
    let contacts = job("sync-crm-contacts", about, every("2h"), (700, 300))
        .at(Phase::Clock(20 * 60))
        .config("fail", "HTTP 401 from crm.example: the token has expired")
        .with("on_failure", json!({"action": "pause", "after": 3, "note": note}))
        .team("sales")
        .story(Story::BrokenFor(hours(6)));
    vec![
        retries(supplier, 1, 60),
        retries(report, 2, 300),
        retries(rates, 3, 20),
        retries(orders, 1, 60),
        retries(contacts, 0, 60),
    ]
}

/// Jobs of a pool that no worker serves.
fn late() -> Vec<Sample> {
    let about = "Trains the product recommendations. The GPU machines were switched off today";
    let train = job("train-recommendations", about, every("2h"), (400_000, 90_000));
    let about = "Writes captions for new product images on the GPU machines";
    let captions = job("caption-product-images", about, every("3h"), (90_000, 60_000));
    let on_gpus = |sample: Sample, minute: u64| {
        sample
            .at(Phase::Clock(minute * 60))
            .with("pool", "gpu")
            .with("timeout_sec", 3600)
            .team("machine-learning")
            .story(Story::WithoutWorkerFor(hours(8)))
    };
    vec![on_gpus(train, 40), on_gpus(captions, 50)]
}

/// Jobs that run when the server starts.
fn running() -> Vec<Sample> {
    let long = |name: &str, about: &str, schedule: Value, minutes: u64, steps: u64| {
        // About this number of minutes.
        job(name, about, schedule, (minutes * 50_000, minutes * 20_000))
            .config("steps", steps)
            .with("timeout_sec", 3600)
            .team("search")
    };
    let about = "Rebuilds the product search from all catalogs";
    let search = long("rebuild-product-search", about, every("6h"), 25, 500);
    let about = "Converts product videos for phones";
    let videos = long("transcode-product-videos", about, every("3h"), 12, 360);
    let about = "Forecasts the demand of each shop. It needs longer than it may";
    let tight = json!({"kind": "interval", "every": "1h", "tolerance": "8m"});
    let forecast = long("forecast-demand", about, tight, 11, 220);
    let about = "Copies product images to the CDN. A run takes longer than the interval, so some \
                 times are skipped";
    let often = json!({"kind": "interval", "every": "10m", "tolerance": "30m"});
    let images = long("mirror-product-images", about, often, 14, 84);
    let geocoder = |name: &str, about: &str| {
        long(name, about, every("4h"), 20, 100)
            .with("concurrency_key", "geocoder.example")
            .with("concurrency_limit", 1)
    };
    let addresses = geocoder("geocode-addresses", "Finds the coordinates of new addresses");
    // Too new for a past run, which would have waited for the runs of the other job.
    let suppliers = geocoder("geocode-suppliers", "Finds the coordinates of suppliers");
    let suppliers = Sample { age: hours(3), ..suppliers };
    let all = [search, videos, forecast, images, addresses, suppliers].into_iter().enumerate();
    all.map(|(number, sample)| sample.at(Phase::FromStart(number as i64 / 2 + 1))).collect()
}

fn held() -> Vec<Sample> {
    let about = "Imports the catalog of the old shop, which is being replaced";
    let legacy = job("import-legacy-catalog", about, every("6h"), (20_000, 9_000))
        .team("catalog")
        .story(Story::PausedFor(hours(50)));
    let about = "Counts the shelves of the warehouses after they have closed";
    let shelves = job("recount-shelves", about, cron("0 21 * * *"), (25_000, 9_000))
        .with("timezone", "Europe/Berlin")
        .with("blackout_periods", json!([{"start": "07:00", "end": "20:00"}]))
        .with("lane", "batch")
        .team("logistics");
    vec![legacy, shelves]
}

fn calendar(now: Timestamp) -> Vec<Sample> {
    let about = "Closes the ledger of the day. Clock changes move or repeat its time";
    let ledger = job("close-ledger", about, cron("30 2 * * *"), (12_000, 6_000))
        .with("timezone", "Europe/Berlin")
        .with("lane", "critical")
        .team("finance");
    let about = "Renders the home page often enough that it is never older than two hours";
    let fresh = json!({"kind": "periodic", "period": "2h", "cooldown": "40m"});
    let home = job("render-home-page", about, fresh, (20_000, 20_000)).team("catalog").aged(2);
    let about = "Moves old orders to the archive, once";
    let at = now.saturating_add(hours(30)).to_string();
    let once = json!({"kind": "once", "at": at, "tolerance": "1h"});
    let archive = job("archive-old-orders", about, once, (60_000, 0)).team("operations").aged(1);
    vec![ledger, home, archive]
}
