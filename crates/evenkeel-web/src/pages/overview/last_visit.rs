//! When this browser last showed the overview, so that the page can say what failed since then.
//!
//! The cookie holds two times: the end of the visit before, and the last time that the page was
//! loaded. Open pages load themselves again, so a visit ends when the page was not loaded for a while.

use axum::http::HeaderMap;
use axum::response::Response;
use evenkeel_core::{Span, Timestamp};

use crate::{Web, cookies};

const COOKIE: &str = "evenkeel_seen";
/// A page that was not loaded for this long has been left.
const VISIT_ENDS_AFTER: Span = Span::from_secs(30 * 60);
/// The cookie is written again after this time, and not each time that the page loads itself.
const WRITTEN_EVERY: Span = Span::from_secs(60);
/// The period that the page shows on the first visit.
const FIRST_VISIT_SHOWS: Span = Span::from_secs(24 * 3600);

/// From when on the page lists failures.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Since {
    /// The time is in the URL.
    Chosen(Timestamp),
    LastVisit(Timestamp),
    /// This browser shows the overview for the first time.
    FirstVisit(Timestamp),
}

impl Since {
    pub(super) fn at(self) -> Timestamp {
        match self {
            Self::Chosen(at) | Self::LastVisit(at) | Self::FirstVisit(at) => at,
        }
    }
}

/// The visits of a browser.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Visits {
    /// When the page was last loaded in the visit before this one; `None` in the first visit.
    before: Option<Timestamp>,
    /// When the page was last loaded.
    seen: Timestamp,
}

impl Visits {
    fn read(cookie: &str, now: Timestamp) -> Option<Self> {
        let (before, seen) = cookie.split_once('.')?;
        let time = |text: &str| {
            let seconds: i64 = text.parse().ok()?;
            Some(Timestamp::from_micros(seconds.checked_mul(1_000_000)?))
        };
        let (before, seen) = (time(before)?, time(seen)?);
        let before = (before.as_micros() > 0).then_some(before);
        (before < Some(seen) && seen <= now).then_some(Self { before, seen })
    }

    fn text(self) -> String {
        let seconds = |time: Timestamp| time.as_micros() / 1_000_000;
        format!("{}.{}", self.before.map_or(0, seconds), seconds(self.seen))
    }

    /// Returns the visits after the page was loaded now.
    fn after(known: Option<Self>, now: Timestamp) -> Self {
        match known {
            None => Self { before: None, seen: now },
            Some(known) if now.since(known.seen) > VISIT_ENDS_AFTER => {
                Self { before: Some(known.seen), seen: now }
            }
            Some(known) if now.since(known.seen) > WRITTEN_EVERY => Self { seen: now, ..known },
            Some(known) => known,
        }
    }
}

/// The last visit of the browser that sends a request.
pub(super) struct LastVisit {
    known: Option<Visits>,
    visits: Visits,
}

impl LastVisit {
    pub(super) fn of(headers: &HeaderMap, now: Timestamp) -> Self {
        let known = cookies::find(headers, COOKIE).and_then(|text| Visits::read(text, now));
        Self { known, visits: Visits::after(known, now) }
    }

    pub(super) fn since(&self, now: Timestamp) -> Since {
        match self.visits.before {
            Some(before) => Since::LastVisit(before),
            None => Since::FirstVisit(now.saturating_sub(FIRST_VISIT_SHOWS)),
        }
    }

    pub(super) fn remember(&self, web: &Web, response: &mut Response) {
        if self.known != Some(self.visits) {
            cookies::set(response, COOKIE, &self.visits.text(), web.is_tls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_micros((1_700_000_000 + minutes * 60) * 1_000_000)
    }

    /// Returns when the visit before ended, after each time that the page was loaded.
    fn visits(minutes: &[i64]) -> Vec<Option<Timestamp>> {
        let mut cookie = None::<String>;
        let mut found = Vec::new();
        for now in minutes.iter().map(|it| at(*it)) {
            let known = cookie.as_deref().and_then(|text| Visits::read(text, now));
            let visits = Visits::after(known, now);
            found.push(visits.before);
            cookie = Some(visits.text());
        }
        found
    }

    #[test]
    fn visit_lasts_while_the_page_is_loaded_again_and_again() {
        assert_eq!(visits(&[0, 1, 20, 45, 70]), [None; 5]);
        let second = Some(at(0));
        assert_eq!(visits(&[0, 60, 85, 110]), [None, second, second, second]);
        assert_eq!(visits(&[0, 60, 200])[2], Some(at(60)));
    }

    #[test]
    fn cookie_is_written_at_most_once_a_minute() {
        let first = Visits::after(None, at(0));
        assert_eq!(Visits::after(Some(first), at(1)), first);
        assert_eq!(Visits::after(Some(first), at(2)).seen, at(2));
    }

    #[test]
    fn cookie_with_impossible_times_is_ignored() {
        let now = at(0);
        let seconds = now.as_micros() / 1_000_000;
        let valid = format!("{}.{seconds}", seconds - 5);
        assert!(Visits::read(&valid, now).is_some());
        let (future, backwards) =
            (format!("0.{}", seconds + 9), format!("{seconds}.{}", seconds - 5));
        for text in ["", ".", "1", "a.b", "9223372036854775807.1", &future, &backwards] {
            assert_eq!(Visits::read(text, now), None, "{text}");
        }
    }
}
