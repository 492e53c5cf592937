//! How late attempts started, as a histogram.

use crate::time::Span;

/// Upper bounds of the buckets, inclusive. The last bucket has no upper bound. The stores save the
/// counts by bucket, so the bounds of an installation with data must not change.
pub const LATENESS_BOUNDS: [Span; 9] = [
    Span::from_millis(10),
    Span::from_millis(50),
    Span::from_millis(100),
    Span::from_millis(250),
    Span::from_millis(500),
    Span::from_secs(1),
    Span::from_secs(5),
    Span::from_secs(30),
    Span::from_secs(300),
];

pub const LATENESS_BUCKETS: usize = LATENESS_BOUNDS.len() + 1;

/// Number of starts by lateness: the time from the earliest allowed start to the start.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    buckets: [u64; LATENESS_BUCKETS],
    max: Span,
}

impl Lateness {
    /// Reads a histogram that a store has saved. Missing buckets are empty.
    pub fn from_buckets(counts: &[u64], max: Span) -> Self {
        let mut buckets = [0; LATENESS_BUCKETS];
        for (bucket, count) in buckets.iter_mut().zip(counts) {
            *bucket = *count;
        }
        Self { buckets, max }
    }

    /// Returns the number of starts in each bucket.
    pub fn buckets(&self) -> &[u64; LATENESS_BUCKETS] {
        &self.buckets
    }

    pub fn record(&mut self, lateness: Span) {
        let bucket = LATENESS_BOUNDS.iter().position(|bound| lateness <= *bound);
        self.buckets[bucket.unwrap_or(LATENESS_BOUNDS.len())] += 1;
        self.max = self.max.max(lateness);
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the largest lateness, or `None` if nothing started.
    pub fn max(&self) -> Option<Span> {
        (self.count() > 0).then_some(self.max)
    }

    /// Returns a lateness that `percent` of the starts did not exceed, or `None` if nothing
    /// started.
    ///
    /// The result is the upper bound of the bucket in which the quantile lies, or the largest
    /// lateness if that is smaller, so the result is never too low.
    pub fn percentile(&self, percent: u8) -> Option<Span> {
        let wanted = u128::from(self.count()) * u128::from(percent.min(100));
        let rank = wanted.div_ceil(100).max(1);
        let mut starts = 0;
        let bucket = self.buckets.iter().position(|count| {
            starts += u128::from(*count);
            starts >= rank
        })?;
        Some(LATENESS_BOUNDS.get(bucket).map_or(self.max, |bound| self.max.min(*bound)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(all: &[u64]) -> Lateness {
        let mut lateness = Lateness::default();
        all.iter().for_each(|micros| lateness.record(Span::from_micros(*micros)));
        lateness
    }

    #[test]
    fn bucket_includes_its_upper_bound() {
        let lateness = of(&[0, 10_000, 10_001, 300_000_000, 300_000_001]);
        assert_eq!(lateness.buckets(), &[2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn percentile_is_the_upper_bound_of_its_bucket() {
        let mut all = vec![3_000; 98];
        all.extend([70_000, 900_000]);
        let lateness = of(&all);
        assert_eq!(lateness.percentile(50), Some(Span::from_millis(10)));
        assert_eq!(lateness.percentile(99), Some(Span::from_millis(100)));
        assert_eq!(lateness.percentile(100), Some(Span::from_millis(900)));
    }

    #[test]
    fn percentile_of_the_last_bucket_is_the_largest_lateness() {
        let lateness = of(&[1, 7_200_000_000]);
        assert_eq!(lateness.percentile(99), Some(Span::from_secs(7200)));
        assert_eq!(
            (lateness.percentile(0), lateness.max()),
            (Some(Span::from_millis(10)), Some(Span::from_secs(7200)))
        );
    }

    #[test]
    fn lateness_without_starts_has_no_percentile() {
        assert_eq!((of(&[]).percentile(50), of(&[]).max()), (None, None));
    }

    proptest! {
        /// The estimate is compared with the exact quantile of the sorted values.
        #[test]
        fn percentile_is_never_too_low_and_at_most_one_bucket_too_high(
            mut all in prop::collection::vec(0_u64..1_000_000_000, 1..200),
            percent in 1_u8..=100,
        ) {
            let estimate = of(&all).percentile(percent).unwrap();
            all.sort_unstable();
            let rank = (all.len() * usize::from(percent)).div_ceil(100);
            let exact = Span::from_micros(all[rank - 1]);
            prop_assert!(estimate >= exact);
            let bound = LATENESS_BOUNDS.into_iter().find(|bound| exact <= *bound);
            let largest = Span::from_micros(all[all.len() - 1]);
            prop_assert!(estimate <= bound.unwrap_or(largest));
        }

        #[test]
        fn merged_histograms_equal_one_histogram(
            one in prop::collection::vec(0_u64..1_000_000_000, 0..50),
            other in prop::collection::vec(0_u64..1_000_000_000, 0..50),
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let all: Vec<u64> = one.into_iter().chain(other).collect();
            prop_assert_eq!(merged, of(&all));
            let saved = Lateness::from_buckets(merged.buckets(), merged.max);
            prop_assert_eq!(saved, merged);
        }
    }
}
