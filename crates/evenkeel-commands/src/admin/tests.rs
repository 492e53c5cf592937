use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Definition, JobNo, Schedule, Span, TenantNo, Timestamp};
use evenkeel_store::{Job, JobState, NewJob};
use serde_json::{Value, json};

use super::*;
use crate::jobs::new_job;
use crate::read_schedule;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn schedule(text: &str) -> Schedule {
    read_schedule(text).unwrap().schedule
}

fn job() -> Job {
    let later = NOW.saturating_add(Span::from_secs(60));
    let new = NewJob {
        id: JobId::new(NOW, [7; 10]),
        about: Default::default(),
        definition: Definition::noop(schedule("@hourly")),
        next_at: Some(later),
    };
    new_job(new, (JobNo(1), 1), TenantNo(1), NOW)
}

#[test]
fn status_follows_the_latest_run() {
    let later = job();
    assert_eq!(AdminStatus::of(&later, NOW), None, "only scheduled, and never ran");
    let of = |change: &dyn Fn(&mut Job)| {
        let mut job = job();
        change(&mut job);
        AdminStatus::of(&job, NOW)
    };
    assert_eq!(of(&|job| job.next_at = Some(NOW)), Some(AdminStatus::Queued));
    assert_eq!(of(&|job| job.live = 1), Some(AdminStatus::Crawling));
    assert_eq!(of(&|job| (job.live, job.waiting) = (1, 1)), Some(AdminStatus::Queued));
    assert_eq!(of(&|job| (job.live, job.waiting) = (2, 1)), Some(AdminStatus::Crawling));
    for outcome in Outcome::ALL {
        let expected =
            if outcome.is_success() { AdminStatus::Success } else { AdminStatus::Failed };
        assert_eq!(of(&|job| job.last_outcome = Some(outcome)), Some(expected), "{outcome:?}");
    }
}

#[test]
fn paused_job_is_not_queued_when_its_time_comes() {
    let mut paused = job();
    (paused.state, paused.next_at) = (JobState::Paused, Some(NOW));
    assert_eq!(AdminStatus::of(&paused, NOW), None);
    paused.live = 1;
    assert_eq!(AdminStatus::of(&paused, NOW), Some(AdminStatus::Crawling));
}

#[test]
fn statuses_have_their_api_names() {
    let words: Vec<&str> = AdminStatus::words().iter().map(|(word, _)| *word).collect();
    assert_eq!(words, ["queued", "crawling", "success", "failed"]);
}

#[test]
fn job_ref_parses_numbers_and_ids() {
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    assert_eq!(JobRef::from_text("12"), Some(JobRef::Number(12)));
    assert_eq!(JobRef::from_text(id), Some(JobRef::Id(id.parse().unwrap())));
    for text in ["", "-1", "1.5", "one", "99999999999999999999"] {
        assert_eq!(JobRef::from_text(text), None, "{text}");
    }
}

#[test]
fn documents_of_the_admin_api_are_read() {
    assert_eq!(read_status(&json!({"status": "failed"})), Ok(AdminStatus::Failed));
    assert_eq!(read_new_priority(&json!({"priority": 100})).unwrap().get(), 100);
    assert_eq!(read_boost(&json!({"boost": 20})), Ok(20));
    assert_eq!(read_enabled(&json!({"enabled": false})), Ok(false));
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    let named = read_bulk_retry(&json!({"job_ids": [1, "2", id, 1]})).unwrap();
    let id = JobRef::Id(id.parse().unwrap());
    assert_eq!(named, [JobRef::Number(1), JobRef::Number(2), id, JobRef::Number(1)]);
    let bulk = read_bulk_status(&json!({"job_ids": [5], "status": "queued"})).unwrap();
    assert_eq!(bulk, BulkStatus { jobs: vec![JobRef::Number(5)], status: AdminStatus::Queued });
}

#[test]
fn wrong_documents_are_refused_with_the_field() {
    type Read = fn(&Value) -> Option<String>;
    fn field<T>(read: Result<T, Vec<crate::Fault>>) -> Option<String> {
        read.err().map(|faults| faults[0].field.clone())
    }
    let status: Read = |document| field(read_status(document));
    let boost: Read = |document| field(read_boost(document));
    let bulk: Read = |document| field(read_bulk_status(document));
    let enabled: Read = |document| field(read_enabled(document));
    let many = vec![1; 10_001];
    for (read, document, expected) in [
        (status, json!([]), ""),
        (status, json!({}), "status"),
        (status, json!({"status": "running"}), "status"),
        (status, json!({"status": "queued", "x": 1}), "x"),
        (boost, json!({"boost": 101}), "boost"),
        (boost, json!({"boost": -1}), "boost"),
        (boost, json!({"boost": 1.5}), "boost"),
        (bulk, json!({"status": "queued"}), "job_ids"),
        (bulk, json!({"job_ids": [1, true], "status": "queued"}), "job_ids[1]"),
        (bulk, json!({"job_ids": many, "status": "queued"}), "job_ids"),
        (bulk, json!({"job_ids": [1]}), "status"),
        (enabled, json!({"enabled": "no"}), "enabled"),
        (enabled, json!({}), "enabled"),
    ] {
        assert_eq!(read(&document).as_deref(), Some(expected), "{document}");
    }
}

#[test]
fn intervals_are_shown_as_every_expressions() {
    for (text, words) in [
        ("@daily", Some("@daily")),
        ("0 9 * * 1-5", Some("0 9 * * 1-5")),
        ("@every 30m", Some("@every 30m")),
        ("@every 90s", Some("@every 1m30s")),
    ] {
        assert_eq!(cron_words(&schedule(text)).as_deref(), words);
        let read_again = words.map(schedule).and_then(|schedule| cron_words(&schedule));
        assert_eq!(read_again.as_deref(), words, "it is read as it is shown");
    }
}
