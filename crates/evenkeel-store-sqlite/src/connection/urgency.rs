//! Bounded queue of requests for the writer, in which commands of users come first.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// Maximum number of waiting requests of each kind; further callers wait until a request is taken
/// out.
const WAITING_MAX: usize = 1024;
/// Maximum number of requests that share a commit.
const GROUP_REQUESTS_MAX: usize = 64;
/// Approximate maximum number of rows that share a commit, so that no request waits long for the
/// other requests.
const GROUP_ROWS_MAX: usize = 20_000;

/// Writing this many bytes takes as long as writing a row.
const BYTES_PER_ROW: usize = 128;

/// Estimates the work of a request that writes `rows` rows and `bytes` bytes of long values, as a
/// number of rows.
pub(crate) const fn weight(rows: usize, bytes: usize) -> usize {
    rows + bytes / BYTES_PER_ROW
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// A command of a user, which runs before all other requests.
    Command,
    /// Results of attempts. Results are stored before other requests of the engine, because a job
    /// cannot be fired until its previous result is stored.
    End,
    /// Other requests of the engine.
    Batch,
}

pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    not_empty: Condvar,
    command_permits: Semaphore,
    batch_permits: Semaphore,
}

struct Waiting<T> {
    /// The requests of each [`Urgency`], with the number of rows that each request writes.
    requests: [VecDeque<(usize, T)>; 3],
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let requests = [const { VecDeque::new() }; 3];
        Self {
            waiting: Mutex::new(Waiting { requests, closed: false }),
            not_empty: Condvar::new(),
            command_permits: Semaphore::new(WAITING_MAX),
            batch_permits: Semaphore::new(WAITING_MAX),
        }
    }

    /// Adds the item, after waiting until the queue has space. Returns the item if the queue is
    /// closed.
    pub(crate) async fn push(&self, urgency: Urgency, rows: usize, item: T) -> Result<(), T> {
        let Ok(permit) = self.permits(urgency).acquire().await else { return Err(item) };
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(item);
        }
        // The semaphore permit is released when the item is taken out of the queue.
        permit.forget();
        waiting.requests[urgency as usize].push_back((rows, item));
        drop(waiting);
        self.not_empty.notify_one();
        Ok(())
    }

    /// Waits for requests and takes the requests of the next commit: commands first, then results
    /// of attempts, then batches. Returns `None` once the queue is closed and empty. A group of
    /// requests includes at least one result and one batch if any are waiting, so that neither kind
    /// starves.
    pub(crate) fn next_group(&self) -> Option<Vec<T>> {
        let mut waiting = self.lock();
        while waiting.requests.iter().all(VecDeque::is_empty) {
            if waiting.closed {
                return None;
            }
            waiting = self.not_empty.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut group, mut rows) = (Vec::new(), 0);
        let [commands, ends, batches] = &mut waiting.requests;
        take(commands, &mut group, &mut rows);
        let command_count = group.len();
        for requests in [ends, batches] {
            // One request is taken even if the group is full.
            if let Some((size, item)) = requests.pop_front() {
                group.push(item);
                rows += size;
            }
            take(requests, &mut group, &mut rows);
        }
        drop(waiting);
        self.command_permits.add_permits(command_count);
        self.batch_permits.add_permits(group.len() - command_count);
        Some(group)
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.command_permits.close();
        self.batch_permits.close();
        self.not_empty.notify_all();
    }

    fn permits(&self, urgency: Urgency) -> &Semaphore {
        match urgency {
            Urgency::Command => &self.command_permits,
            Urgency::End | Urgency::Batch => &self.batch_permits,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // No code panics while it holds this lock, so the queue is valid even if the lock is
        // poisoned.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes requests from a queue until the group is full.
fn take<T>(from: &mut VecDeque<(usize, T)>, group: &mut Vec<T>, rows: &mut usize) {
    while let Some((size, _)) = from.front() {
        let first = group.is_empty();
        if !first && (group.len() >= GROUP_REQUESTS_MAX || *rows + size > GROUP_ROWS_MAX) {
            return;
        }
        *rows += size;
        group.extend(from.pop_front().map(|(_, item)| item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_and_ends_overtake_batches() {
        let queue = Queue::new();
        queue.push(Urgency::Batch, 1000, "fire").await.unwrap();
        queue.push(Urgency::Command, 1, "register").await.unwrap();
        queue.push(Urgency::End, 1000, "finish").await.unwrap();
        assert_eq!(queue.next_group(), Some(vec!["register", "finish", "fire"]));
    }

    #[tokio::test]
    async fn a_group_is_bounded_in_rows_but_never_empty() {
        let queue = Queue::new();
        queue.push(Urgency::Batch, 50_000, "huge").await.unwrap();
        queue.push(Urgency::Batch, 1, "small").await.unwrap();
        assert_eq!(queue.next_group(), Some(vec!["huge"]));
        assert_eq!(queue.next_group(), Some(vec!["small"]));
    }

    #[tokio::test]
    async fn many_commands_starve_neither_an_end_nor_a_batch() {
        // The first group of requests is limited by the number of requests, the second by the
        // number of rows.
        for rows in [1, 15_000] {
            let queue = Queue::new();
            for _ in 0..200 {
                queue.push(Urgency::Command, rows, "register").await.unwrap();
            }
            queue.push(Urgency::End, 15_000, "finish").await.unwrap();
            queue.push(Urgency::Batch, 15_000, "fire").await.unwrap();
            let group = queue.next_group().unwrap();
            assert_eq!(group[group.len() - 2..], ["finish", "fire"]);
            assert!(group.len() <= GROUP_REQUESTS_MAX + 2);
        }
    }

    #[test]
    fn bytes_count_as_rows() {
        assert_eq!(weight(2, 0), 2);
        assert_eq!(weight(1, 64 << 10), 513);
    }

    #[tokio::test]
    async fn a_closed_queue_returns_its_items_and_refuses_new_ones() {
        let queue = Queue::new();
        queue.push(Urgency::Batch, 1, 1).await.unwrap();
        queue.close();
        assert_eq!(queue.push(Urgency::Batch, 1, 2).await, Err(2));
        assert_eq!(queue.next_group(), Some(vec![1]));
        assert_eq!(queue.next_group(), None);
    }
}
