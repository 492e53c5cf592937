//! The many ordinary jobs of a retailer. Most of them run at the full hour, or at night between 02:00
//! and 04:00, as jobs do whose times people have chosen, so that a rebalance has something to move.

use serde_json::json;

use super::sample::{Phase, Sample, cron, every};
use super::words::{
    BRANDS, CITIES, DATA_CENTERS, DATABASES, LANGUAGES, OFFICES, SERVICES, SHOPS, shop, shop_slug,
    shop_url,
};

const fn hour(hour: u64) -> Phase {
    Phase::Clock(hour * 3600)
}

const HALF_PAST: Phase = Phase::Clock(1800);
const HALF_PAST_TWO: Phase = Phase::Clock(2 * 3600 + 1800);

pub fn all() -> Vec<Sample> {
    [crawls(), hourly(), nightly(), reports(), local_times(), several_times_a_day()].concat()
}

/// Crawls of competitors, each of which is a target of two jobs.
fn crawls() -> Vec<Sample> {
    let crawl = |number: usize, what: &str, about: &str, sleep| {
        Sample::new(format!("crawl-{what}-{}", shop_slug(number)), about, every("24h"), sleep)
            .with("url", shop_url(number))
            .with("source_name", shop(number))
            .with("target", number + 1)
            .with("pool", "crawl")
            .with("lane", "batch")
            .with("timeout_sec", 900)
            .config("steps", 20)
            .team("market-data")
    };
    let prices = (0..SHOPS).map(|number| {
        crawl(number, "prices", "Reads the prices of a competitor", (15_000, 30_000))
            .at(if number < 45 { hour(2) } else { hour(4) })
            .aged(if number < 30 { 6 } else { 5 })
    });
    let ranges = (0..35).map(|number| {
        crawl(number, "range", "Reads which products a competitor sells", (10_000, 20_000))
            .at(if number % 2 == 0 { HALF_PAST_TWO } else { hour(3) })
            .aged(3)
    });
    prices.chain(ranges).collect()
}

fn hourly() -> Vec<Sample> {
    let stock = CITIES.iter().enumerate().map(|(number, city)| {
        let about = "Copies the stock of a warehouse to the shop";
        Sample::new(format!("sync-stock-{city}"), about, every("1h"), (400, 2_000))
            .team("logistics")
            .aged([13, 6, 4][number / 20])
    });
    let prices = CITIES.iter().take(40).enumerate().map(|(number, city)| {
        let about = "Sends new prices to the tills of a shop";
        Sample::new(format!("push-prices-{city}"), about, every("1h"), (200, 900))
            .at(HALF_PAST)
            .team("pricing")
            .aged(if number < 20 { 11 } else { 5 })
    });
    let orders = CITIES.iter().skip(45).map(|city| {
        let about = "Copies the orders of a shop to the warehouse";
        Sample::new(format!("sync-orders-{city}"), about, every("1h"), (600, 2_500))
            .at(HALF_PAST)
            .with("lane", "critical")
            .team("logistics")
            .aged(3)
    });
    let feeds = BRANDS.iter().take(25).map(|brand| {
        let about = "Imports the product feed of a brand";
        Sample::new(format!("import-feed-{brand}"), about, every("1h"), (1_500, 6_000))
            .team("catalog")
            .with("priority", 20)
            .aged(2)
    });
    stock.chain(prices).chain(orders).chain(feeds).collect()
}

fn nightly() -> Vec<Sample> {
    let databases = || {
        let pairs = DATABASES.iter().map(|database| DATA_CENTERS.map(|center| (database, center)));
        pairs.flatten()
    };
    let backups = databases().map(|(database, center)| {
        let about = "Backs up a database and checks that the backup can be read";
        Sample::new(format!("backup-{database}-{center}"), about, every("24h"), (30_000, 60_000))
            .at(hour(3))
            .with("lane", "batch")
            .with("timeout_sec", 900)
            .team("operations")
            .aged(12)
    });
    let vacuums = databases().take(20).map(|(database, center)| {
        let about = "Frees the space of deleted rows";
        // Whole weeks since 1970 begin on Thursdays.
        let sunday_night = Phase::Clock(3 * 86_400 + 3 * 3600);
        Sample::new(format!("vacuum-{database}-{center}"), about, every("168h"), (15_000, 60_000))
            .at(sunday_night)
            .with("lane", "batch")
            .team("operations")
            .aged(10)
    });
    let invoices = CITIES.iter().skip(10).take(30).map(|city| {
        let about = "Exports the invoices of a shop to the accountants";
        Sample::new(format!("export-invoices-{city}"), about, every("24h"), (3_000, 9_000))
            .at(hour(4))
            .team("finance")
            .aged(4)
    });
    let tills = CITIES.iter().step_by(3).map(|city| {
        let about = "Closes the tills of a shop and books the takings";
        Sample::new(format!("close-tills-{city}"), about, every("24h"), (2_000, 5_000))
            .at(hour(22))
            .with("lane", "critical")
            .team("finance")
            .aged(2)
    });
    backups.chain(vacuums).chain(invoices).chain(tills).collect()
}

fn reports() -> Vec<Sample> {
    let sales = CITIES.iter().take(40).map(|city| {
        let about = "Sums up the sales of a shop and mails them to its manager";
        Sample::new(format!("report-sales-{city}"), about, every("24h"), (4_000, 12_000))
            .at(hour(6))
            .with("pool", "reports")
            .team("finance")
            .aged(6)
    });
    sales.collect()
}

/// Jobs at local times of offices around the world, which a rebalance may not move.
fn local_times() -> Vec<Sample> {
    const MAILS: [(&str, &str, &str); 3] = [
        ("morning-briefing", "0 8 * * 1-5", "Mails the figures of yesterday to an office"),
        ("stock-warning", "30 17 * * *", "Mails which products run out this week"),
        ("month-end-close", "0 5 1 * *", "Closes the books of the last month"),
    ];
    let mail = |(name, expression, about): &(&str, &str, &str), (office, zone): &(&str, &str)| {
        Sample::new(format!("{name}-{office}"), about, cron(expression), (2_000, 4_000))
            .with("timezone", *zone)
            .with("pool", "reports")
            .team("office")
    };
    MAILS.iter().flat_map(|what| OFFICES.iter().map(move |office| mail(what, office))).collect()
}

fn several_times_a_day() -> Vec<Sample> {
    let checks = SERVICES.iter().map(|(service, length)| {
        let about = "Calls a service as a customer would";
        Sample::new(format!("check-{service}"), about, every(length), (80, 300))
            .with("lane", "critical")
            .with("priority", 80)
            .with("max_retries", 0)
            .team("operations")
    });
    let fraud = CITIES.iter().step_by(3).map(|city| {
        let about = "Scores new orders for fraud";
        Sample::new(format!("score-fraud-{city}"), about, every("4h"), (5_000, 9_000))
            .at(hour(2))
            .with("lane", "critical")
            .team("payments")
            .aged(3)
    });
    let indexes = LANGUAGES.iter().map(|language| {
        let about = "Rebuilds the search index of a language";
        Sample::new(format!("refresh-search-{language}"), about, every("6h"), (8_000, 20_000))
            .at(hour(3))
            .team("search")
            .aged(5)
    });
    let payments = CITIES.iter().skip(20).take(25).map(|city| {
        let about = "Compares the payments of a shop with the bank's statement";
        Sample::new(format!("reconcile-payments-{city}"), about, every("12h"), (6_000, 9_000))
            .at(hour(3))
            .aged(4)
            .with("metadata", json!({"demo": true, "team": "payments", "audited": true}))
    });
    checks.chain(fraud).chain(indexes).chain(payments).collect()
}
