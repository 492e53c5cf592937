//! What holds for any document.

use proptest::prelude::*;

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec![
            "interval",
            "once",
            "cron",
            "periodic",
            "@every 5m",
            "R/",
            "R3/P1D",
            "PT",
            "P1M",
            "batch",
            "noop",
            "0 9 * * *",
            "H * * * *",
            "2026-01-01T00:00:00Z",
            "09:00",
            "24h",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_field(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_field() -> impl Strategy<Value = String> {
    let known = vec![
        "name",
        "schedule",
        "interval_minutes",
        "interval_type",
        "schedule_enabled",
        "timezone",
        "executor_type",
        "executor_config",
        "payload",
        "metadata",
        "kind",
        "cron_schedule",
        "cron_max_schedule_duration",
        "scheduling_period",
        "cooldown_duration",
        "schedule_time",
        "cron_expression",
        "tz",
        "dst_gap",
        "start_at",
        "end_at",
        "max_runs",
        "exact",
        "blackout_periods",
        "dont_run_on_nodes",
        "expression",
        "period",
        "start",
        "every",
        "at",
        "url",
        "max_retries",
        "retry_backoff_seconds",
        "priority",
        "misfire_after",
        "pool",
        "id",
    ];
    prop_oneof![4 => prop::sample::select(known).prop_map(String::from), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn no_document_breaks_the_reader(
        fields in prop::collection::vec((any_field(), any_json()), 0..8),
    ) {
        let document = Value::Object(fields.into_iter().collect());
        match read(&document) {
            Ok(spec) => {
                // What was read can be stored and read back.
                let stored = serde_json::to_string(&spec.definition).unwrap();
                let again: Definition = serde_json::from_str(&stored).unwrap();
                prop_assert_eq!(serde_json::to_string(&again).unwrap(), stored);
            }
            Err(faults) => prop_assert!(
                !faults.is_empty() && faults.iter().all(|fault| !fault.message.is_empty())
            ),
        }
    }

    #[test]
    fn no_document_breaks_the_preview(
        fields in prop::collection::vec((any_field(), any_json()), 0..6),
        zone in prop::option::of(prop::sample::select(vec!["Europe/Berlin", "Pacific/Apia"])),
    ) {
        let mut fields: serde_json::Map<String, Value> = fields.into_iter().collect();
        fields.extend(zone.map(|zone| ("timezone".to_owned(), zone.into())));
        let now = "2026-03-28T12:00:00Z".parse().unwrap();
        if let Ok(seen) = crate::preview(&Value::Object(fields), now, 10) {
            prop_assert!(seen.times.iter().all(|time| time.utc >= now));
            prop_assert!(seen.description.ends_with('.'));
        }
    }

    #[test]
    fn no_text_breaks_the_schedule_reader(
        text in "\\PC{0,12}|(@every |@|R/|R5/|P|PT)?[-0-9a-zA-Z/:*,#? .]{0,30}",
    ) {
        if let Err(misread) = read_schedule(&text) {
            prop_assert!(!misread.message.is_empty());
            prop_assert!(misread.position <= text.chars().count(), "{misread:?}");
            let fault = misread.of("schedule", &text);
            prop_assert!(fault.position.is_some() && fault.message.len() < 2000);
        }
    }

    #[test]
    fn an_interval_is_the_same_in_minutes_and_in_words(minutes in 1_u64..10_000_000) {
        let short = read(&noop(json!({"interval_minutes": minutes})));
        let long = read(&noop(json!({"schedule": format!("@every {minutes}m")})));
        prop_assert_eq!(short.unwrap(), long.unwrap());
    }

    #[test]
    fn a_number_is_taken_exactly_within_its_range(number in any::<i64>(), small in -5_i64..1100) {
        for number in [number, small] {
            let taken = read(&noop(json!({"max_retries": number}))).is_ok();
            prop_assert_eq!(taken, (0..=1000).contains(&number));
        }
    }
}
