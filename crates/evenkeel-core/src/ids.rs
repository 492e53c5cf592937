//! Names of things. A run's id is its natural key, so it exists before the run does.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Timestamp;

/// A job's public id, a UUIDv7.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub Uuid);

impl JobId {
    /// A new id made from the time of creation and 80 random bits.
    pub fn new(created: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(created.as_micros() / 1_000).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// A number that is the job's own for ever, evenly spread over jobs.
    pub fn seed(self) -> u64 {
        let (high, low) = self.0.as_u64_pair();
        // The finalizer of SplitMix64: every bit of the id counts for every bit of the number.
        let mut mixed = high ^ low.rotate_left(32);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

numbered! {
    /// A job's number inside the store: dense, never reused, 40 bits.
    JobNo(i64)
}
numbered! {
    /// One incarnation of a node: every start of a process gets a new one.
    NodeNo(i32)
}
numbered! {
    /// A tenant's number inside the store.
    TenantNo(i32)
}
numbered! {
    /// Which try of a run this is, counted from 0.
    AttemptNo(u16)
}

impl AttemptNo {
    /// The first try.
    pub const FIRST: Self = Self(0);
    /// The last one an execution id has room for.
    pub const MAX: Self = Self(1023);

    /// Its number as users see it, counted from 1. Whatever is called `attempt` in the API, in
    /// headers, environment variables and templates is this number; `retry_attempt` is the one
    /// counted from 0.
    pub const fn from_one(self) -> u16 {
        self.0.saturating_add(1)
    }
}

/// Why a run exists.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Its schedule said so.
    Schedule,
    /// Somebody asked for it now.
    Trigger,
    /// It makes up for a range of the past.
    Backfill,
    /// It was taken back out of the dead-letter list.
    Redrive,
}

/// Tells runs of one job at one moment apart: the origin, and a number within it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sequence(u32);

impl Sequence {
    /// The only sequence a regular run has.
    pub const REGULAR: Self = Self(0);
    /// Numbers within an origin are below this.
    pub const NUMBERS: u32 = 1 << 18;

    /// The sequence of run number `n` (taken modulo [`Sequence::NUMBERS`]) of an origin.
    pub const fn new(origin: Origin, n: u32) -> Self {
        Self(((origin as u32) << 18) | (n % Self::NUMBERS))
    }

    /// From its stored form; `None` if it has more than 20 bits.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits < 1 << 20 { Some(Self(bits)) } else { None }
    }

    /// The form it is stored in.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Why the run exists.
    pub const fn origin(self) -> Origin {
        match self.0 >> 18 {
            0 => Origin::Schedule,
            1 => Origin::Trigger,
            2 => Origin::Backfill,
            _ => Origin::Redrive,
        }
    }
}

/// The natural key of one attempt of a run, in the order in which the stores keep them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptKey {
    /// The time the run is for.
    pub scheduled_at: Timestamp,
    /// The job it belongs to.
    pub job_no: JobNo,
    /// Which of the job's runs at that time.
    pub sequence: Sequence,
    /// Which try.
    pub attempt: AttemptNo,
}

impl AttemptKey {
    /// The first attempt of a job's regular run at `scheduled_at`.
    pub const fn regular(job_no: JobNo, scheduled_at: Timestamp) -> Self {
        Self { scheduled_at, job_no, sequence: Sequence::REGULAR, attempt: AttemptNo::FIRST }
    }

    /// The key of another attempt of the same run.
    pub const fn with_attempt(self, attempt: AttemptNo) -> Self {
        Self { attempt, ..self }
    }

    /// The id of the run: the same for all its attempts.
    pub fn run_id(self) -> RunId {
        self.with_attempt(AttemptNo::FIRST).execution_id()
    }

    /// The id of this very attempt: the run's id with the attempt in it.
    pub fn execution_id(self) -> RunId {
        let time = self.scheduled_at.as_micros() as u128 & ((1 << 52) - 1);
        let job = self.job_no.0 as u128 & ((1 << 40) - 1);
        let bits = (time << 70)
            | (job << 30)
            | (u128::from(self.sequence.0) << 10)
            | u128::from(self.attempt.0 & 1023);
        let (high, middle, low) = (bits >> 74, (bits >> 62) & 0xfff, bits & ((1 << 62) - 1));
        RunId(Uuid::from_u128((high << 80) | (8 << 76) | (middle << 64) | (2 << 62) | low))
    }
}

/// The public id of a run or of one attempt of it: a UUIDv8 that is its key, readable both ways.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct RunId(Uuid);

impl RunId {
    /// The key the id was made from.
    pub fn key(self) -> AttemptKey {
        let raw = self.0.as_u128();
        let bits = ((raw >> 80) << 74) | (((raw >> 64) & 0xfff) << 62) | (raw & ((1 << 62) - 1));
        AttemptKey {
            scheduled_at: Timestamp::from_micros((bits >> 70) as i64),
            job_no: JobNo(((bits >> 30) & ((1 << 40) - 1)) as i64),
            sequence: Sequence(((bits >> 10) & ((1 << 20) - 1)) as u32),
            attempt: AttemptNo((bits & 1023) as u16),
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not the id of a run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a run or an execution: those are UUIDs of version 8")]
pub struct RunIdError;

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let uuid: Uuid = text.parse().map_err(|_| RunIdError)?;
        let is_ours = uuid.get_version_num() == 8 && uuid.get_variant() == uuid::Variant::RFC4122;
        if is_ours { Ok(Self(uuid)) } else { Err(RunIdError) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = AttemptKey> {
        (0_i64..1 << 52, 0_i64..1 << 40, 0_u32..1 << 20, 0_u16..1024).prop_map(
            |(time, job, sequence, attempt)| AttemptKey {
                scheduled_at: Timestamp::from_micros(time),
                job_no: JobNo(job),
                sequence: Sequence(sequence),
                attempt: AttemptNo(attempt),
            },
        )
    }

    proptest! {
        #[test]
        fn a_run_id_reads_back_as_its_key(key in any_key()) {
            let id = key.execution_id();
            prop_assert_eq!(id.key(), key);
            prop_assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
        }

        #[test]
        fn run_ids_sort_like_their_keys(a in any_key(), b in any_key()) {
            prop_assert_eq!(a.cmp(&b), a.execution_id().cmp(&b.execution_id()));
        }

        #[test]
        fn all_attempts_share_the_run_id(key in any_key(), other in 0_u16..1024) {
            prop_assert_eq!(key.run_id(), key.with_attempt(AttemptNo(other)).run_id());
        }
    }

    #[test]
    fn a_uuid_of_another_version_is_no_run_id() {
        assert_eq!("0190163d-8694-739b-aea5-966c26f8ad91".parse::<RunId>(), Err(RunIdError));
    }
}
