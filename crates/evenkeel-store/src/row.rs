//! Conversions between database columns and Rust types that both stores use.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Sequence, Timestamp};

use crate::StoreError;

pub fn sql_time(micros: Option<i64>) -> Option<Timestamp> {
    micros.map(Timestamp::from_micros)
}

pub fn pools_text(pools: &[String]) -> Result<String, StoreError> {
    serde_json::to_string(pools).map_err(|error| StoreError::Refused(error.into()))
}

pub fn pools_from_text(row: impl std::fmt::Display, text: &str) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(row, "pools", error))
}

pub fn attempt_key_from_columns(
    scheduled_at: i64,
    job_no: i64,
    sequence: i32,
    attempt: i16,
) -> Result<AttemptKey, StoreError> {
    let row = || format!("run {scheduled_at}/{job_no}/{sequence}/{attempt}");
    let sequence = u32::try_from(sequence).ok().and_then(Sequence::from_bits);
    let attempt = u16::try_from(attempt).ok().filter(|attempt| *attempt <= AttemptNo::MAX.0);
    Ok(AttemptKey {
        scheduled_at: Timestamp::from_micros(scheduled_at),
        job_no: JobNo(job_no),
        sequence: sequence
            .ok_or_else(|| StoreError::corrupt(row(), "sequence", "more than 20 bits"))?,
        attempt: AttemptNo(
            attempt.ok_or_else(|| StoreError::corrupt(row(), "attempt", "not from 0 to 1023"))?,
        ),
    })
}

/// Returns the outcome for a stored status; `None` if an attempt with this status is not finished.
pub fn outcome_from_code(code: i16) -> Option<Outcome> {
    AttemptStatus::from_code(code)?.outcome()
}

pub fn skip_reason_code(reason: SkipReason) -> i16 {
    reason as i16
}

pub fn skip_reason_from_code(code: i16) -> Option<SkipReason> {
    SkipReason::ALL.into_iter().find(|reason| skip_reason_code(*reason) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_reasons_keep_their_codes() {
        let codes = SkipReason::ALL.map(skip_reason_code);
        assert_eq!(codes[..4], [0, 1, 2, 4]);
        assert_eq!(
            SkipReason::ALL.map(|reason| skip_reason_from_code(skip_reason_code(reason))),
            SkipReason::ALL.map(Some)
        );
        assert_eq!(skip_reason_from_code(3), None);
    }
}
