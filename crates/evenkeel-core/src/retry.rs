//! Retry policies.

use serde::{Deserialize, Serialize};

use crate::ids::AttemptNo;
use crate::named_enum;
use crate::time::Span;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub max_retries: u16,
    pub backoff: Backoff,
    #[serde(default)]
    pub jitter: Jitter,
}

/// The delay before the n-th retry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The delay is `base` x 2^(n-1), at most `cap`.
    Exponential {
        base: Span,
        cap: Span,
    },
    Fixed {
        delay: Span,
    },
    /// The retries use these delays one after the other; the last delay repeats.
    Stages {
        delays: Vec<Span>,
    },
}

/// How much a random number changes the delay of a retry, in percent, even beyond the cap.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    #[default]
    None,
    Symmetric {
        /// The value 20 means 80 % to 120 % of the delay.
        percent: u8,
    },
    Additive {
        /// The value 30 means 100 % to 130 % of the delay.
        percent: u8,
    },
}

named_enum! {
    /// Named retry policies: the default policy, and one policy for each specification document
    /// that Evenkeel implements.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum Preset {
        Standard => "standard",
        /// Document 001.
        Interval => "interval",
        /// Document 002.
        Queue => "queue",
        /// Document 003.
        Deadline => "deadline",
        /// Document 004.
        CronService => "cron_service",
    }
}

impl Preset {
    pub fn policy(self) -> RetryPolicy {
        match self {
            Self::Standard => RetryPolicy::standard(),
            Self::Interval => RetryPolicy::interval(),
            Self::Queue => RetryPolicy::queue(),
            Self::Deadline => RetryPolicy::deadline(),
            Self::CronService => RetryPolicy::cron_service(),
        }
    }

    /// Returns the preset that equals `policy` in all fields.
    pub fn of(policy: &RetryPolicy) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.policy() == *policy)
    }
}

/// Whether a failed attempt is retried, and after which delay.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The next attempt may start after this delay.
    RetryAfter(Span),
    Exhausted,
}

impl RetryPolicy {
    pub const MAX_RETRIES: u16 = 1000;

    /// Returns the default policy of new jobs: 3 retries with delays from 60 s, doubling up to 1 h,
    /// ±20 % jitter.
    pub fn standard() -> Self {
        Self {
            max_retries: 3,
            backoff: Backoff::Exponential { base: Span::from_secs(60), cap: Span::from_secs(3600) },
            jitter: Jitter::Symmetric { percent: 20 },
        }
    }

    /// Like [`RetryPolicy::standard`], without jitter.
    pub fn interval() -> Self {
        Self { jitter: Jitter::None, ..Self::standard() }
    }

    /// The delay of retries starts at 1 min and doubles up to 1 day, with ±20 % jitter.
    pub fn queue() -> Self {
        Self {
            backoff: Backoff::Exponential {
                base: Span::from_secs(60),
                cap: Span::from_secs(86_400),
            },
            ..Self::standard()
        }
    }

    /// The delays of retries are 5 min, 1 h, and then always 4 h.
    pub fn deadline() -> Self {
        let delays = [300, 3600, 14_400].map(Span::from_secs).to_vec();
        Self {
            max_retries: Self::MAX_RETRIES,
            backoff: Backoff::Stages { delays },
            jitter: Jitter::None,
        }
    }

    /// The delay of retries starts at 2 s and doubles up to 5 min, with up to 30 % added jitter.
    pub fn cron_service() -> Self {
        Self {
            max_retries: 3,
            backoff: Backoff::Exponential { base: Span::from_secs(2), cap: Span::from_secs(300) },
            jitter: Jitter::Additive { percent: 30 },
        }
    }

    /// Returns the delay (without jitter) after the failed attempt `attempt`, even if no retries
    /// are left.
    pub fn pause_after(&self, attempt: AttemptNo) -> Span {
        self.backoff.before_retry(u32::from(attempt.0) + 1)
    }

    /// Decides whether the failed attempt `attempt` is retried. `draw` is a random number from 0
    /// (inclusive) to 1 (exclusive).
    pub fn after_failure(&self, attempt: AttemptNo, draw: f64) -> Verdict {
        if attempt.0 >= self.max_retries.min(AttemptNo::MAX.0) {
            return Verdict::Exhausted;
        }
        let retry = u32::from(attempt.0) + 1;
        Verdict::RetryAfter(self.jitter.apply(self.backoff.before_retry(retry), draw))
    }
}

impl Backoff {
    /// Returns the delay before retry number `retry`, counted from 1.
    fn before_retry(&self, retry: u32) -> Span {
        match self {
            Self::Exponential { base, cap } => {
                let factor = 1_u64.checked_shl(retry - 1).unwrap_or(u64::MAX);
                base.saturating_mul(factor).min(*cap)
            }
            Self::Fixed { delay } => *delay,
            Self::Stages { delays } => {
                let stage = (retry as usize - 1).min(delays.len().saturating_sub(1));
                delays.get(stage).copied().unwrap_or(Span::ZERO)
            }
        }
    }
}

impl Jitter {
    fn apply(self, wait: Span, draw: f64) -> Span {
        let draw = draw.clamp(0.0, 1.0);
        let (percent, unit) = match self {
            Self::None => return wait,
            Self::Symmetric { percent } => (percent, 2.0 * draw - 1.0),
            Self::Additive { percent } => (percent, draw),
        };
        let factor = 1.0 + unit * f64::from(percent.min(100)) / 100.0;
        Span::from_micros((wait.as_micros() as f64 * factor).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waits(policy: &RetryPolicy, draw: f64, retries: u16) -> Vec<u64> {
        (0..retries)
            .map(|attempt| match policy.after_failure(AttemptNo(attempt), draw) {
                Verdict::RetryAfter(wait) => wait.as_millis() / 1000,
                Verdict::Exhausted => panic!("retry {attempt} refused"),
            })
            .collect()
    }

    #[test]
    fn each_preset_has_the_delays_of_its_document() {
        let long = |policy: RetryPolicy| RetryPolicy { max_retries: 20, ..policy };
        assert_eq!(
            waits(&long(RetryPolicy::interval()), 0.9, 8),
            [60, 120, 240, 480, 960, 1920, 3600, 3600]
        );
        assert_eq!(waits(&long(RetryPolicy::queue()), 0.0, 2), [48, 96]);
        assert_eq!(waits(&long(RetryPolicy::queue()), 0.5, 12)[11], 86_400);
        assert_eq!(waits(&RetryPolicy::deadline(), 0.5, 4), [300, 3600, 14_400, 14_400]);
        assert_eq!(waits(&RetryPolicy::cron_service(), 0.0, 3), [2, 4, 8]);
    }

    #[test]
    fn each_preset_is_recognised_by_its_fields() {
        for preset in Preset::ALL {
            assert_eq!(Preset::of(&preset.policy()), Some(preset));
        }
        let other = RetryPolicy { max_retries: 4, ..RetryPolicy::queue() };
        assert_eq!(Preset::of(&other), None);
    }

    #[test]
    fn no_retry_follows_the_last() {
        let policy = RetryPolicy::standard();
        assert!(matches!(policy.after_failure(AttemptNo(2), 0.5), Verdict::RetryAfter(_)));
        assert_eq!(policy.after_failure(AttemptNo(3), 0.5), Verdict::Exhausted);
        let never = RetryPolicy { max_retries: 0, ..policy };
        assert_eq!(never.after_failure(AttemptNo::FIRST, 0.5), Verdict::Exhausted);
    }

    proptest! {
        #[test]
        fn no_input_overflows(
            base in any::<u64>(), cap in any::<u64>(), attempt in 0_u16..1023,
            percent in any::<u8>(), draw in any::<f64>(),
        ) {
            let backoff = Backoff::Exponential {
                base: Span::from_micros(base), cap: Span::from_micros(cap),
            };
            for jitter in [Jitter::Symmetric { percent }, Jitter::Additive { percent }] {
                let policy = RetryPolicy { max_retries: 1000, backoff: backoff.clone(), jitter };
                if let Verdict::RetryAfter(wait) = policy.after_failure(AttemptNo(attempt), draw) {
                    prop_assert!(wait.as_micros() as f64 <= cap as f64 * 2.01);
                }
            }
        }
    }
}
