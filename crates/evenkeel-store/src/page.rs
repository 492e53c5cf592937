//! Pages of lists, for all store operations that return lists.

/// Selects one page of a list. `C` is the type of a position in the list.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageRequest<C> {
    pub limit: u32,
    /// Number of items to skip; a large number is slow.
    pub offset: u32,
    /// Lists only items after this position, which is equally fast for every page.
    pub after: Option<C>,
}

impl<C> PageRequest<C> {
    pub const fn first(limit: u32) -> Self {
        Self { limit, offset: 0, after: None }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Page<T, C> {
    pub items: Vec<T>,
    /// The number of items on all pages.
    pub total: u64,
    pub total_is_estimate: bool,
    /// Where the next page starts; `None` on the last page.
    pub next: Option<C>,
}
