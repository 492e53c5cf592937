//! Ids of runs and attempts: UUIDs that contain the attempt's key, in which the job number is
//! encrypted.
//!
//! The id of an attempt is computed from the attempt's key. The id is known before the attempt is
//! stored, and decoding it needs no database lookup. The 122 free bits of a UUIDv8, highest first:
//!
//! | bits | content                                                                    |
//! |-----:|----------------------------------------------------------------------------|
//! |   52 | scheduled time in microseconds since 1970; ids sort by it                   |
//! |   40 | job number, encrypted with the key of the installation                      |
//! |    4 | [`Origin`](crate::Origin)                                                   |
//! |   16 | number within the origin, for runs of a job in the same microsecond         |
//! |   10 | attempt, counted from 0; 0 in the id of a run                               |
//!
//! Job numbers are consecutive. Unencrypted job numbers would show a tenant how many jobs all
//! tenants have. The encryption of the job number also depends on the rest of the id, except the
//! attempt number, so two run ids do not show whether the runs belong to the same job.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use siphasher::sip::SipHasher24;
use uuid::Uuid;

use crate::ids::{AttemptKey, AttemptNo, JobNo, Sequence};
use crate::time::Timestamp;

const TIME_BITS: u32 = 52;
const JOB_BITS: u32 = 40;
const SEQUENCE_BITS: u32 = 20;
const ATTEMPT_BITS: u32 = 10;

const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// The id of a run, which is the same for all attempts of the run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct RunId(Uuid);

/// The id of one attempt of a run, called "execution id" in the API. The id of the first attempt
/// has the same bits as the id of the run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct AttemptId(Uuid);

impl AttemptId {
    pub fn run_id(self) -> RunId {
        RunId(self.with_attempt(AttemptNo::FIRST).0)
    }

    pub fn attempt(self) -> AttemptNo {
        AttemptNo((self.0.as_u128() & mask(ATTEMPT_BITS)) as u16)
    }

    /// Needs no encryption key, because the attempt number is not encrypted.
    pub fn with_attempt(self, attempt: AttemptNo) -> Self {
        let run = self.0.as_u128() & !mask(ATTEMPT_BITS);
        Self(Uuid::from_u128(run | (u128::from(attempt.0) & mask(ATTEMPT_BITS))))
    }

    /// Needs no encryption key, because the scheduled time is not encrypted.
    pub fn scheduled_at(self) -> Timestamp {
        let micros = custom_bits(self.0) >> (JOB_BITS + SEQUENCE_BITS + ATTEMPT_BITS);
        Timestamp::from_micros(micros as i64)
    }

    pub fn as_u128(self) -> u128 {
        self.0.as_u128()
    }

    /// Returns `None` if `bits` are not a UUIDv8 with a known origin.
    pub fn from_u128(bits: u128) -> Option<Self> {
        let uuid = Uuid::from_u128(bits);
        let is_v8 = uuid.get_version_num() == 8 && uuid.get_variant() == uuid::Variant::RFC4122;
        let sequence = (bits >> ATTEMPT_BITS & mask(SEQUENCE_BITS)) as u32;
        (is_v8 && Sequence::from_bits(sequence).is_some()).then_some(Self(uuid))
    }
}

impl From<RunId> for AttemptId {
    /// Returns the id of the run's first attempt.
    fn from(id: RunId) -> Self {
        Self(id.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a run or an execution: those are UUIDs of version 8")]
pub struct RunIdError;

impl FromStr for RunId {
    type Err = RunIdError;

    /// Parses the id of a run; also accepts the id of an attempt and returns the id of its run.
    fn from_str(text: &str) -> Result<Self, RunIdError> {
        text.parse().map(AttemptId::run_id)
    }
}

impl FromStr for AttemptId {
    type Err = RunIdError;

    /// Parses the id of an attempt; also accepts the id of a run and returns the id of its first
    /// attempt.
    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let uuid: Uuid = text.parse().map_err(|_| RunIdError)?;
        Self::from_u128(uuid.as_u128()).ok_or(RunIdError)
    }
}

/// Encodes attempt keys as ids, and decodes the ids. All nodes of an installation must use the same
/// secret.
#[derive(Copy, Clone)]
pub struct RunIds(SipHasher24);

/// Distinguishes the uses of the secret, so that run ids and page cursors encrypt the same job
/// number differently.
#[derive(Copy, Clone)]
enum Purpose {
    Id = 0,
    Cursor = 1,
}

impl RunIds {
    /// Derives the 128-bit encryption key from a secret of any length.
    pub fn new(secret: &[u8]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(secret);
        // HMAC accepts keys of any length, so `new_from_slice` never fails.
        let mut mac = mac.unwrap_or_else(|_| Hmac::new(&Default::default()));
        mac.update(b"evenkeel run ids 1");
        let digest = mac.finalize().into_bytes();
        Self(SipHasher24::new_with_key(&std::array::from_fn(|at| digest[at])))
    }

    pub fn run_id(&self, key: AttemptKey) -> RunId {
        self.attempt_id(key).run_id()
    }

    pub fn attempt_id(&self, key: AttemptKey) -> AttemptId {
        let time = key.scheduled_at.as_micros() as u128 & mask(TIME_BITS);
        let job = self.encrypt(key.job_no, Purpose::Id, time as u64, key.sequence.bits());
        let mut bits = time;
        bits = bits << JOB_BITS | u128::from(job);
        bits = bits << SEQUENCE_BITS | u128::from(key.sequence.bits());
        bits = bits << ATTEMPT_BITS | (u128::from(key.attempt.0) & mask(ATTEMPT_BITS));
        AttemptId(uuid_v8(bits))
    }

    pub fn key(&self, id: AttemptId) -> AttemptKey {
        let bits = custom_bits(id.0);
        let time = (bits >> (JOB_BITS + SEQUENCE_BITS + ATTEMPT_BITS)) as u64;
        let job = (bits >> (SEQUENCE_BITS + ATTEMPT_BITS) & mask(JOB_BITS)) as u64;
        let sequence = (bits >> ATTEMPT_BITS & mask(SEQUENCE_BITS)) as u32;
        AttemptKey {
            scheduled_at: Timestamp::from_micros(time.cast_signed()),
            job_no: self.decrypt(job, Purpose::Id, time, sequence),
            // The origin of an `AttemptId` is always known, because `AttemptId::from_u128` refuses
            // unknown origins.
            sequence: Sequence::from_bits(sequence).unwrap_or(Sequence::REGULAR),
            attempt: id.attempt(),
        }
    }

    /// Returns the key of the run's first attempt.
    pub fn run_key(&self, id: RunId) -> AttemptKey {
        self.key(id.into())
    }

    /// Encrypts a job number for a page cursor. `context` is the rest of the page cursor. With
    /// `context`, the same job number looks different in different cursors.
    pub fn hide_job(&self, job: JobNo, context: u64) -> u64 {
        self.encrypt(job, Purpose::Cursor, context, 0)
    }

    /// Decrypts a job number from [`RunIds::hide_job`]; returns `None` if `hidden` has more than 40
    /// bits.
    pub fn show_job(&self, hidden: u64, context: u64) -> Option<JobNo> {
        let fits = u128::from(hidden) <= mask(JOB_BITS);
        fits.then(|| self.decrypt(hidden, Purpose::Cursor, context, 0))
    }

    fn encrypt(&self, job: JobNo, purpose: Purpose, time: u64, sequence: u32) -> u64 {
        let job = job.0.cast_unsigned() & mask(JOB_BITS) as u64;
        let (mut left, mut right) = (job >> HALF_BITS, job & HALF_MASK);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right, purpose, time, sequence));
        }
        left << HALF_BITS | right
    }

    fn decrypt(&self, hidden: u64, purpose: Purpose, time: u64, sequence: u32) -> JobNo {
        let (mut left, mut right) = (hidden >> HALF_BITS, hidden & HALF_MASK);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left, purpose, time, sequence), left);
        }
        JobNo((left << HALF_BITS | right).cast_signed())
    }

    /// The round function of a Feistel network, which makes a reversible function out of any keyed
    /// function.
    fn round(&self, round: u64, half: u64, purpose: Purpose, time: u64, sequence: u32) -> u64 {
        let rest = (purpose as u64) << 44 | round << 40 | u64::from(sequence) << 20 | half;
        let mut input = [0; 16];
        input[..8].copy_from_slice(&time.to_le_bytes());
        input[8..].copy_from_slice(&rest.to_le_bytes());
        self.0.hash(&input) & HALF_MASK
    }
}

const ROUNDS: u64 = 8;
const HALF_BITS: u32 = JOB_BITS / 2;
const HALF_MASK: u64 = (1 << HALF_BITS) - 1;

impl fmt::Debug for RunIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunIds")
    }
}

/// Inserts the version and variant bits of a UUIDv8 into 122 bits of data.
fn uuid_v8(bits: u128) -> Uuid {
    let (high, middle, low) = (bits >> 74, bits >> 62 & mask(12), bits & mask(62));
    Uuid::from_u128(high << 80 | 8 << 76 | middle << 64 | 2 << 62 | low)
}

fn custom_bits(uuid: Uuid) -> u128 {
    let raw = uuid.as_u128();
    (raw >> 80) << 74 | (raw >> 64 & mask(12)) << 62 | (raw & mask(62))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::Origin;

    fn ids() -> RunIds {
        RunIds::new(b"key of the tests")
    }

    fn any_key() -> impl Strategy<Value = AttemptKey> {
        let time = 0_i64..1 << TIME_BITS;
        (time, 0_i64..1 << JOB_BITS, 0_u32..5, 0_u32..1 << 16, 0_u16..1024).prop_map(
            |(time, job, origin, number, attempt)| AttemptKey {
                scheduled_at: Timestamp::from_micros(time),
                job_no: JobNo(job),
                sequence: Sequence::new(Origin::from_bits(origin).unwrap(), number),
                attempt: AttemptNo(attempt),
            },
        )
    }

    proptest! {
        #[test]
        fn attempt_id_decodes_to_its_key(key in any_key()) {
            let id = ids().attempt_id(key);
            prop_assert_eq!(ids().key(id), key);
            prop_assert_eq!(id.to_string().parse::<AttemptId>(), Ok(id));
            prop_assert_eq!(AttemptId::from_u128(id.as_u128()), Some(id));
            prop_assert_eq!((id.attempt(), id.scheduled_at()), (key.attempt, key.scheduled_at));
        }

        #[test]
        fn ids_sort_by_scheduled_time(a in any_key(), b in any_key()) {
            prop_assume!(a.scheduled_at != b.scheduled_at);
            let order = a.scheduled_at.cmp(&b.scheduled_at);
            prop_assert_eq!(ids().attempt_id(a).cmp(&ids().attempt_id(b)), order);
            prop_assert_eq!(ids().run_id(a).cmp(&ids().run_id(b)), order);
        }

        #[test]
        fn attempts_of_a_run_share_its_id(key in any_key(), other in 0_u16..1024) {
            let id = ids().run_id(key);
            let next = ids().attempt_id(key).with_attempt(AttemptNo(other));
            prop_assert_eq!(next, ids().attempt_id(key.with_attempt(AttemptNo(other))));
            prop_assert_eq!(next.run_id(), id);
            prop_assert_eq!(next.to_string().parse::<RunId>(), Ok(id));
            prop_assert_eq!(id.to_string().parse::<AttemptId>(), Ok(AttemptId::from(id)));
            prop_assert_eq!(ids().run_key(id), key.with_attempt(AttemptNo::FIRST));
        }

        #[test]
        fn hidden_job_number_can_be_shown_again(
            job in 0_i64..1 << JOB_BITS, context in any::<u64>(),
        ) {
            let hidden = ids().hide_job(JobNo(job), context);
            prop_assert_eq!(ids().show_job(hidden, context), Some(JobNo(job)));
            prop_assert_eq!(ids().show_job(hidden | 1 << JOB_BITS, context), None);
        }
    }

    /// Returns the 40 bits of an id that contain the encrypted job number.
    fn job_bits(ids: &RunIds, key: AttemptKey) -> u64 {
        let bits = custom_bits(ids.attempt_id(key).0);
        (bits >> (SEQUENCE_BITS + ATTEMPT_BITS) & mask(JOB_BITS)) as u64
    }

    #[test]
    fn job_number_is_not_visible_without_the_key() {
        let at = |micros: i64| Timestamp::from_micros(1_800_000_000_000_000 + micros);
        let other = RunIds::new(b"key of another installation");
        let mut seen = std::collections::BTreeSet::new();
        let mut set_bits = 0;
        for no in 0..1_000 {
            for micros in [0, 1] {
                let key = AttemptKey::regular(JobNo(no), at(micros));
                let bits = job_bits(&ids(), key);
                assert_ne!(bits, no.cast_unsigned());
                assert_ne!(bits, job_bits(&other, key));
                assert!(seen.insert(bits), "another time encrypts a job number differently");
                set_bits += bits.count_ones();
            }
        }
        // Without encryption, the upper bits of small job numbers would be zero. With encryption,
        // about half of the bits of all job numbers are set.
        let expected = 2_000 * JOB_BITS / 2;
        assert!(set_bits.abs_diff(expected) < expected / 20, "{set_bits} of {expected}");
    }

    /// The expected attempt id of this test was computed with an independent implementation.
    #[test]
    fn attempt_id_layout_never_changes() {
        let key = AttemptKey {
            scheduled_at: Timestamp::from_micros(1_800_000_000_000_000),
            job_no: JobNo(7),
            sequence: Sequence::new(Origin::Redrive, 5),
            attempt: AttemptNo(2),
        };
        let id = ids().attempt_id(key);
        assert_eq!(id.to_string(), "66517289-8800-80f5-b858-dd000c001402");
        let bits = custom_bits(id.0);
        assert_eq!(bits >> 70, 1_800_000_000_000_000);
        assert_eq!(bits & mask(30), 3 << 26 | 5 << 10 | 2);
    }

    #[test]
    fn id_with_unknown_origin_is_refused() {
        let id = ids().attempt_id(AttemptKey::regular(JobNo(1), Timestamp::from_micros(1)));
        for origin in 0..16_u128 {
            let text = Uuid::from_u128(id.as_u128() | origin << 26).to_string();
            assert_eq!(text.parse::<AttemptId>().is_ok(), origin < 5, "{origin}");
            assert_eq!(text.parse::<RunId>().is_ok(), origin < 5, "{origin}");
        }
    }

    #[test]
    fn uuid_of_another_version_is_refused() {
        assert_eq!("0190163d-8694-739b-aea5-966c26f8ad91".parse::<RunId>(), Err(RunIdError));
    }
}
