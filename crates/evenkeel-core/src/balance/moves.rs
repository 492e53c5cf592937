//! Moves of a rebalance, as they are stored.

use super::rhythm::RhythmKey;
use crate::ids::JobNo;
use crate::time::Timestamp;

/// A job that gets another time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Which.
    pub job: JobNo,
    /// Only if this is its generation.
    pub generation: i32,
    /// And this its next time.
    pub old_at: Timestamp,
    /// Its next time from then on.
    pub new_at: Timestamp,
    /// Its rhythm from then on.
    pub rhythm: RhythmKey,
}

/// Stored moves that cannot be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("these are no moves of a rebalance")]
pub struct MovesError;

/// Moves, as they are stored.
pub fn encode_moves(_moves: &[Move]) -> Vec<u8> {
    unimplemented!()
}

/// Stored moves.
pub fn decode_moves(_stored: &[u8]) -> Result<Vec<Move>, MovesError> {
    unimplemented!()
}
