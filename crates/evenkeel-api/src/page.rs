//! Paging of lists.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use evenkeel_store::{Page, PageRequest};
use utoipa::IntoParams;

use crate::cursor::{CursorKey, decode};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

pub const LIMIT_DEFAULT: u32 = 50;
pub const LIMIT_MAX: u32 = 1000;
/// Maximum `offset` of a list; cursors have no limit and are faster.
pub const OFFSET_MAX: u32 = 1_000_000;

/// The page to list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Page size.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
    /// Number of items to skip.
    #[param(maximum = 1_000_000, default = 0)]
    offset: Option<u32>,
    /// Continues a list: the `next_cursor` of the previous page. Cannot be combined with `offset`.
    cursor: Option<String>,
}

impl PageQuery {
    pub(crate) fn take<C: CursorKey>(params: &mut Params) -> PageRequest<C> {
        Self::take_by(params, LIMIT_DEFAULT)
    }

    /// Reads the paging parameters of a request, with `by_default` as the default page size.
    pub(crate) fn take_by<C: CursorKey>(params: &mut Params, by_default: u32) -> PageRequest<C> {
        let query = Self {
            limit: params.number("limit", 1..=LIMIT_MAX),
            offset: params.number("offset", 0..=OFFSET_MAX),
            cursor: params.text("cursor"),
        };
        let after = query.cursor.as_deref().and_then(|cursor| {
            let key = decode(cursor, &params.run_ids);
            if key.is_none() {
                let message = "is not a cursor of this list; send a next_cursor unchanged";
                params.fault("cursor", message);
            }
            key
        });
        if query.cursor.is_some() && query.offset.is_some_and(|offset| offset > 0) {
            params.fault("offset", "cannot be combined with cursor; remove one of them");
        }
        PageRequest {
            limit: query.limit.unwrap_or(by_default),
            offset: query.offset.unwrap_or(0),
            after,
        }
    }
}

/// Extractor for the paging parameters of an operation without other query parameters.
pub(crate) struct Paged<C>(pub(crate) PageRequest<C>);

impl<C: CursorKey> FromRequestParts<App> for Paged<C> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let mut params = Params::from_request_parts(parts, app).await?;
        let request = PageQuery::take(&mut params);
        params.finish().map(|()| Self(request))
    }
}

/// Declares the response type of a list: one page of items, the total, and the cursor of the next
/// page.
///
/// The paging fields are not flattened from a shared struct, because OpenAPI would show them as
/// `allOf`.
macro_rules! list_answer {
    (
        $(#[$about:meta])*
        $name:ident { $(#[$about_items:meta])* $items:ident: $item:ident }
        $(limit: $(#[$about_limit:meta])*)?
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, utoipa::ToSchema)]
        pub struct $name {
            $(#[$about_items])*
            pub $items: Vec<$item>,
            /// Number of items on all pages together.
            pub total: u64,
            /// True if `total` is an estimate.
            pub total_is_estimate: bool,
            /// Page size: the `limit` of the request, or its default.
            $($(#[$about_limit])*)?
            pub limit: u32,
            /// Number of items that were skipped before this page, from the `offset` of the
            /// request.
            pub offset: u32,
            /// Value of `cursor` that requests the next page; null on the last page.
            pub next_cursor: Option<String>,
        }

        impl $name {
            pub(crate) fn new<T, R, C: $crate::cursor::CursorKey>(
                app: &$crate::state::App,
                request: &evenkeel_store::PageRequest<R>,
                page: evenkeel_store::Page<T, C>,
                view: impl FnMut(T) -> $item,
            ) -> Self {
                Self {
                    $items: page.items.into_iter().map(view).collect(),
                    total: page.total,
                    total_is_estimate: page.total_is_estimate,
                    limit: request.limit,
                    offset: request.offset,
                    next_cursor: app.cursor(page.next),
                }
            }
        }
    };
}

pub(crate) use list_answer;

/// Converts the cursor of the next page to another type.
pub(crate) fn map_next<T, C, D>(page: Page<T, C>, convert: impl FnOnce(C) -> D) -> Page<T, D> {
    let Page { items, total, total_is_estimate, next } = page;
    Page { items, total, total_is_estimate, next: next.map(convert) }
}
