//! Splits a JSON document with many jobs into batches, without parsing the jobs.

use std::fmt;

use axum::body::Bytes;
use evenkeel_commands::BULK_BATCH;
use evenkeel_commands::limits::BULK_JOBS_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::{BATCH_BYTES_MAX, BATCH_WEIGHT_MAX};
use crate::problem::{Problem, ProblemType};
use crate::weight::{DEPTH_MAX, Weight};

/// Memory reserved for the result of one job, in bytes.
const ANSWER_BYTES: usize = 1024;

/// One batch: the JSON texts of consecutive jobs in the request body. The same body is always split
/// into the same batches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Documents {
    /// Position of the batch's first job in the request body, counted from 1.
    pub first: u64,
    /// JSON text of each job, as a slice of the request body without copying.
    pub texts: Vec<Bytes>,
    /// Estimated memory of the batch's jobs once parsed, in bytes.
    weight: usize,
}

/// The list `jobs` of the request body as raw JSON texts, at most `BULK_JOBS_MAX`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs<'a> {
    #[serde(borrow, deserialize_with = "at_most")]
    jobs: Vec<&'a RawValue>,
}

/// Returns the error message for a list with too many jobs. Parsing stops after `BULK_JOBS_MAX`
/// jobs, so the actual length of the list is unknown.
fn too_many() -> String {
    format!(
        "has more than {BULK_JOBS_MAX} jobs; send at most {BULK_JOBS_MAX} at once, or any number \
         as application/x-ndjson"
    )
}

fn at_most<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    struct AtMost;

    impl<'de> Visitor<'de> for AtMost {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of jobs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut jobs = Vec::new();
            while let Some(job) = list.next_element()? {
                if jobs.len() == BULK_JOBS_MAX {
                    return Err(A::Error::custom(too_many()));
                }
                jobs.push(job);
            }
            Ok(jobs)
        }
    }

    deserializer.deserialize_seq(AtMost)
}

/// Checks that the request body is JSON, and splits its list of jobs into batches.
pub(super) fn batches(body: &Bytes) -> Result<Vec<Documents>, Problem> {
    // The JSON parser skips the contents of each job, but keeps state for each nesting level.
    if Weight::of(body).depth > DEPTH_MAX + 2 {
        let detail = format!("lists and objects are nested more than {DEPTH_MAX} levels deep");
        return Err(Problem::new(ProblemType::MalformedJson, detail));
    }
    let Jobs { jobs } = serde_json::from_slice(body).map_err(refusal)?;
    let mut batches: Vec<Documents> = Vec::new();
    let mut bytes = 0;
    for (number, job) in (1..).zip(jobs) {
        let text = body.slice_ref(job.get().as_bytes());
        let weight = Weight::of(&text).reserved();
        let is_full = |batch: &Documents| {
            batch.texts.len() == BULK_BATCH
                || bytes >= BATCH_BYTES_MAX
                || batch.weight >= BATCH_WEIGHT_MAX
        };
        if batches.last().is_none_or(is_full) {
            batches.push(Documents { first: number, ..Documents::default() });
            bytes = 0;
        }
        if let Some(batch) = batches.last_mut() {
            bytes += text.len();
            batch.weight += text.len() + weight;
            batch.texts.push(text);
        }
    }
    Ok(batches)
}

/// Returns the memory that a bulk request needs in addition to its body, in bytes. The memory
/// covers the results of all jobs, and two batches, because one batch is parsed while another is
/// stored.
pub(super) fn memory(batches: &[Documents]) -> usize {
    let pairs = batches.windows(2).map(|pair| pair.iter().map(|batch| batch.weight).sum());
    let heaviest: usize = pairs.chain(batches.iter().map(|batch| batch.weight)).max().unwrap_or(0);
    let jobs: usize = batches.iter().map(|batch| batch.texts.len()).sum();
    heaviest + jobs * ANSWER_BYTES
}

/// Distinguishes malformed JSON from valid JSON with the wrong structure.
fn refusal(error: serde_json::Error) -> Problem {
    let message = error.to_string();
    if error.classify() != serde_json::error::Category::Data {
        return Problem::new(ProblemType::MalformedJson, message);
    }
    if message.starts_with(&too_many()) {
        return Problem::parameter("jobs", too_many());
    }
    let message = format!("the body is not {{\"jobs\": […]}} with a list of jobs: {message}");
    Problem::parameter("jobs", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(body: &str) -> Result<Vec<Documents>, Problem> {
        batches(&Bytes::copy_from_slice(body.as_bytes()))
    }

    /// Returns a JSON list of `count` jobs, followed by the text `end`.
    fn list(count: usize, end: &str) -> String {
        format!("{{\"jobs\": [{}0{end}", "0,".repeat(count - 1))
    }

    #[test]
    fn list_that_is_too_long_is_not_read_to_its_end() {
        let whole = cut(&list(BULK_JOBS_MAX, "]}")).unwrap();
        assert_eq!(whole.iter().map(|batch| batch.texts.len()).sum::<usize>(), BULK_JOBS_MAX);
        // Parsing stops at the first job over the limit, so the syntax error at the end of the
        // document is not reported.
        let problem = cut(&list(BULK_JOBS_MAX + 1, ", no JSON at all")).unwrap_err();
        assert_eq!(problem.kind, ProblemType::InvalidParameter);
        assert!(problem.detail.contains("more than 10000 jobs"), "{}", problem.detail);
        let problem = cut(&list(BULK_JOBS_MAX, ", no JSON at all")).unwrap_err();
        assert_eq!(problem.kind, ProblemType::MalformedJson);
    }

    #[test]
    fn jobs_are_slices_of_the_body() {
        let body = Bytes::from_static(b"{\"jobs\": [ {\"a\": 1} , [[]],7]}");
        let texts = &batches(&body).unwrap()[0].texts;
        assert_eq!(texts[..], [&b"{\"a\": 1}"[..], b"[[]]", b"7"]);
        assert!(body.as_ptr_range().contains(&texts[2].as_ptr()));
    }

    #[test]
    fn batches_are_bounded_by_count_bytes_and_weight() {
        let sizes = |body: &str| {
            let batches = cut(body).unwrap();
            batches.iter().map(|batch| (batch.first, batch.texts.len())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&list(6250, "]}")), [(1, 2500), (2501, 2500), (5001, 1250)]);
        let long = format!("\"{}\"", "x".repeat(BATCH_BYTES_MAX / 2));
        let jobs = vec![long; 5].join(",");
        assert_eq!(sizes(&format!("{{\"jobs\": [{jobs}]}}")), [(1, 2), (3, 2), (5, 1)]);
        let heavy = format!("[{}0]", "{\"\":0},".repeat(20_000));
        let jobs = vec![heavy; 5].join(",");
        assert_eq!(sizes(&format!("{{\"jobs\": [{jobs}]}}")), [(1, 3), (4, 2)]);
        assert_eq!(sizes("{\"jobs\": []}"), []);
    }

    #[test]
    fn memory_counts_two_batches_and_all_answers() {
        let of = |weight| Documents { weight, texts: vec![Bytes::new()], ..Documents::default() };
        assert_eq!(memory(&[]), 0);
        assert_eq!(memory(&[of(7)]), 7 + ANSWER_BYTES);
        assert_eq!(memory(&[of(7), of(1), of(8), of(2)]), 10 + 4 * ANSWER_BYTES);
    }

    #[test]
    fn deep_nesting_is_refused_before_parsing() {
        let problem = cut(&format!("{{\"jobs\": [{}", "[".repeat(100_000))).unwrap_err();
        assert_eq!(problem.kind, ProblemType::MalformedJson);
        assert!(problem.detail.contains("levels deep"), "{}", problem.detail);
    }
}
