//! Describes in a sentence what a rebalance would achieve.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use evenkeel_core::balance::{Granularity, Loads, Measure, Plan, SkipReason, Spread};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::Scope;

use super::Balancing;
use super::rebalance::PlanOptions;
use crate::Result;
use crate::describe::counted;

/// Maximum number of jobs for which a suggestion makes a rebalance plan.
const PLANNED_MAX: u64 = 10_000;
/// Minimum balance score at which the suggestion says that a rebalance would gain nothing.
const EVEN_SCORE: f64 = 0.995;
/// Time for which a suggestion is cached, unless the number of jobs or the balance score changes.
const CACHED_FOR: Span = Span::from_secs(30);
/// Maximum number of cached suggestions; a full cache of suggestions is cleared.
const CACHED_MAX: usize = 10_000;

/// The cached suggestions by tenant.
#[derive(Default)]
pub(super) struct Suggestions(Mutex<HashMap<TenantNo, Suggestion>>);

struct Suggestion {
    at: Timestamp,
    /// Number of jobs of the tenant when the suggestion was made.
    jobs: u64,
    score: f64,
    words: String,
}

impl Suggestions {
    fn find(&self, tenant: TenantNo, loads: &Loads, score: f64, now: Timestamp) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = all.get(&tenant)?;
        let is_recent = now >= cached.at && now.since(cached.at) < CACHED_FOR;
        // Balance scores are compared bit by bit, because any difference means that the expected
        // runs have changed.
        let is_same = cached.jobs == loads.jobs() && cached.score.to_bits() == score.to_bits();
        (is_recent && is_same).then(|| cached.words.clone())
    }

    fn keep(&self, tenant: TenantNo, cached: Suggestion) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CACHED_MAX {
            all.clear();
        }
        all.insert(tenant, cached);
    }
}

impl Balancing {
    /// Returns what a rebalance of the tenant's jobs would achieve. Makes a rebalance plan if there
    /// are at most [`PLANNED_MAX`] jobs and no other rebalance plan is being made.
    pub(super) async fn suggestion(
        &self,
        scope: &Scope,
        loads: &Loads,
        now: Timestamp,
    ) -> Result<String> {
        let spread = loads.spread(Measure::Runs, Granularity::Slot);
        let slot = loads.horizon().slot;
        if let Some(words) = without_a_plan(loads.jobs(), &spread, slot) {
            return Ok(words);
        }
        if let Some(words) = self.suggestions.find(scope.tenant, loads, spread.score, now) {
            return Ok(words);
        }
        // A read request does not wait for the rebalance plan of another request.
        let Some(permit) = self.try_planning_permit() else { return Ok(bounds(&spread, slot)) };
        let plan = self.plan(scope, &PlanOptions::default(), permit, now).await?;
        let words = of_plan(&plan);
        let cached =
            Suggestion { at: now, jobs: loads.jobs(), score: spread.score, words: words.clone() };
        self.suggestions.keep(scope.tenant, cached);
        Ok(words)
    }
}

/// Returns a suggestion without making a rebalance plan, if there are no jobs, too many jobs, or if
/// runs are already spread evenly.
fn without_a_plan(jobs: u64, spread: &Spread, slot: Span) -> Option<String> {
    if jobs == 0 {
        return Some("There are no scheduled jobs.".into());
    }
    if spread.score >= EVEN_SCORE {
        return Some(format!(
            "Distribution is as even as these jobs allow (score {}); a rebalance would gain nothing.",
            shown(spread.score)
        ));
    }
    (jobs > PLANNED_MAX).then(|| bounds(spread, slot))
}

/// Describes the best result that any rebalance could achieve.
fn bounds(spread: &Spread, slot: Span) -> String {
    let share = (1.0 - spread.score) * 100.0;
    format!(
        "{share:.1} % of the runs lie above an even spread; the fullest {} has {}, and no rebalance \
         could lower it below {}. A preview says what it would gain.",
        named(slot),
        counted_load(spread.peak),
        shown(spread.least_peak)
    )
}

/// Describes the result that the rebalance plan would achieve.
fn of_plan(plan: &Plan) -> String {
    let (before, after) = (plan.before, plan.after);
    let stay = staying(&plan.skipped_by_reason());
    if plan.moves.is_empty() {
        let score = shown(before.score);
        return if plan.skipped.is_empty() {
            format!("Distribution is acceptable (score {score}); no move would make it more even.")
        } else {
            format!(
                "A rebalance would gain nothing now (score {score}): no job that may be moved makes \
                 it more even{stay}."
            )
        };
    }
    let moved = counted(plan.moves.len() as u64, "job");
    let mut words = format!(
        "A rebalance would raise the score from {} to {} by moving {moved}",
        shown(before.score),
        shown(after.score)
    );
    if after.peak < before.peak {
        words.push_str(&format!(
            ", and lower the fullest {} from {} to {}",
            named(plan.loads_before.horizon().slot),
            counted_load(before.peak),
            counted_load(after.peak)
        ));
    }
    words.push_str(&stay);
    words.push('.');
    words
}

/// Returns a text such as `; 3 jobs stay (2 protection_window, 1 job_running)`.
fn staying(reasons: &BTreeMap<SkipReason, u64>) -> String {
    let total: u64 = reasons.values().sum();
    if total == 0 {
        return String::new();
    }
    let each: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {}", reason.as_str())).collect();
    let verb = if total == 1 { "stays" } else { "stay" };
    format!("; {} {verb} ({})", counted(total, "job"), each.join(", "))
}

/// Returns a text such as `15-minute slot`.
fn named(slot: Span) -> String {
    let secs = slot.as_micros() / 1_000_000;
    match secs {
        3600 => "1-hour slot".into(),
        _ if secs.is_multiple_of(60) => format!("{}-minute slot", secs / 60),
        _ => format!("{secs}-second slot"),
    }
}

fn counted_load(load: f64) -> String {
    let shown = shown(load);
    if shown == "1" { "1 run".into() } else { format!("{shown} runs") }
}

/// Formats a number with at most two decimals, without trailing zeros.
fn shown(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_core::balance::BalanceSettings;
    use evenkeel_core::chance::Chance;
    use evenkeel_store::{JobStore as _, Now, Role, Store as _};
    use evenkeel_store_testkit::fixtures::{START, new_job};
    use evenkeel_store_testkit::model::ModelStore;

    use super::super::Balance;
    use super::*;

    struct Seven;

    impl Chance for Seven {
        fn bits(&self) -> u64 {
            7
        }
    }

    #[tokio::test]
    async fn suggestion_does_not_wait_for_another_plan() {
        let store = ModelStore::new(Arc::new(|| START));
        let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Operator };
        let job = |n: i64| new_job(&format!("job {n}")).every(86_400).first_at(21_600 + n).build();
        store.register(&scope, (0..20).map(job).collect(), Now::At(START)).await.unwrap();
        let balance = Balance::new(Arc::new(store), BalanceSettings::default());
        let balancing = Balancing::new(balance, Arc::new(Seven));
        let words = async || balancing.distribution(&scope).await.unwrap().suggestion;
        let permit = balancing.try_planning_permit().unwrap();
        assert!(words().await.contains("A preview says what it would gain"));
        drop(permit);
        let words = words().await;
        assert!(words.contains("20 jobs stay (20 placement_cooldown)"), "{words}");
    }

    const SLOT: Span = Span::from_secs(900);

    fn spread(score: f64, peak: f64) -> Spread {
        Spread { score, peak, peak_at: 0, mean: 3.0, least_peak: 4.0 }
    }

    #[test]
    fn even_load_needs_no_rebalance() {
        let cached = |jobs, spread| without_a_plan(jobs, &spread, SLOT);
        assert_eq!(cached(0, spread(1.0, 0.0)).unwrap(), "There are no scheduled jobs.");
        assert!(cached(9, spread(1.0, 4.0)).unwrap().contains("as even as these jobs allow"));
        assert_eq!(cached(9, spread(0.5, 9.0)), None);
    }

    #[test]
    fn suggestion_for_very_many_jobs_gives_bounds() {
        let words = without_a_plan(1_000_000, &spread(0.651, 48.0), SLOT).unwrap();
        for part in ["34.9 %", "the fullest 15-minute slot has 48 runs", "lower it below 4"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!(
            (shown(12.0), shown(0.9), shown(0.666)),
            ("12".into(), "0.9".into(), "0.67".into())
        );
        assert_eq!(counted_load(1.0), "1 run");
        let named = |secs| named(Span::from_secs(secs));
        assert_eq!((named(900), named(3600)), ("15-minute slot".into(), "1-hour slot".into()));
        assert_eq!((named(60), named(90)), ("1-minute slot".into(), "90-second slot".into()));
    }

    #[test]
    fn skipped_jobs_are_counted_by_reason() {
        let reasons = [(SkipReason::JobRunning, 1), (SkipReason::ProtectionWindow, 2)];
        assert_eq!(
            staying(&reasons.into_iter().collect()),
            "; 3 jobs stay (1 job_running, 2 protection_window)"
        );
        assert_eq!(staying(&BTreeMap::new()), "");
    }
}
