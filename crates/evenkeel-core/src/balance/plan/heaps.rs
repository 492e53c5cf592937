//! Priority queues that find the busiest and the least busy start times for a class of jobs.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::classes::Cell;

/// Groups of start times (cells), ordered by the average load of the time slots in which their jobs
/// run.
pub(super) struct Heaps {
    /// Cells of start times from which jobs may be moved.
    full: BinaryHeap<Entry>,
    /// Cells of start times to which jobs may be moved, grouped by the kind of the cell.
    empty: Vec<BinaryHeap<Reverse<Entry>>>,
    /// The kind of each cell. Jobs in cells of the same kind may move to the same start times.
    kind: Vec<usize>,
    /// One cell of each kind.
    sample: Vec<usize>,
    /// Current version of each cell; heap entries with an older version are outdated.
    version: Vec<u32>,
}

/// The load of a cell, averaged over the time slots of its runs. Cells are compared by the first
/// value, then by the second, then by the third.
pub(super) type Key = [f64; 3];

/// Among cells with the same load, the one with the lowest index counts as the least busy.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Entry {
    met: Key,
    cell: usize,
    version: u32,
}

impl Eq for Entry {}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let met = self.met.iter().zip(&other.met).map(|(one, two)| one.total_cmp(two));
        met.fold(Ordering::Equal, Ordering::then).then(self.cell.cmp(&other.cell))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Heaps {
    pub fn new(cells: &[Cell], met: impl Fn(usize) -> Key) -> Self {
        let mut heaps = Self {
            full: BinaryHeap::with_capacity(cells.len()),
            empty: Vec::new(),
            kind: Vec::with_capacity(cells.len()),
            sample: Vec::new(),
            version: vec![0; cells.len()],
        };
        for (cell, it) in cells.iter().enumerate() {
            let alike = |other: &usize| it.is_like(&cells[*other]);
            let kind = heaps.sample.iter().position(alike).unwrap_or_else(|| {
                heaps.sample.push(cell);
                heaps.empty.push(BinaryHeap::new());
                heaps.empty.len() - 1
            });
            heaps.kind.push(kind);
        }
        (0..cells.len()).for_each(|cell| heaps.push(cells, cell, met(cell)));
        heaps
    }

    /// Returns the busiest cell of start times from which jobs may be moved.
    pub fn fullest(&mut self) -> Option<usize> {
        while let Some(top) = self.full.peek() {
            if top.version == self.version[top.cell] {
                return Some(top.cell);
            }
            self.full.pop();
        }
        None
    }

    /// Returns the least busy cell of start times to which jobs of the cell `from` may be moved.
    pub fn emptiest_for(&mut self, cells: &[Cell], from: usize) -> Option<usize> {
        let mut best: Option<Entry> = None;
        for (kind, heap) in self.empty.iter_mut().enumerate() {
            if !cells[from].may_go_to(&cells[self.sample[kind]]) {
                continue;
            }
            while let Some(Reverse(top)) = heap.peek() {
                if top.version == self.version[top.cell] {
                    best = Some(best.map_or(*top, |best| best.min(*top)));
                    break;
                }
                heap.pop();
            }
        }
        best.map(|best| best.cell)
    }

    /// Excludes this cell from the result of `fullest` until its load changes.
    pub fn leave_alone(&mut self, cell: usize) {
        debug_assert_eq!(self.full.peek().map(|top| top.cell), Some(cell));
        self.full.pop();
    }

    pub fn changed(&mut self, cells: &[Cell], cell: usize, met: Key) {
        self.version[cell] += 1;
        self.push(cells, cell, met);
    }

    fn push(&mut self, cells: &[Cell], cell: usize, met: Key) {
        let entry = Entry { met, cell, version: self.version[cell] };
        if cells[cell].has_jobs() {
            self.full.push(entry);
        }
        if cells[cell].is_open {
            self.empty[self.kind[cell]].push(Reverse(entry));
        }
    }
}
