//! Parses filters and sort orders of job lists and bulk commands.

use evenkeel_core::condition::Level;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobSearch, Timestamp};
use evenkeel_store::{JobFilter, JobSort, LABEL_BYTES_MAX, LABELS_MAX, SortBy};

use crate::Fault;
use crate::read::job_fields::LANES;

/// Names of the job filters, except `metadata.KEY`.
pub const FILTER_NAMES: [&str; 11] = [
    "status", "condition", "executor", "lane", "name_prefix", "source_id", "source_prefix",
    "next_run_after", "next_run_before", "target", "q",
];

pub const METADATA_PREFIX: &str = "metadata.";

/// Names of the sort orders of job lists; a `-` before the name means descending order.
pub const SORT_NAMES: [(&str, SortBy); 4] = [
    ("created_at", SortBy::Created),
    ("updated_at", SortBy::Updated),
    ("name", SortBy::Name),
    ("next_run_at", SortBy::NextRun),
];

/// Adds the condition `name` = `value` to a job filter; `name` is one of [`FILTER_NAMES`], or
/// `metadata.KEY`. Ignores all other names.
pub fn read_filter(filter: &mut JobFilter, name: &str, value: &str) -> Result<(), Fault> {
    let fault = |message: String| Fault::new(name, message);
    if value.contains('\0') {
        return Err(fault("holds a NUL character; remove it".into()));
    }
    let text = || Some(value.to_owned());
    match name {
        "name_prefix" => filter.name_prefix = text(),
        "source_id" => filter.source_id = text(),
        "source_prefix" => filter.source_prefix = text(),
        "executor" => filter.executor = text(),
        "status" => {
            let words = JobStatus::ALL.map(|status| (status.as_str(), status));
            filter.status = Some(read_word(&words, value).map_err(fault)?);
        }
        "condition" => {
            let words = Level::ALL.map(|level| (level.as_str(), level));
            filter.condition = Some(read_word(&words, value).map_err(fault)?);
        }
        "lane" => filter.lane = Some(read_word(&LANES, value).map_err(fault)?),
        "target" => {
            let number = value.parse().ok().filter(|number| *number > 0);
            let message = || fault(format!("{value:?} is not the number of a target"));
            filter.target = Some(number.ok_or_else(message)?);
        }
        "q" => filter.search = Some(read_search(value).map_err(fault)?),
        "next_run_after" => filter.next_from = Some(read_time(value).map_err(fault)?),
        "next_run_before" => filter.next_before = Some(read_time(value).map_err(fault)?),
        _ => {
            if let Some(key) = name.strip_prefix(METADATA_PREFIX) {
                add_label(filter, key, value).map_err(fault)?;
            }
        }
    }
    Ok(())
}

/// Parses the words of a search of jobs.
pub(crate) fn read_search(value: &str) -> Result<JobSearch, String> {
    JobSearch::parse(value).map_err(|error| error.to_string())
}

fn add_label(filter: &mut JobFilter, key: &str, value: &str) -> Result<(), String> {
    if key.is_empty() {
        return Err("names no key; write metadata.KEY=VALUE".into());
    }
    if key.contains('\0') {
        return Err("holds a NUL character; remove it".into());
    }
    if key.len().max(value.len()) > LABEL_BYTES_MAX {
        return Err(format!("is too long; keys and values have up to {LABEL_BYTES_MAX} bytes"));
    }
    if filter.metadata.len() >= LABELS_MAX {
        return Err(format!("is one too many; a filter has up to {LABELS_MAX} metadata keys"));
    }
    filter.metadata.push((key.to_owned(), value.to_owned()));
    Ok(())
}

pub fn read_sort(sort: &str) -> Result<JobSort, Fault> {
    let (name, descending) = match sort.strip_prefix('-') {
        Some(name) => (name, true),
        None => (sort, false),
    };
    let by = read_word(&SORT_NAMES, name).map_err(|message| {
        Fault::new("sort", format!("{message}; a - before the name means descending"))
    })?;
    Ok(JobSort { by, descending })
}

/// Returns the value of the word in `words` that equals `value`, ignoring upper and lower case.
fn read_word<T: Copy>(words: &[(&str, T)], value: &str) -> Result<T, String> {
    let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{value:?} is not one of {}", words.join(", "))
    })
}

/// Parses a timestamp in RFC 3339 format.
pub fn read_time(value: &str) -> Result<Timestamp, String> {
    value.parse().map_err(|_| {
        format!("{value:?} is not a time; write it like 2026-12-01T09:00:00Z (a + is %2B there)")
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_core::order::Lane;

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<JobFilter, Fault> {
        let mut filter = JobFilter::default();
        for (name, value) in pairs {
            read_filter(&mut filter, name, value)?;
        }
        Ok(filter)
    }

    #[test]
    fn every_filter_is_read() {
        let filter = read(&[
            ("status", "Paused"),
            ("condition", "error"),
            ("executor", "http"),
            ("lane", "batch"),
            ("name_prefix", "n"),
            ("source_id", "s"),
            ("source_prefix", "p"),
            ("next_run_after", "2026-12-01T09:00:00Z"),
            ("next_run_before", "2026-12-01T10:00:00+01:00"),
            ("metadata.a.b", "1"),
            ("target", "40"),
            ("q", "News feed"),
            ("something", "else"),
        ]);
        let nine: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let expected = JobFilter {
            status: Some(JobStatus::Paused),
            condition: Some(Level::Error),
            executor: Some("http".into()),
            lane: Some(Lane::Batch),
            name_prefix: Some("n".into()),
            source_id: Some("s".into()),
            source_prefix: Some("p".into()),
            next_from: Some(nine),
            next_before: Some(nine),
            metadata: vec![("a.b".into(), "1".into())],
            target: Some(40),
            active_attempts: None,
            search: Some(JobSearch::parse("news FEED").unwrap()),
        };
        assert_eq!(filter, Ok(expected));
    }

    #[test]
    fn wrong_filters_are_refused_by_name() {
        let long = "x".repeat(LABEL_BYTES_MAX + 1);
        for (name, value) in [
            ("status", "dead"),
            ("status", ""),
            ("condition", "fine"),
            ("lane", "fast"),
            ("target", "0"),
            ("target", "site"),
            ("next_run_after", "tomorrow"),
            ("next_run_before", "2026-12-01"),
            ("metadata.", "x"),
            ("metadata.x", &long),
            ("source_id", "a\0b"),
            ("q", " "),
            ("q", "news %"),
            ("q", &"x ".repeat(17)),
            ("q", &"x".repeat(257)),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().field, name, "{value}");
        }
    }

    #[test]
    fn sort_orders_have_two_directions() {
        assert_eq!(read_sort("name"), Ok(JobSort { by: SortBy::Name, descending: false }));
        assert_eq!(
            read_sort("-next_run_at"),
            Ok(JobSort { by: SortBy::NextRun, descending: true })
        );
        for sort in ["", "-", "--name", "status", "name,-created_at"] {
            assert_eq!(read_sort(sort).unwrap_err().field, "sort");
        }
    }
}
