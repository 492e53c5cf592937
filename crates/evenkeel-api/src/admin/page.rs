//! Pages of the admin API: a hundred at a time unless the request says.

use evenkeel_commands::AdminPlace;
use evenkeel_core::RunIds;
use evenkeel_store::PageRequest;
use utoipa::IntoParams;

use crate::page::{CursorKey, PageQuery};
use crate::params::Params;

/// How much is listed unless the request says.
const LIMIT_DEFAULT: u32 = 100;

/// Which part of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters, which are read by their names")]
pub(crate) struct AdminPageQuery {
    /// At most this many.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// Leaving out this many first. Of more than 10,000 jobs, a list that leaves some out by what they
    /// are is found so only as far as 10,000 are looked at.
    #[param(maximum = 1_000_000, default = 0)]
    offset: Option<u32>,
    /// Going on where another page ended: its `next_cursor`. Not together with `offset`.
    cursor: Option<String>,
}

impl AdminPageQuery {
    /// Takes the parameters of a page.
    pub(super) fn take(params: &mut Params) -> PageRequest<AdminPlace> {
        PageQuery::take_by(params, LIMIT_DEFAULT)
    }
}

impl CursorKey for AdminPlace {
    const TAG: u8 = b'A';

    fn bits(self, ids: &RunIds) -> u128 {
        u128::from(self.way) << 64 | u128::from(ids.hide_job(self.after, self.way.into()))
    }

    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self> {
        let way = u8::try_from(bits >> 64).ok()?;
        Some(Self { way, after: ids.show_job(bits as u64, way.into())? })
    }
}
