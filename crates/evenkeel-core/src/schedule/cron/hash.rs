//! Replaces `H` with a number that is computed from the job, so that jobs with the same cron
//! expression run at different times.

use std::fmt;

use super::fault::{Misread, Piece};
use super::field::Field;
use super::item::{number, step};
use crate::hash::mix;

/// Number of random numbers per job: one for each cron field, and one for the skew (a delay).
const DRAWS: usize = 7;

/// The constant random numbers of a job: one per cron field, and the last for the skew (a delay).
#[derive(Copy, Clone, Debug)]
pub(super) struct Draws([u64; DRAWS]);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(std::array::from_fn(|index| {
            mix(seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        }))
    }

    pub fn of(self, field: Field) -> u64 {
        self.0[field as usize]
    }

    pub fn with(mut self, field: Field, draw: u64) -> Self {
        self.0[field as usize] = draw;
        self
    }

    /// Returns how many seconds after each time of its cron expression the job runs.
    pub fn skew_secs(self) -> u8 {
        (self.0[DRAWS - 1] % 60) as u8
    }
}

/// A resolved `H`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Hashed {
    pub first: u32,
    pub last: u32,
    /// 0 for a single number.
    pub step: u32,
}

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, step } = self;
        if *step == 0 { write!(f, "{first}") } else { write!(f, "{first}-{last}/{step}") }
    }
}

impl Hashed {
    /// Reads `H`, `H(0-29)`, `H/15` or `H(0-29)/10` with the job's random number `draw`.
    pub fn read(item: Piece<'_>, field: Field, draw: u64) -> Result<Self, Misread> {
        let (base, every) = match item.cut('/') {
            Some((base, every)) => (base, Some(step(every, field)?)),
            None => (item, None),
        };
        let (first, last) = range(base.skip(1), field)?;
        let size = last - first + 1;
        if every.is_some_and(|every| every > size) {
            let last_step = format!("the step is longer than its range, {first}-{last}");
            return Err(item.fault(format!("{last_step}: write {} alone", base.text)));
        }
        let drawn = first + (draw % u64::from(every.unwrap_or(size))) as u32;
        Ok(match every {
            None => Self { first: drawn, last: drawn, step: 0 },
            Some(step) => Self { first: drawn, last, step },
        })
    }
}

/// Reads the optional range in brackets after an `H` in a cron expression.
fn range(brackets: Piece<'_>, field: Field) -> Result<(u32, u32), Misread> {
    let (low, high) = field.hashed();
    if brackets.text.is_empty() {
        return Ok((low, high));
    }
    let wrong =
        || brackets.fault(format!("after H, write a range in brackets, like H({low}-{high})"));
    let inner = brackets.text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let inner = brackets.skip(1).take(inner.ok_or_else(wrong)?.len());
    let (first, last) = inner.cut('-').ok_or_else(wrong)?;
    let (first, last) = (number(first, field)?, number(last, field)?);
    if first > last {
        return Err(inner.fault(format!("a range goes upwards: write {last}-{first}")));
    }
    Ok((first, last))
}
