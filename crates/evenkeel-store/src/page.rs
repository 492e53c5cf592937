//! Lists, a page at a time.

/// Which part of a list. `C` is what the list is ordered by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageRequest<C> {
    /// At most this many.
    pub limit: u32,
    /// Leaving out this many first; slow if large.
    pub offset: u32,
    /// Only what comes after this one; fast at any depth.
    pub after: Option<C>,
}

impl<C> PageRequest<C> {
    /// The first `limit`.
    pub const fn first(limit: u32) -> Self {
        Self { limit, offset: 0, after: None }
    }
}

/// A part of a list.
#[derive(Clone, PartialEq, Debug)]
pub struct Page<T, C> {
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// Where the next page starts, if there is one.
    pub next: Option<C>,
}
