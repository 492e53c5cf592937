//! Paging parameters of the admin API, whose pages have 100 items by default.

use evenkeel_commands::AdminCursor;
use evenkeel_store::PageRequest;
use utoipa::IntoParams;

use crate::cursor::cursor_key;
use crate::page::PageQuery;
use crate::params::Params;

const LIMIT_DEFAULT: u32 = 100;

/// The page to list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters, which are read by name")]
pub(crate) struct AdminPageQuery {
    /// Page size.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// Number of items to skip. If the tenant has more than 10,000 jobs, a filtered list accepts an
    /// `offset` of at most 10,000; follow `next_cursor` instead.
    #[param(maximum = 1_000_000, default = 0)]
    offset: Option<u32>,
    /// Continues a list: the `next_cursor` of the previous page. Cannot be combined with `offset`.
    cursor: Option<String>,
}

impl AdminPageQuery {
    pub(super) fn take(params: &mut Params) -> PageRequest<AdminCursor> {
        PageQuery::take_by(params, LIMIT_DEFAULT)
    }
}

cursor_key!(
    AdminCursor,
    b'A',
    |key, ids| {
        u128::from(key.scan) << 64 | u128::from(ids.hide_job(key.after, key.scan.into()))
    },
    |bits, ids| {
        let scan = u8::try_from(bits >> 64).ok()?;
        Some(Self { scan, after: ids.show_job(bits as u64, scan.into())? })
    }
);
