//! Cursors: opaque texts that mark a position in a paged list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::secret::is_name;
use evenkeel_core::{AttemptId, AttemptKey, NodeNo, RunIds, TenantNo, Timestamp};
use evenkeel_store::{AuditCursor, DeadCursor, FailureCursor, JobCursor, PageNo, RiskCursor};
use uuid::Uuid;

/// A position in a list.
pub(crate) trait CursorKey: Sized {
    /// First byte of an encoded cursor, which shows to which list the cursor belongs.
    const TAG: u8;
    fn to_bytes(self, ids: &RunIds) -> Vec<u8>;
    fn from_bytes(bytes: &[u8], ids: &RunIds) -> Option<Self>;
}

/// Encodes a cursor whose page starts after the item with `key`.
pub(crate) fn encode<C: CursorKey>(key: C, ids: &RunIds) -> String {
    URL_SAFE_NO_PAD.encode([&[C::TAG], &key.to_bytes(ids)[..]].concat())
}

/// Decodes a cursor; returns `None` if the text is not a cursor of this list.
pub(crate) fn decode<C: CursorKey>(cursor: &str, ids: &RunIds) -> Option<C> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (tag, key) = bytes.split_first()?;
    if *tag == C::TAG { C::from_bytes(key, ids) } else { None }
}

/// Implements [`CursorKey`] for a type whose position fits into 16 bytes. The macro's arguments are
/// the type, its tag, and the conversions to and from `u128`.
macro_rules! cursor_key {
    ($key:ty, $tag:literal, $to_bits:expr, $from_bits:expr) => {
        impl $crate::cursor::CursorKey for $key {
            const TAG: u8 = $tag;

            fn to_bytes(self, ids: &evenkeel_core::RunIds) -> Vec<u8> {
                let to_bits: fn(Self, &evenkeel_core::RunIds) -> u128 = $to_bits;
                to_bits(self, ids).to_be_bytes().to_vec()
            }

            fn from_bytes(bytes: &[u8], ids: &evenkeel_core::RunIds) -> Option<Self> {
                let from_bits: fn(u128, &evenkeel_core::RunIds) -> Option<Self> = $from_bits;
                from_bits(u128::from_be_bytes(bytes.try_into().ok()?), ids)
            }
        }
    };
}

pub(crate) use cursor_key;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RebalanceCursor(pub(crate) Uuid);

/// Index of a job in the list of jobs that a rebalance moves, counted from 0.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MovePosition(pub(crate) u64);

cursor_key!(
    JobCursor,
    b'j',
    |key, ids| {
        let at = key.at.cast_unsigned();
        pair(at, ids.hide_job(key.no, at))
    },
    |bits, ids| {
        let at = high(bits);
        Some(Self { at: at.cast_signed(), no: ids.show_job(bits as u64, at)? })
    }
);
cursor_key!(
    RiskCursor,
    b'c',
    |(error_at, job), ids| {
        let at = error_at.as_micros().cast_unsigned();
        pair(at, ids.hide_job(job, at))
    },
    |bits, ids| Some((time(bits), ids.show_job(bits as u64, high(bits))?))
);
cursor_key!(AttemptKey, b'r', |key, ids| ids.attempt_id(key).as_u128(), |bits, ids| {
    AttemptId::from_u128(bits).map(|id| ids.key(id))
});
cursor_key!(
    FailureCursor,
    b'f',
    |(at, fingerprint), _| pair(at.as_micros().cast_unsigned(), fingerprint.0),
    |bits, _| Some((time(bits), Fingerprint(bits as u64)))
);
cursor_key!(
    AuditCursor,
    b'a',
    |key, _| pair(key.at.as_micros().cast_unsigned(), key.no.cast_unsigned()),
    |bits, _| Some(Self { at: time(bits), no: (bits as u64).cast_signed() })
);
cursor_key!(PageNo, b'p', |no, _| no.0.unsigned_abs().into(), |bits, _| i64::try_from(bits)
    .ok()
    .map(Self));
// Targets are sorted by number.
cursor_key!(i64, b't', |no, _| no.unsigned_abs().into(), |bits, _| Self::try_from(bits).ok());
cursor_key!(NodeNo, b'n', |no, _| no.0.unsigned_abs().into(), |bits, _| i32::try_from(bits)
    .ok()
    .map(Self));
cursor_key!(Uuid, b'k', |id, _| id.as_u128(), |bits, _| Some(Self::from_u128(bits)));
cursor_key!(RebalanceCursor, b'b', |id, _| id.0.as_u128(), |bits, _| Some(Self(Uuid::from_u128(
    bits
))));
cursor_key!(MovePosition, b'm', |no, _| no.0.into(), |bits, _| u64::try_from(bits).ok().map(Self));

fn pair(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn high(bits: u128) -> u64 {
    (bits >> 64) as u64
}

/// Returns the timestamp that is in the upper 64 bits of a cursor.
fn time(bits: u128) -> Timestamp {
    Timestamp::from_micros(high(bits).cast_signed())
}

/// Encodes the time of the dead letter, followed by the key of its attempt.
impl CursorKey for DeadCursor {
    const TAG: u8 = b'd';

    fn to_bytes(self, ids: &RunIds) -> Vec<u8> {
        [&self.died_at.as_micros().to_be_bytes()[..], &self.key.to_bytes(ids)].concat()
    }

    fn from_bytes(bytes: &[u8], ids: &RunIds) -> Option<Self> {
        let (at, key) = bytes.split_first_chunk()?;
        let died_at = Timestamp::from_micros(i64::from_be_bytes(*at));
        Some(Self { died_at, key: AttemptKey::from_bytes(key, ids)? })
    }
}

/// A position in the list of a tenant's secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SecretName(pub(crate) String);

impl CursorKey for SecretName {
    const TAG: u8 = b'n';

    fn to_bytes(self, _: &RunIds) -> Vec<u8> {
        self.0.into_bytes()
    }

    fn from_bytes(bytes: &[u8], _: &RunIds) -> Option<Self> {
        let name = std::str::from_utf8(bytes).ok().filter(|name| is_name(name))?;
        Some(Self(name.to_owned()))
    }
}

/// A position in the list of the secrets of all tenants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SecretPosition(pub(crate) TenantNo, pub(crate) String);

impl CursorKey for SecretPosition {
    const TAG: u8 = b's';

    fn to_bytes(self, _: &RunIds) -> Vec<u8> {
        [&self.0.0.to_be_bytes()[..], self.1.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8], ids: &RunIds) -> Option<Self> {
        let (tenant, name) = bytes.split_first_chunk()?;
        let SecretName(name) = SecretName::from_bytes(name, ids)?;
        Some(Self(TenantNo(i32::from_be_bytes(*tenant)), name))
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{AttemptNo, JobNo, Origin, Sequence};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cursor_is_valid_for_its_own_list_only(
            job in 0_i64..1 << 40, time in 0_i64..1 << 52, n in any::<u32>(), attempt in 0_u16..1024,
        ) {
            let ids = RunIds::new(b"test");
            let job = JobNo(job);
            let place = JobCursor { at: time, no: job };
            prop_assert_eq!(decode(&encode(place, &ids), &ids), Some(place));
            let key = AttemptKey {
                scheduled_at: Timestamp::from_micros(time),
                job_no: job,
                sequence: Sequence::new(Origin::Trigger, n),
                attempt: AttemptNo(attempt),
            };
            prop_assert_eq!(decode(&encode(key, &ids), &ids), Some(key));
            let risk: RiskCursor = (Timestamp::from_micros(time), job);
            prop_assert_eq!(decode(&encode(risk, &ids), &ids), Some(risk));
            let failure: FailureCursor = (Timestamp::from_micros(time), Fingerprint(n.into()));
            prop_assert_eq!(decode(&encode(failure, &ids), &ids), Some(failure));
            let audit = AuditCursor { at: Timestamp::from_micros(time), no: job.0 };
            prop_assert_eq!(decode(&encode(audit, &ids), &ids), Some(audit));
            let dead = DeadCursor { died_at: Timestamp::from_micros(time + 7), key };
            prop_assert_eq!(decode(&encode(dead, &ids), &ids), Some(dead));
            let name = SecretName("a.b".into());
            prop_assert_eq!(decode(&encode(name.clone(), &ids), &ids), Some(name));
            let secret = SecretPosition(TenantNo(n as i32), "a".into());
            prop_assert_eq!(decode(&encode(secret.clone(), &ids), &ids), Some(secret));
            prop_assert_eq!(decode::<DeadCursor>(&encode(key, &ids), &ids), None);
            prop_assert_eq!(decode::<AuditCursor>(&encode(place, &ids), &ids), None);
            prop_assert_eq!(decode::<JobCursor>(&encode(key, &ids), &ids), None);
            prop_assert_eq!(decode::<JobCursor>(&encode(risk, &ids), &ids), None);
            prop_assert_eq!(decode::<AttemptKey>(&encode(place, &ids), &ids), None);
        }

        #[test]
        fn cursor_reader_accepts_any_text(text in any::<String>()) {
            let ids = RunIds::new(b"test");
            prop_assert!(decode::<JobCursor>(&text, &ids).is_none_or(|key| encode(key, &ids) == text));
        }
    }
}
