//! Keeps the newest events in memory, for a store that only one process uses.

use std::collections::VecDeque;

use evenkeel_core::{JobId, Timestamp};

use crate::{EVENTS_KEPT, Event, EventNo, EventPage, NewEvent, Scope};

/// The newest events, oldest first. Event numbers start at the creation time of the ring in
/// microseconds, so they are higher than the event numbers of an earlier process.
#[derive(Debug)]
pub struct EventRing {
    /// `None` marks lost events.
    kept: VecDeque<(EventNo, Option<Event>)>,
    last: EventNo,
    listened_until: Option<Timestamp>,
}

impl EventRing {
    pub fn new(now: Timestamp) -> Self {
        Self { kept: VecDeque::new(), last: EventNo(now.as_micros()), listened_until: None }
    }

    /// See [`EventStore::publish`](crate::EventStore::publish). `job_of` returns the id and the
    /// name of the job of an event.
    pub fn publish(
        &mut self,
        events: Vec<NewEvent>,
        dropped: bool,
        job_of: impl Fn(&NewEvent) -> (Option<JobId>, Option<String>),
    ) {
        if dropped {
            let no = self.next();
            self.kept.push_back((no, None));
        }
        for event in events {
            let (no, (job, job_name)) = (self.next(), job_of(&event));
            let NewEvent { kind, tenant, job: _, run, at, data } = event;
            let event = Event { no, kind, tenant, job, job_name, run, at, data };
            self.kept.push_back((no, Some(event)));
        }
        let surplus = self.kept.len().saturating_sub(EVENTS_KEPT);
        self.kept.drain(..surplus);
    }

    fn next(&mut self) -> EventNo {
        self.last.0 += 1;
        self.last
    }

    pub fn newest(&self) -> EventNo {
        self.kept.back().map_or(EventNo(0), |(no, _)| *no)
    }

    /// See [`EventStore::events_after`](crate::EventStore::events_after).
    pub fn after(&self, scope: &Scope, after: EventNo, limit: u32) -> EventPage {
        let first = self.kept.partition_point(|(no, _)| *no <= after);
        let mut page = EventPage { events: Vec::new(), seen: after, gap: false };
        for (no, event) in self.kept.range(first..).take(limit as usize) {
            page.seen = *no;
            // If all events up to `after` were dropped, events after it may have been dropped as
            // well.
            page.gap |= first == 0 || event.is_none();
            page.events.extend(event.iter().filter(|event| event.tenant == scope.tenant).cloned());
        }
        page
    }

    pub fn listen(&mut self, until: Timestamp) {
        self.listened_until = self.listened_until.max(Some(until));
    }

    pub fn listened_until(&self) -> Option<Timestamp> {
        self.listened_until
    }
}
