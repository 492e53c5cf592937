//! Checks whether a rebalance may move a job.

use super::{Placement, SkipReason};
use crate::balance::settings::BalanceSettings;
use crate::time::Timestamp;

/// Returns why the job must not be moved, or `None` if it may be moved.
pub(super) fn reason_to_stay(
    job: &Placement,
    is_movable: bool,
    settings: &BalanceSettings,
    now: Timestamp,
) -> Option<SkipReason> {
    if !is_movable {
        Some(SkipReason::NotMovable)
    } else if job.is_live {
        Some(SkipReason::JobRunning)
    } else if job.next_at.since(now) <= settings.protection {
        Some(SkipReason::ProtectionWindow)
    } else if now.since(job.placed_at) < settings.cooldown {
        Some(SkipReason::PlacementCooldown)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::plan::samples::{NOON, placement};
    use crate::time::Span;

    fn check(change: impl FnOnce(&mut Placement), is_movable: bool, reason: Option<SkipReason>) {
        let mut job = placement(1, 86_400, NOON.saturating_add(Span::from_secs(7200)));
        change(&mut job);
        let settings = BalanceSettings::default();
        assert_eq!(reason_to_stay(&job, is_movable, &settings, NOON), reason);
    }

    #[test]
    fn job_without_a_reason_to_stay_may_move() {
        check(|_| {}, true, None);
    }

    #[test]
    fn job_within_the_protection_window_stays() {
        let after = |secs| NOON.saturating_add(Span::from_secs(secs));
        check(|job| job.next_at = after(1800), true, Some(SkipReason::ProtectionWindow));
        check(|job| job.next_at = after(1801), true, None);
        let late = NOON.saturating_sub(Span::from_secs(5));
        check(|job| job.next_at = late, true, Some(SkipReason::ProtectionWindow));
    }

    #[test]
    fn job_within_the_placement_cooldown_stays() {
        let before = |secs| NOON.saturating_sub(Span::from_secs(secs));
        check(|job| job.placed_at = before(3599), true, Some(SkipReason::PlacementCooldown));
        check(|job| job.placed_at = before(3600), true, None);
    }

    #[test]
    fn first_of_several_reasons_is_returned() {
        let all = |job: &mut Placement| {
            job.is_live = true;
            job.next_at = NOON;
            job.placed_at = NOON;
        };
        check(all, false, Some(SkipReason::NotMovable));
        check(all, true, Some(SkipReason::JobRunning));
        let soon_and_new = |job: &mut Placement| {
            job.next_at = NOON;
            job.placed_at = NOON;
        };
        check(soon_and_new, true, Some(SkipReason::ProtectionWindow));
    }

    #[test]
    fn only_due_jobs_stay_without_protection_and_cooldown() {
        let settings = BalanceSettings {
            protection: Span::ZERO,
            cooldown: Span::ZERO,
            ..BalanceSettings::default()
        };
        let mut job = placement(1, 86_400, NOON.saturating_add(Span::from_micros(1)));
        job.placed_at = NOON;
        assert_eq!(reason_to_stay(&job, true, &settings, NOON), None);
        job.next_at = NOON;
        let due = reason_to_stay(&job, true, &settings, NOON);
        assert_eq!(due, Some(SkipReason::ProtectionWindow));
    }
}
