use serde_json::json;

use super::*;

fn read(config: Value) -> Result<CrawlConfig, ConfigFault> {
    CrawlConfig::read(&config, &CrawlerSettings::default())
}

#[test]
fn url_alone_is_a_valid_configuration() {
    let config = read(json!({"url": "https://Example.com"})).unwrap();
    assert_eq!(config.starts[0].as_str(), "https://example.com/");
    assert_eq!((config.depth, config.pages_max, config.connections), (2, 100, 2));
    assert_eq!(config.delay, Duration::from_millis(250));
    assert!(config.obey_robots && config.sitemaps && !config.ndjson);
}

#[test]
fn bad_fields_are_refused_by_name() {
    let url = "http://a/";
    for (config, field) in [
        (json!(null), ""),
        (json!([]), ""),
        (json!({}), "url"),
        (json!({"url": 1}), "url"),
        (json!({"url": "nonsense"}), "url"),
        (json!({"url": "ftp://a/"}), "url"),
        (json!({"start_urls": "http://a/"}), "start_urls"),
        (json!({"start_urls": [url, "x"]}), "start_urls.1"),
        (json!({"start_urls": [url, 7]}), "start_urls.1"),
        (json!({"url": url, "scope": "world"}), "scope"),
        (json!({"url": url, "depth": -1}), "depth"),
        (json!({"url": url, "depth": 101}), "depth"),
        (json!({"url": url, "max_pages": 0}), "max_pages"),
        (json!({"url": url, "max_pages": 50_001}), "max_pages"),
        (json!({"url": url, "max_pages": 1.5}), "max_pages"),
        (json!({"url": url, "include": ["a", ""]}), "include.1"),
        (json!({"url": url, "exclude": ["x".repeat(501)]}), "exclude.0"),
        (json!({"url": url, "user_agent": "a\nb"}), "user_agent"),
        (json!({"url": url, "user_agent": " "}), "user_agent"),
        (json!({"url": url, "obey_robots": false}), "obey_robots"),
        (json!({"url": url, "obey_robots": "no"}), "obey_robots"),
        (json!({"url": url, "delay_ms": 60_001}), "delay_ms"),
        (json!({"url": url, "connections": 3}), "connections"),
        (json!({"url": url, "sitemaps": 1}), "sitemaps"),
        (json!({"url": url, "max_page_bytes": 1}), "max_page_bytes"),
        (json!({"url": url, "page_timeout_ms": 1}), "page_timeout_ms"),
        (json!({"url": url, "max_store_mb": 0}), "max_store_mb"),
        (json!({"url": url, "fields": []}), "fields"),
        (json!({"url": url, "fields": {"": "p"}}), "fields"),
        (json!({"url": url, "fields": {"x": "p["}}), "fields.x"),
        (json!({"url": url, "fields": {"x": "div:has(a)"}}), "fields.x"),
        (json!({"url": url, "fields": {"x": "p:not(:h\\61s(a))"}}), "fields.x"),
        (json!({"url": url, "fields": {"x": {}}}), "fields.x.selector"),
        (json!({"url": url, "fields": {"x": {"selector": "p", "al": 1}}}), "fields.x.al"),
        (json!({"url": url, "fields": {"x": {"selector": "p", "all": 1}}}), "fields.x.all"),
        (json!({"url": url, "ndjson": true}), "ndjson"),
        (json!({"url": url, "dept": 1}), "dept"),
    ] {
        let fault = read(config.clone()).unwrap_err();
        let path = fault.field.strip_prefix("executor_config").unwrap();
        assert_eq!(path.trim_start_matches('.'), field, "{config}");
    }
}

#[test]
fn server_settings_limit_what_jobs_may_set() {
    let settings = CrawlerSettings {
        may_ignore_robots: true,
        delay_min: Duration::from_secs(1),
        export_dir: Some("/tmp".into()),
        ..CrawlerSettings::default()
    };
    let config = json!({"url": "http://a/", "obey_robots": false, "ndjson": true, "delay_ms": 0});
    let config = CrawlConfig::read(&config, &settings).unwrap();
    assert!(!config.obey_robots && config.ndjson);
    assert_eq!(config.delay, Duration::from_secs(1));
}
