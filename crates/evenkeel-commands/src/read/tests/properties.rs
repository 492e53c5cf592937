//! Property tests of the parser with random job documents.

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
            "interval", "once", "cron", "periodic", "@every 5m", "R/", "R3/P1D", "PT", "P1M",
            "batch", "noop", "0 9 * * *", "H * * * *", "2026-01-01T00:00:00Z", "09:00", "24h",
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
    // Most names are those of job fields, schedule fields and fields of local hours.
    let mut known = job_field_names();
    known.extend(["kind", "expression", "period", "every", "at", "start", "end", "id"]);
    prop_oneof![4 => prop::sample::select(known).prop_map(String::from), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn reader_accepts_or_refuses_every_document(
        fields in prop::collection::vec((any_field(), any_json()), 0..8),
    ) {
        let document = Value::Object(fields.into_iter().collect());
        match read(&document) {
            Ok(spec) => {
                // A parsed job can be stored and read again.
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
    fn preview_accepts_or_refuses_every_document(
        fields in prop::collection::vec((any_field(), any_json()), 0..6),
        zone in prop::option::of(prop::sample::select(vec!["Europe/Berlin", "Pacific/Apia"])),
    ) {
        let mut fields: Map<String, Value> = fields.into_iter().collect();
        fields.extend(zone.map(|zone| ("timezone".to_owned(), zone.into())));
        let now = "2026-03-28T12:00:00Z".parse().unwrap();
        if let Ok(previewed) = crate::preview(&Value::Object(fields), now, 10) {
            prop_assert!(previewed.times.iter().all(|time| time.utc >= now));
            prop_assert!(previewed.description.ends_with('.'));
        }
    }

    #[test]
    fn schedule_parser_accepts_or_refuses_every_text(
        text in "\\PC{0,12}|(@every |@|R/|R5/|P|PT)?[-0-9a-zA-Z/:*,#? .]{0,30}",
    ) {
        if let Err(error) = read_schedule(&text) {
            prop_assert!(!error.message.is_empty());
            prop_assert!(error.position <= text.chars().count(), "{error:?}");
            let fault = error.of("schedule", &text);
            prop_assert!(fault.position.is_some() && fault.message.len() < 2000);
        }
    }

    #[test]
    fn intervals_in_minutes_and_text_are_equal(minutes in 1_u64..10_000_000) {
        let short = read(&noop(json!({"interval_minutes": minutes})));
        let long = read(&noop(json!({"schedule": format!("@every {minutes}m")})));
        prop_assert_eq!(short.unwrap(), long.unwrap());
    }

    #[test]
    fn numbers_are_accepted_exactly_within_their_range(number in any::<i64>(), small in -5_i64..1100) {
        for number in [number, small] {
            let taken = read(&noop(json!({"max_retries": number}))).is_ok();
            prop_assert_eq!(taken, (0..=1000).contains(&number));
        }
    }

    #[test]
    fn document_of_a_stored_job_reads_as_the_same_job(
        fields in prop::collection::vec(valid_field(), 0..10), seed in any::<[u8; 10]>(),
    ) {
        let now = "2026-03-28T12:00:00Z".parse().unwrap();
        let document = noop(Value::Object(fields.into_iter().collect()));
        if let Ok(spec) = read(&document)
            && let Ok(job) = prepare_job(spec, evenkeel_core::JobId::new(now, seed), now)
        {
            let written = Value::Object(crate::document_of(&job.about, &job.definition, Executors.catalog()));
            let spec = read(&written).unwrap();
            // Parsing the document of a job at a later time gives the same job.
            let later = now.saturating_add(Span::from_secs(7));
            let again = prepare_job(spec, job.id, later).unwrap();
            prop_assert_eq!((&again.about, &again.definition), (&job.about, &job.definition));
            let twice = crate::document_of(&again.about, &again.definition, Executors.catalog());
            prop_assert_eq!(Value::Object(twice), written);
        }
    }
}

fn prepare_job(
    spec: JobSpec,
    id: evenkeel_core::JobId,
    now: evenkeel_core::Timestamp,
) -> Result<evenkeel_store::NewJob, crate::CommandError> {
    crate::jobs::prepare_job(spec, id, now, |job, after| job.timetable().first_after(after))
}

/// Returns a random job field with a valid value.
fn valid_field() -> impl Strategy<Value = (String, Value)> {
    let mut fields = job_fields::samples();
    fields.extend([
        ("schedule", json!("@every 90s")),
        ("schedule", json!("P1M")),
        ("schedule", json!("R5/2026-04-01T00:00:00Z/PT30M")),
        ("schedule", json!({"kind": "once", "at": "2026-05-01T00:00:00Z", "tolerance": "5m"})),
        (
            "schedule",
            json!({"kind": "interval", "every": "1h", "tolerance": "10m",
                            "anchor": "2026-01-01T00:00:00.000001Z"}),
        ),
        ("interval_minutes", json!(30)),
        ("cron_expression", json!("H H * * *")),
        ("cron_schedule", json!("0 9 * * MON")),
        ("cron_schedule", json!("@every 30m")),
        ("cron_max_schedule_duration", json!("6h")),
        ("scheduling_period", json!("24h")),
        ("cooldown_duration", json!("1h")),
        ("exact", json!(false)),
        ("exact", json!(true)),
        ("schedule", json!("24h")),
        ("prefer_window", json!({"start": "21:30", "end": "06:00:30"})),
        ("timezone", json!("America/Toronto")),
        ("blackout_periods", json!([{"start": "22:00", "end": "06:00:30"}])),
        ("payload", json!([1, {"a": null}])),
        ("executor_config", json!({"sleep": "1s"})),
        ("max_retries", json!(5)),
        ("retry_backoff", json!("stages")),
        ("retry_backoff", json!("fixed")),
        ("retry_backoff_seconds", json!(300)),
        ("retry_jitter_percent", json!(0)),
        ("concurrency_key", json!("example.com")),
    ]);
    prop::sample::select(fields).prop_map(|(name, value)| (name.to_owned(), value))
}
