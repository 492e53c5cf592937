//! Pages of lists.

/// A part of a list. `C` is the position of an item.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageRequest<C> {
    pub limit: u32,
    /// The number of items to skip; slow if large.
    pub offset: u32,
    /// Only items after this position; fast at any depth.
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
    /// The start of the next page.
    pub next: Option<C>,
}
