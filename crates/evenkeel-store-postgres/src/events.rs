//! Events for listeners on all nodes, in a table that holds only the newest events.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Span, Timestamp};
use evenkeel_store::{
    EVENTS_KEPT, Event, EventJob, EventKind, EventNo, EventPage, EventStore, Events, JobTitle,
    NewEvent, Scope, Signal, Store as _, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{attempt, column, get, key, maybe_time, sequence, time};

/// How long the listener row of a process is kept after the process has ended.
const LISTENERS_KEPT: Span = Span::from_secs(3600);

/// Old events are deleted each time this many events were added, because finding the oldest event
/// to keep reads all kept events.
const TRIM_EVERY: usize = EVENTS_KEPT / 10;

#[async_trait]
impl EventStore for PostgresStore {
    fn events(&self) -> &Events {
        &self.events
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        if events.is_empty() && !dropped {
            return Ok(());
        }
        let count = events.len() + 1;
        let trims = self.untrimmed.fetch_add(count, Ordering::Relaxed) + count >= TRIM_EVERY;
        // Events use the API connections, because an event may be delayed but a run may not.
        transaction!(self.api, events, |connection, events| {
            publish(connection, events, dropped, trims).await
        })?;
        if trims {
            self.untrimmed.store(0, Ordering::Relaxed);
        }
        self.notify_listeners().await;
        Ok(())
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        self.api.row(sql!("newest_event"), params![], |row| get(row, 0).map(EventNo)).await
    }

    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        let (scope, limit) = (*scope, i64::from(limit));
        run!(self.api, |connection| {
            let params: Params<'_> = &[&scope.tenant.0, &after.0, &limit];
            read_page(&scope, after, &connection.rows(sql!("events_after"), params).await?)
        })
    }

    async fn listen(&self, until: Timestamp) -> Result<(), StoreError> {
        let node = self.announcer.origin.clone();
        run!(self.api, node, |connection, node| {
            connection.change(sql!("listen"), &[node, &until.as_micros()]).await?;
            let old = until.saturating_sub(LISTENERS_KEPT).as_micros();
            connection.change(sql!("listen_delete"), &[&old]).await
        })?;
        self.notify_listeners().await;
        Ok(())
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.hot.row(sql!("listened_until"), params![], |row| maybe_time(row, 0)).await
    }

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        let title = |row: &Row| {
            let (name, source_name) = (get(row, 1)?, get(row, 2)?);
            let id = get::<Option<Uuid>>(row, 0)?.map(JobId);
            Ok(id.map(|id| JobTitle { id, name, source_name }))
        };
        self.api.rows(sql!("job_titles"), params![column(jobs, |job| job.0)], title).await
    }
}

impl PostgresStore {
    /// Notifies listeners on all nodes. Listeners also poll, so a lost notification only delays
    /// them.
    async fn notify_listeners(&self) {
        if let Err(error) = self.announce(Signal::Events).await {
            tracing::debug!(%error, "notification not sent; receivers also poll");
        }
    }
}

async fn publish(
    connection: &Connection,
    events: &[NewEvent],
    dropped: bool,
    trims: bool,
) -> Tried<()> {
    connection.rows(sql!("publish_lock"), &[]).await?;
    // An event row without a kind reports that events were lost.
    let lost = dropped.then_some(None);
    let all = || lost.into_iter().chain(events.iter().map(Some));
    let id = column(all(), |event| match event?.job {
        EventJob::Id(id) => Some(id.0),
        EventJob::No(_) | EventJob::None => None,
    });
    let by_no = column(all(), |event| match event?.job {
        EventJob::No(job) => Some(job.0),
        EventJob::Id(_) | EventJob::None => None,
    });
    let params: Params<'_> = &[
        &column(all(), |event| Some(event?.kind.code())),
        &column(all(), |event| Some(event?.tenant.0)),
        &id,
        &by_no,
        &column(all(), |event| Some(event?.run?.scheduled_at.as_micros())),
        &column(all(), |event| Some(event?.run?.job_no.0)),
        &column(all(), |event| Some(sequence(event?.run?.sequence))),
        &column(all(), |event| event?.run.map(attempt)),
        &column(all(), |event| Some(event?.at.as_micros())),
        &column(all(), |event| Some(event?.data.replace('\0', "\u{fffd}"))),
    ];
    connection.change(sql!("publish"), params).await?;
    if trims {
        let kept = i64::try_from(EVENTS_KEPT).unwrap_or(i64::MAX);
        connection.change(sql!("publish_trim"), &[&kept]).await?;
    }
    Ok(())
}

fn read_page(scope: &Scope, after: EventNo, rows: &[Row]) -> Tried<EventPage> {
    let mut page = EventPage { events: Vec::new(), seen: after, gap: false };
    for row in rows {
        let (has_earlier, is_gap): (bool, bool) = (get(row, "has_earlier")?, get(row, "is_gap")?);
        page.seen = EventNo(get(row, "no")?);
        page.gap |= !has_earlier || is_gap;
        if let Some(code) = get::<Option<i16>>(row, "kind")? {
            page.events.push(read_event(scope, row, page.seen, code)?);
        }
    }
    Ok(page)
}

fn read_event(scope: &Scope, row: &Row, no: EventNo, code: i16) -> Tried<Event> {
    let kind = EventKind::from_code(code)
        .ok_or_else(|| StoreError::corrupt(format!("event {}", no.0), "kind", code.to_string()))?;
    let is_of_run = get::<Option<i64>>(row, "scheduled_at")?.is_some();
    Ok(Event {
        no,
        kind,
        tenant: scope.tenant,
        job: get::<Option<Uuid>>(row, "job_id")?.map(JobId),
        job_name: get(row, "job_name")?,
        run: is_of_run.then(|| key(row)).transpose()?,
        at: time(row, "at")?,
        data: get(row, "data")?,
    })
}
