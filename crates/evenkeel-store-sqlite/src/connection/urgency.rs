//! What waits for the writer: bounded, and users before machines.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// So many requests of a kind may wait; more wait to be let in.
const WAITING_MAX: usize = 1024;
/// At most so many requests share a commit,
const GROUP_REQUESTS_MAX: usize = 64;
/// and at most about so many rows, so that none waits long for the others.
const GROUP_ROWS_MAX: usize = 20_000;

/// So many bytes are as much work as a row.
const BYTES_PER_ROW: usize = 128;

/// About how many rows it is to write `rows` that hold so many bytes beside their usual columns.
pub(crate) const fn weight(rows: usize, bytes: usize) -> usize {
    rows + bytes / BYTES_PER_ROW
}

/// Who is waiting for the answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// A person: it goes first.
    Command,
    /// A loop that says what has ended: before what begins, because a job must be idle for that.
    End,
    /// Another loop.
    Batch,
}

/// A queue of things that have a size, in rows.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    something: Condvar,
    command_room: Semaphore,
    batch_room: Semaphore,
}

struct Waiting<T> {
    commands: VecDeque<(usize, T)>,
    ends: VecDeque<(usize, T)>,
    batches: VecDeque<(usize, T)>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let waiting = Waiting {
            commands: VecDeque::new(),
            ends: VecDeque::new(),
            batches: VecDeque::new(),
            closed: false,
        };
        Self {
            waiting: Mutex::new(waiting),
            something: Condvar::new(),
            command_room: Semaphore::new(WAITING_MAX),
            batch_room: Semaphore::new(WAITING_MAX),
        }
    }

    /// Waits for room, then queues. Gives it back if the queue is closed.
    pub(crate) async fn push(&self, urgency: Urgency, rows: usize, item: T) -> Result<(), T> {
        let Ok(permit) = self.room(urgency).acquire().await else { return Err(item) };
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(item);
        }
        // The place is given back when the item is taken out.
        permit.forget();
        match urgency {
            Urgency::Command => waiting.commands.push_back((rows, item)),
            Urgency::End => waiting.ends.push_back((rows, item)),
            Urgency::Batch => waiting.batches.push_back((rows, item)),
        }
        drop(waiting);
        self.something.notify_one();
        Ok(())
    }

    /// Waits for something and takes what shares the next commit, commands and ends first; `None`
    /// once the queue is closed and empty. At least one end and one batch are taken, so that neither
    /// starves.
    pub(crate) fn next_group(&self) -> Option<Vec<T>> {
        let mut waiting = self.lock();
        while waiting.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.something.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut group, mut rows) = (Vec::new(), 0);
        take(&mut waiting.commands, &mut group, &mut rows);
        let commands = group.len();
        take_first(&mut waiting.ends, &mut group, &mut rows);
        take(&mut waiting.ends, &mut group, &mut rows);
        take_first(&mut waiting.batches, &mut group, &mut rows);
        take(&mut waiting.batches, &mut group, &mut rows);
        drop(waiting);
        self.command_room.add_permits(commands);
        self.batch_room.add_permits(group.len() - commands);
        Some(group)
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.command_room.close();
        self.batch_room.close();
        self.something.notify_all();
    }

    fn room(&self, urgency: Urgency) -> &Semaphore {
        match urgency {
            Urgency::Command => &self.command_room,
            Urgency::End | Urgency::Batch => &self.batch_room,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // Nothing in here panics half way, so a poisoned queue is still a good one.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Waiting<T> {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.ends.is_empty() && self.batches.is_empty()
    }
}

/// Takes one, however full the group is.
fn take_first<T>(from: &mut VecDeque<(usize, T)>, group: &mut Vec<T>, rows: &mut usize) {
    if let Some((size, item)) = from.pop_front() {
        group.push(item);
        *rows += size;
    }
}

/// Takes as many as the group has room for.
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
    async fn commands_and_ends_overtake_what_begins() {
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
        // Full by their number, and full by their rows.
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
    fn bytes_weigh_as_rows_do() {
        assert_eq!(weight(2, 0), 2);
        assert_eq!(weight(1, 64 << 10), 513);
    }

    #[tokio::test]
    async fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
        let queue = Queue::new();
        queue.push(Urgency::Batch, 1, 1).await.unwrap();
        queue.close();
        assert_eq!(queue.push(Urgency::Batch, 1, 2).await, Err(2));
        assert_eq!(queue.next_group(), Some(vec![1]));
        assert_eq!(queue.next_group(), None);
    }
}
