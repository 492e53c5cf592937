//! Deduplication keys of jobs.

use evenkeel_core::dedup::{Dedup, DedupScope};

use super::*;

fn dedup(more: Value) -> Option<Dedup> {
    read(&noop(more)).unwrap().about.dedup
}

fn by_target(key: &str) -> Option<Dedup> {
    Some(Dedup { key: key.into(), by_target: true, scope: DedupScope::Pending })
}

#[test]
fn jobs_have_no_key_by_default() {
    assert_eq!(dedup(json!({})), None);
    assert_eq!(dedup(json!({"unique": false})), None);
}

#[test]
fn default_key_is_target_source_or_url() {
    let about = json!({"unique": true, "target": 7, "source_id": "news", "url": "https://a/"});
    assert_eq!(dedup(about), by_target("target:7"));
    let about = json!({"unique": true, "source_id": "news", "url": "https://a/"});
    assert_eq!(dedup(about), by_target("news"));
    let call = json!({"executor_type": "http", "executor_config": {"url": "https://b/"},
                      "unique": true});
    assert_eq!(read(&call).unwrap().about.dedup, by_target("https://b/"));
    let message = message(&noop(json!({"unique": true})));
    assert!(message.contains("dedup_key") && message.contains("source_id"), "{message}");
}

#[test]
fn chosen_keys_and_scopes_are_read() {
    let chosen = |scope| Some(Dedup { key: "k".into(), by_target: false, scope });
    assert_eq!(dedup(json!({"dedup_key": "k"})), chosen(DedupScope::Pending));
    assert_eq!(dedup(json!({"dedup_key": "k", "unique": true})), chosen(DedupScope::Pending));
    let running = json!({"dedup_key": "k", "dedup_scope": "pending_or_running"});
    assert_eq!(dedup(running), chosen(DedupScope::PendingOrRunning));
    let window = json!({"dedup_key": "k", "dedup_scope": "window", "dedup_window_seconds": 60});
    assert_eq!(dedup(window), chosen(DedupScope::Window(Span::from_secs(60))));
}

#[test]
fn contradictory_key_fields_are_refused() {
    for (more, field) in [
        (json!({"unique": false, "dedup_key": "k"}), "unique"),
        (json!({"unique": true}), "unique"),
        (json!({"dedup_key": ""}), "dedup_key"),
        (json!({"dedup_key": "k".repeat(256)}), "dedup_key"),
        (json!({"dedup_scope": "pending"}), "dedup_scope"),
        (json!({"dedup_key": "k", "dedup_scope": "often"}), "dedup_scope"),
        (json!({"dedup_key": "k", "dedup_scope": "window"}), "dedup_window_seconds"),
        (json!({"dedup_key": "k", "dedup_window_seconds": 5}), "dedup_window_seconds"),
        (
            json!({"dedup_key": "k", "dedup_scope": "window", "dedup_window_seconds": 31_536_001}),
            "dedup_window_seconds",
        ),
    ] {
        assert_eq!(faulty_fields(&noop(more.clone())), [field], "{more}");
    }
}

#[test]
fn document_of_a_job_keeps_its_key() {
    for more in [
        json!({"unique": true, "source_id": "news"}),
        json!({"dedup_key": "k", "dedup_scope": "window", "dedup_window_seconds": 60}),
    ] {
        let spec = read(&noop(more)).unwrap();
        let document = crate::document_of(&spec.about, &spec.definition, Executors.catalog());
        assert_eq!(read(&Value::Object(document)).unwrap().about, spec.about);
    }
}
