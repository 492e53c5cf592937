//! Names from which the names of sample jobs are built.

pub const REGIONS: [&str; 12] = [
    "Alpen", "Baltic", "Donau", "Elbe", "Fjord", "Hansa", "Isar", "Jura", "Lagune", "Nordlicht",
    "Rhein", "Tatra",
];
pub const TRADES: [&str; 5] = ["Books", "Furniture", "Garden", "Sport", "Technik"];

/// Number of shops whose prices are crawled.
pub const SHOPS: usize = REGIONS.len() * TRADES.len();

/// Returns the name of a shop, such as `Alpen Books`.
pub fn shop(number: usize) -> String {
    format!("{} {}", REGIONS[number / TRADES.len()], TRADES[number % TRADES.len()])
}

/// Returns the name of a shop as a part of the name of a host or a job, such as `alpen-books`.
pub fn shop_slug(number: usize) -> String {
    shop(number).to_lowercase().replace(' ', "-")
}

/// Returns the address of a shop. Names under `.example` are reserved, so no real shop has them.
pub fn shop_url(number: usize) -> String {
    format!("https://{}.example/", shop_slug(number))
}

/// Cities with a shop or a warehouse of the company.
pub const CITIES: [&str; 60] = [
    "amsterdam", "antwerp", "athens", "barcelona", "belgrade", "berlin", "bologna", "bordeaux",
    "bratislava", "bremen", "brno", "brussels", "bucharest", "budapest", "cologne", "copenhagen",
    "cracow", "dublin", "frankfurt", "gdansk", "geneva", "ghent", "gothenburg", "hamburg",
    "helsinki", "istanbul", "leipzig", "lille", "lisbon", "ljubljana", "london", "lyon", "madrid",
    "malmo", "marseille", "milan", "munich", "nantes", "naples", "nuremberg", "oslo", "palermo",
    "paris", "porto", "poznan", "prague", "riga", "rome", "rotterdam", "seville", "sofia",
    "stockholm", "stuttgart", "tallinn", "turin", "valencia", "vienna", "vilnius", "warsaw",
    "zagreb",
];

pub const BRANDS: [&str; 30] = [
    "acorn", "birch", "cedar", "clover", "comet", "coral", "delta", "ember", "falcon", "fern",
    "granite", "harbor", "indigo", "juniper", "kestrel", "lotus", "maple", "meadow", "nimbus",
    "onyx", "opal", "pebble", "quartz", "raven", "sable", "summit", "tulip", "umber", "willow",
    "zephyr",
];

pub const DATABASES: [&str; 10] = [
    "accounts", "billing", "catalog", "customers", "inventory", "ledger", "orders", "pricing",
    "shipping", "support",
];
pub const DATA_CENTERS: [&str; 3] = ["eu", "us", "asia"];

pub const LANGUAGES: [&str; 24] = [
    "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hr", "hu", "it", "lt", "lv", "nl",
    "no", "pl", "pt", "ro", "sk", "sl", "sv", "tr",
];

/// Services, and how often they are checked.
pub const SERVICES: [(&str, &str); 8] = [
    ("checkout", "5m"),
    ("payment-gateway", "15m"),
    ("login", "15m"),
    ("mail-relay", "30m"),
    ("image-cdn", "30m"),
    ("search", "1h"),
    ("tax-service", "1h"),
    ("parcel-tracking", "1h"),
];

/// Offices with their time zones.
pub const OFFICES: [(&str, &str); 10] = [
    ("berlin", "Europe/Berlin"),
    ("london", "Europe/London"),
    ("new-york", "America/New_York"),
    ("los-angeles", "America/Los_Angeles"),
    ("sao-paulo", "America/Sao_Paulo"),
    ("tokyo", "Asia/Tokyo"),
    ("bangalore", "Asia/Kolkata"),
    ("singapore", "Asia/Singapore"),
    ("sydney", "Australia/Sydney"),
    ("johannesburg", "Africa/Johannesburg"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn shops_have_different_names() {
        let slugs: BTreeSet<String> = (0..SHOPS).map(shop_slug).collect();
        assert_eq!((slugs.len(), SHOPS), (60, 60));
        assert_eq!(shop_url(1), "https://alpen-furniture.example/");
    }
}
