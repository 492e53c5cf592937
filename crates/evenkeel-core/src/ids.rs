//! Ids and numbers of jobs, nodes, tenants and attempts. [`run_id`](crate::run_id) makes the public
//! ids of runs.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hash::mix;
use crate::named_enum;
use crate::time::Timestamp;

/// Defines a type with one field that is parsed, shown and serialized like this field.
macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = <$inner as std::str::FromStr>::Err;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

pub(crate) use newtype;

newtype! {
    /// The public id of a job, a UUIDv7.
    JobId(Uuid)
}
newtype! {
    /// The number of a job inside the store: 40 bits, assigned consecutively, never reused.
    JobNo(i64)
}
newtype! {
    /// The number of one process of a node. A node gets a new number whenever it starts.
    NodeNo(i32)
}
newtype! {
    TenantNo(i32)
}
newtype! {
    /// The number of an attempt within its run, counted from 0.
    AttemptNo(u16)
}

impl JobId {
    /// Makes an id from the time of creation and 80 random bits.
    pub fn new(created: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(created.as_micros() / 1_000).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Returns a constant number that is computed from the job id. The seeds of different jobs are
    /// evenly distributed.
    pub fn seed(self) -> u64 {
        let (high, low) = self.0.as_u64_pair();
        mix(high ^ low.rotate_left(32))
    }
}

impl AttemptNo {
    pub const FIRST: Self = Self(0);
    /// The highest attempt number that fits into the id of an attempt.
    pub const MAX: Self = Self(1023);

    /// The attempt number as users see it, counted from 1. The field `attempt` in the API, headers,
    /// environment variables and templates is counted from 1, whereas `retry_attempt` is counted
    /// from 0.
    pub const fn from_one(self) -> u16 {
        self.0.saturating_add(1)
    }
}

named_enum! {
    /// Why a run exists. The discriminants are part of stored keys and of run ids, so they must not
    /// change.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Origin {
        /// A scheduled time of the job was reached.
        Schedule = 0 => "schedule",
        /// A user or client triggered the job.
        Trigger = 1 => "trigger",
        /// A backfill: the run makes up for one scheduled time in the past. No run has the origin
        /// `Backfill` yet; `Backfill` is reserved for future use.
        Backfill = 2 => "backfill",
        /// A dead letter was redriven.
        Redrive = 3 => "redrive",
        /// A run of another job, on which this job depends, has finished. No run has the origin
        /// `Dependency` yet; `Dependency` is reserved for future use.
        Dependency = 4 => "dependency",
    }
}

impl Origin {
    /// Returns `None` for the number of an origin that this version of Evenkeel does not know.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        let index = bits as usize;
        if index < Self::ALL.len() { Some(Self::ALL[index]) } else { None }
    }
}

/// Distinguishes runs of one job that have the same scheduled time, by an origin and a number that
/// is unique within the origin.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sequence {
    origin: Origin,
    number: u16,
}

impl Sequence {
    /// The [`Sequence`] of all runs that the scheduler fires.
    pub const REGULAR: Self = Self { origin: Origin::Schedule, number: 0 };
    /// Number of different sequence numbers per origin.
    pub const NUMBERS: u32 = 1 << 16;

    /// Takes `n` modulo [`Sequence::NUMBERS`].
    pub const fn new(origin: Origin, n: u32) -> Self {
        Self { origin, number: (n % Self::NUMBERS) as u16 }
    }

    /// Decodes the stored number of a sequence. Returns `None` if the origin is unknown or the
    /// number has more than 20 bits.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match Origin::from_bits(bits >> 16) {
            Some(origin) => Some(Self::new(origin, bits)),
            None => None,
        }
    }

    /// Encodes the sequence as a number: 4 bits for the origin, then 16 bits for `n`.
    pub const fn bits(self) -> u32 {
        (self.origin as u32) << 16 | self.number as u32
    }

    pub const fn origin(self) -> Origin {
        self.origin
    }
}

/// The primary key of one attempt of a run. Attempt keys have the same sort order in this program
/// and in the stores.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptKey {
    pub scheduled_at: Timestamp,
    pub job_no: JobNo,
    pub sequence: Sequence,
    pub attempt: AttemptNo,
}

impl AttemptKey {
    /// Returns the key of the first attempt of the run for the scheduled time `scheduled_at`.
    pub const fn regular(job_no: JobNo, scheduled_at: Timestamp) -> Self {
        Self { scheduled_at, job_no, sequence: Sequence::REGULAR, attempt: AttemptNo::FIRST }
    }

    pub const fn with_attempt(self, attempt: AttemptNo) -> Self {
        Self { attempt, ..self }
    }

    /// Returns the key of the run's first attempt. Two attempts belong to the same run if and only
    /// if `first_attempt` is equal for both.
    pub const fn first_attempt(self) -> Self {
        self.with_attempt(AttemptNo::FIRST)
    }
}

/// The text form of an attempt key is for the server's log, where job numbers may be shown.
impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheduled_at, job_no, sequence, attempt } = self;
        let (origin, number) = (sequence.origin.as_str(), sequence.number);
        write!(f, "attempt {attempt} of job {job_no} at {scheduled_at} ({origin} {number})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_bits_read_back_and_unknown_origins_are_refused() {
        for code in 0..16 {
            let bits = code << 16 | 65_535;
            let sequence = Sequence::from_bits(bits);
            assert_eq!(sequence.is_some(), code < 5, "{code}");
            assert_eq!(sequence.map_or(bits, Sequence::bits), bits);
        }
        assert_eq!(Sequence::from_bits(1 << 20), None);
        assert_eq!(Sequence::new(Origin::Trigger, 65_537), Sequence::new(Origin::Trigger, 1));
    }

    #[test]
    fn sequences_sort_as_their_bits() {
        let all = [(0, 0), (0, 9), (1, 0), (1, 65_535), (4, 3)];
        let bits = all.map(|(origin, number)| origin << 16 | number);
        assert!(bits.map(|bits| Sequence::from_bits(bits).unwrap()).is_sorted());
    }
}
