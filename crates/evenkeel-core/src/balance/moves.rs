//! Encodes the list of jobs that a rebalance moves to other start times.
//!
//! The encoding consists of a version, the unit of time and the list of moves. Numbers have a
//! variable length with seven bits per byte. Most numbers are stored as the difference from the
//! previous move. The key of each load profile is stored once. Each moved job takes about ten
//! bytes.

use std::collections::HashMap;

use super::load_profile::LoadProfileKey;
use crate::ids::JobNo;
use crate::time::Timestamp;

/// A job that a rebalance moves to another start time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Move {
    pub job: JobNo,
    /// The job is moved only if it still has this generation and its next scheduled time is still
    /// `old_at`.
    pub generation: i32,
    /// The job's next scheduled time before the move.
    pub old_at: Timestamp,
    /// The job's next scheduled time after the move.
    pub new_at: Timestamp,
    /// The job's load profile after the move.
    pub profile: LoadProfileKey,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the stored moves of a rebalance cannot be read")]
pub struct MovesError;

const VERSION: u8 = 1;

/// Most jobs run at whole seconds, and times in seconds need fewer bytes than times in
/// microseconds.
const SECOND: i64 = 1_000_000;

pub fn encode_moves(moves: &[Move]) -> Vec<u8> {
    let is_whole = |at: Timestamp| at.as_micros() % SECOND == 0;
    let are_whole = moves.iter().all(|it| is_whole(it.old_at) && is_whole(it.new_at));
    let unit = if are_whole { SECOND } else { 1 };
    let mut stored = Vec::with_capacity(16 + 12 * moves.len());
    stored.extend([VERSION, u8::from(are_whole)]);
    let mut keys: HashMap<LoadProfileKey, u64> = HashMap::new();
    let (mut job, mut old_at) = (0, 0);
    for it in moves {
        let at = it.old_at.as_micros() / unit;
        put_signed(&mut stored, it.job.0.wrapping_sub(job));
        put_signed(&mut stored, i64::from(it.generation));
        put_signed(&mut stored, at.wrapping_sub(old_at));
        put_signed(&mut stored, (it.new_at.as_micros() / unit).wrapping_sub(at));
        let known = keys.len() as u64;
        let key = *keys.entry(it.profile).or_insert(known);
        put(&mut stored, key);
        if key == known {
            stored.extend(it.profile.0.to_le_bytes());
        }
        (job, old_at) = (it.job.0, at);
    }
    stored
}

pub fn decode_moves(stored: &[u8]) -> Result<Vec<Move>, MovesError> {
    let [VERSION, are_whole @ (0 | 1), rest @ ..] = stored else { return Err(MovesError) };
    let unit = if *are_whole == 1 { SECOND } else { 1 };
    let mut rest = rest;
    // The lists grow while bytes are read and are not allocated by a stored length, so a corrupt
    // record cannot exhaust the memory.
    let (mut moves, mut keys) = (Vec::new(), Vec::new());
    let (mut job, mut old_at) = (0_i64, 0_i64);
    while !rest.is_empty() {
        job = job.wrapping_add(take_signed(&mut rest)?);
        let generation = i32::try_from(take_signed(&mut rest)?).map_err(|_| MovesError)?;
        old_at = old_at.wrapping_add(take_signed(&mut rest)?);
        let new_at = old_at.wrapping_add(take_signed(&mut rest)?);
        let key = usize::try_from(take(&mut rest)?).map_err(|_| MovesError)?;
        if key == keys.len() {
            let (bytes, after) = rest.split_first_chunk().ok_or(MovesError)?;
            keys.push(LoadProfileKey(i64::from_le_bytes(*bytes)));
            rest = after;
        }
        moves.push(Move {
            job: JobNo(job),
            generation,
            old_at: time(old_at, unit)?,
            new_at: time(new_at, unit)?,
            profile: *keys.get(key).ok_or(MovesError)?,
        });
    }
    Ok(moves)
}

fn time(units: i64, unit: i64) -> Result<Timestamp, MovesError> {
    let at = Timestamp::from_micros(units.checked_mul(unit).ok_or(MovesError)?);
    if (Timestamp::MIN..=Timestamp::MAX).contains(&at) { Ok(at) } else { Err(MovesError) }
}

/// Zigzag encoding: small numbers of either sign become small unsigned numbers.
fn put_signed(stored: &mut Vec<u8>, number: i64) {
    put(stored, (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
}

fn put(stored: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        stored.push(number as u8 | 0x80);
        number >>= 7;
    }
    stored.push(number as u8);
}

fn take_signed(rest: &mut &[u8]) -> Result<i64, MovesError> {
    let number = take(rest)?;
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

fn take(rest: &mut &[u8]) -> Result<u64, MovesError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(MovesError)?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte of a number holds only one bit.
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(MovesError)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_time() -> impl Strategy<Value = Timestamp> {
        prop_oneof![
            (0_i64..1 << 52).prop_map(Timestamp::from_micros),
            (0_i64..1 << 32).prop_map(|secs| Timestamp::from_micros(secs * SECOND)),
        ]
    }

    fn any_move() -> impl Strategy<Value = Move> {
        let key = prop_oneof![any::<i64>(), 1_i64..4];
        (any::<i64>(), any::<i32>(), any_time(), any_time(), key).prop_map(
            |(job, generation, old_at, new_at, key)| Move {
                job: JobNo(job),
                generation,
                old_at,
                new_at,
                profile: LoadProfileKey(key),
            },
        )
    }

    proptest! {
        #[test]
        fn moves_read_back_as_stored(moves in prop::collection::vec(any_move(), 0..50)) {
            prop_assert_eq!(decode_moves(&encode_moves(&moves)), Ok(moves));
        }

        #[test]
        fn decoder_never_panics(
            head in prop::sample::select(vec![vec![], vec![1, 0], vec![1, 1], vec![1, 2], vec![2, 0]]),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(moves) = decode_moves(&[head, bytes].concat()) {
                prop_assert_eq!(decode_moves(&encode_moves(&moves)), Ok(moves));
            }
        }

        #[test]
        fn truncated_record_holds_no_partial_move(
            moves in prop::collection::vec(any_move(), 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let stored = encode_moves(&moves);
            let cut = &stored[..cut.index(stored.len())];
            if let Ok(left) = decode_moves(cut) {
                prop_assert_eq!(&moves[..left.len()], &left[..]);
            }
        }
    }

    #[test]
    fn thousand_moves_are_small() {
        let moves: Vec<Move> = (0..1000)
            .map(|n| Move {
                job: JobNo(5_000_000 + 7 * n),
                generation: 3,
                old_at: Timestamp::from_micros((1_764_590_400 + n * 37 % 900) * SECOND),
                new_at: Timestamp::from_micros((1_764_590_400 + n * 977 % 86_400) * SECOND),
                profile: LoadProfileKey(n % 96 * 0x1e37_79b9_7f4a),
            })
            .collect();
        let stored = encode_moves(&moves);
        assert!(stored.len() < 11_000, "{} bytes", stored.len());
        assert_eq!(decode_moves(&stored), Ok(moves));
    }

    #[test]
    fn empty_record_has_no_moves_and_another_version_is_refused() {
        assert_eq!(decode_moves(&encode_moves(&[])), Ok(Vec::new()));
        assert_eq!(decode_moves(&[]), Err(MovesError));
        assert_eq!(decode_moves(&[2, 0]), Err(MovesError));
    }
}
