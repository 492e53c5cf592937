//! Paging of lists, and cursors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::secret::is_name;
use evenkeel_core::{AttemptId, AttemptKey, NodeNo, RunIds, TenantNo, Timestamp};
use evenkeel_store::{
    AuditCursor, DeadCursor, FailureCursor, JobCursor, Page, PageNo, PageRequest, RiskCursor,
};
use utoipa::IntoParams;

use crate::params::Params;

/// Default page size.
pub const LIMIT_DEFAULT: u32 = 50;
/// Maximum page size.
pub const LIMIT_MAX: u32 = 1000;
/// Maximum offset; a cursor reaches further, and faster.
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
    /// Continues after another page: its `next_cursor`. Cannot be combined with `offset`.
    cursor: Option<String>,
}

impl PageQuery {
    pub(crate) fn take<C: CursorKey>(params: &mut Params) -> PageRequest<C> {
        Self::take_by(params, LIMIT_DEFAULT)
    }

    /// Reads the parameters of a page, with another default size.
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

/// Declares the answer of a list: one page of items, the total, and the cursor of the next page.
///
/// The fields are not flattened into a shared struct, because OpenAPI would show that as `allOf`.
macro_rules! list_answer {
    ($(#[$about:meta])* $name:ident { $(#[$about_items:meta])* $items:ident: $item:ident }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, utoipa::ToSchema)]
        pub struct $name {
            $(#[$about_items])*
            pub $items: Vec<$item>,
            /// Number of items on all pages together.
            pub total: u64,
            /// True if `total` is an estimate.
            pub total_is_estimate: bool,
            /// The page size: the `limit` of the request.
            pub limit: u32,
            /// Number of items skipped before this page: the `offset` of the request.
            pub offset: u32,
            /// The `cursor` that fetches the next page; null on the last page.
            pub next_cursor: Option<String>,
        }

        impl $name {
            pub(crate) fn new<T, R, C: $crate::page::CursorKey>(
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

/// Converts the position of the next page.
pub(crate) fn map_next<T, C, D>(page: Page<T, C>, convert: impl FnOnce(C) -> D) -> Page<T, D> {
    let Page { items, total, total_is_estimate, next } = page;
    Page { items, total, total_is_estimate, next: next.map(convert) }
}

/// A position in a list.
pub(crate) trait CursorKey: Sized {
    /// Distinguishes the cursors of different lists.
    const TAG: u8;
    fn bits(self, ids: &RunIds) -> u128;
    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self>;

    /// Encodes the position as an opaque text.
    fn to_text(self, ids: &RunIds) -> String {
        let mut bytes = [0; 17];
        bytes[0] = Self::TAG;
        bytes[1..].copy_from_slice(&self.bits(ids).to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn from_text(text: &str, ids: &RunIds) -> Option<Self> {
        let bytes: [u8; 17] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let [tag, bits @ ..] = bytes;
        if tag == Self::TAG { Self::from_bits(u128::from_be_bytes(bits), ids) } else { None }
    }
}

impl CursorKey for JobCursor {
    const TAG: u8 = b'j';

    fn bits(self, ids: &RunIds) -> u128 {
        let at = self.at.cast_unsigned();
        u128::from(at) << 64 | u128::from(ids.hide_job(self.no, at))
    }

    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self> {
        let at = (bits >> 64) as u64;
        Some(Self { at: at.cast_signed(), no: ids.show_job(bits as u64, at)? })
    }
}

impl CursorKey for AttemptKey {
    const TAG: u8 = b'r';

    fn bits(self, ids: &RunIds) -> u128 {
        ids.attempt_id(self).as_u128()
    }

    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self> {
        AttemptId::from_u128(bits).map(|id| ids.key(id))
    }
}

impl CursorKey for PageNo {
    const TAG: u8 = b'p';

    fn bits(self, _: &RunIds) -> u128 {
        self.0.unsigned_abs().into()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        i64::try_from(bits).ok().map(Self)
    }
}

/// Targets are sorted by number.
impl CursorKey for i64 {
    const TAG: u8 = b't';

    fn bits(self, _: &RunIds) -> u128 {
        self.unsigned_abs().into()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        Self::try_from(bits).ok()
    }
}

impl CursorKey for NodeNo {
    const TAG: u8 = b'n';

    fn bits(self, _: &RunIds) -> u128 {
        self.0.unsigned_abs().into()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        i32::try_from(bits).ok().map(Self)
    }
}

impl CursorKey for RiskCursor {
    const TAG: u8 = b'c';

    fn bits(self, ids: &RunIds) -> u128 {
        let (error_at, job) = self;
        let time = error_at.as_micros() as u64;
        u128::from(time) << 64 | u128::from(ids.hide_job(job, time))
    }

    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self> {
        let time = (bits >> 64) as u64;
        let job = ids.show_job(bits as u64, time)?;
        Some((Timestamp::from_micros(time.cast_signed()), job))
    }
}

impl CursorKey for FailureCursor {
    const TAG: u8 = b'f';

    fn bits(self, _: &RunIds) -> u128 {
        let (at, fingerprint) = self;
        u128::from(at.as_micros().cast_unsigned()) << 64 | u128::from(fingerprint.0)
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        let at = Timestamp::from_micros(((bits >> 64) as u64).cast_signed());
        Some((at, Fingerprint(bits as u64)))
    }
}

impl CursorKey for AuditCursor {
    const TAG: u8 = b'a';

    fn bits(self, _: &RunIds) -> u128 {
        u128::from(self.at.as_micros().cast_unsigned()) << 64 | u128::from(self.no.cast_unsigned())
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        let at = i64::try_from(bits >> 64).ok()?;
        let no = ((bits & u128::from(u64::MAX)) as u64).cast_signed();
        Some(Self { at: Timestamp::from_micros(at), no })
    }
}

impl CursorKey for uuid::Uuid {
    const TAG: u8 = b'k';

    fn bits(self, _: &RunIds) -> u128 {
        self.as_u128()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        Some(Self::from_u128(bits))
    }
}

/// A position in a list of secrets; names do not fit into 16 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SecretName(pub(crate) String);

impl CursorKey for SecretName {
    const TAG: u8 = b'n';

    fn bits(self, _: &RunIds) -> u128 {
        0
    }

    fn from_bits(_: u128, _: &RunIds) -> Option<Self> {
        None
    }

    fn to_text(self, _: &RunIds) -> String {
        URL_SAFE_NO_PAD.encode([&[Self::TAG], self.0.as_bytes()].concat())
    }

    fn from_text(text: &str, _: &RunIds) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (tag, name) = bytes.split_first()?;
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
        (*tag == Self::TAG).then(|| Self(name.to_owned()))
    }
}

/// A position among the secrets of all tenants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SecretPosition(pub(crate) TenantNo, pub(crate) String);

impl CursorKey for SecretPosition {
    const TAG: u8 = b's';

    fn bits(self, _: &RunIds) -> u128 {
        0
    }

    fn from_bits(_: u128, _: &RunIds) -> Option<Self> {
        None
    }

    fn to_text(self, _: &RunIds) -> String {
        let tenant = self.0.0.to_be_bytes();
        URL_SAFE_NO_PAD.encode([&[Self::TAG], &tenant[..], self.1.as_bytes()].concat())
    }

    fn from_text(text: &str, _: &RunIds) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (tag, rest) = bytes.split_first()?;
        let (tenant, name) = rest.split_at_checked(4)?;
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
        let tenant = i32::from_be_bytes(tenant.try_into().ok()?);
        (*tag == Self::TAG).then(|| Self(TenantNo(tenant), name.to_owned()))
    }
}

/// A position in a list of rebalances.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RebalanceCursor(pub(crate) uuid::Uuid);

impl CursorKey for RebalanceCursor {
    const TAG: u8 = b'b';

    fn bits(self, _: &RunIds) -> u128 {
        self.0.as_u128()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        Some(Self(uuid::Uuid::from_u128(bits)))
    }
}

/// A position among the moves of a rebalance, counted from 0.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MovePosition(pub(crate) u64);

impl CursorKey for MovePosition {
    const TAG: u8 = b'm';

    fn bits(self, _: &RunIds) -> u128 {
        self.0.into()
    }

    fn from_bits(bits: u128, _: &RunIds) -> Option<Self> {
        u64::try_from(bits).ok().map(Self)
    }
}

/// A time and an attempt do not fit into 16 bytes, so the time precedes them.
impl CursorKey for DeadCursor {
    const TAG: u8 = b'd';

    fn bits(self, ids: &RunIds) -> u128 {
        self.key.bits(ids)
    }

    fn from_bits(bits: u128, ids: &RunIds) -> Option<Self> {
        let key = AttemptKey::from_bits(bits, ids)?;
        Some(Self { died_at: key.scheduled_at, key })
    }

    fn to_text(self, ids: &RunIds) -> String {
        let mut bytes = [0; 25];
        bytes[0] = Self::TAG;
        bytes[1..9].copy_from_slice(&self.died_at.as_micros().to_be_bytes());
        bytes[9..].copy_from_slice(&self.bits(ids).to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn from_text(text: &str, ids: &RunIds) -> Option<Self> {
        let bytes: [u8; 25] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (at, bits) = bytes[1..].split_at(8);
        let died_at = Timestamp::from_micros(i64::from_be_bytes(at.try_into().ok()?));
        let place = Self::from_bits(u128::from_be_bytes(bits.try_into().ok()?), ids)?;
        (bytes[0] == Self::TAG).then_some(Self { died_at, ..place })
    }
}

/// Encodes a cursor that continues after `key`.
pub(crate) fn encode<C: CursorKey>(key: C, ids: &RunIds) -> String {
    key.to_text(ids)
}

/// Decodes a cursor; `None` if it does not belong to this list.
pub(crate) fn decode<C: CursorKey>(cursor: &str, ids: &RunIds) -> Option<C> {
    C::from_text(cursor, ids)
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{AttemptNo, JobNo, Origin, Sequence};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cursor_is_valid_for_its_own_list_only(
            job in 0_i64..1 << 40, time in 0_i64..1 << 52, n in any::<u32>(), attempt in 0_u16..1024,
        ) {
            let ids = RunIds::new(b"test");
            let job = JobNo(job);
            let place = JobCursor { at: time, no: job };
            prop_assert_eq!(decode(&encode(place, &ids), &ids), Some(place));
            let key = AttemptKey {
                scheduled_at: Timestamp::from_micros(time),
                job_no: job,
                sequence: Sequence::new(Origin::Trigger, n),
                attempt: AttemptNo(attempt),
            };
            prop_assert_eq!(decode(&encode(key, &ids), &ids), Some(key));
            let risk: RiskCursor = (Timestamp::from_micros(time), job);
            prop_assert_eq!(decode(&encode(risk, &ids), &ids), Some(risk));
            let failure: FailureCursor = (Timestamp::from_micros(time), Fingerprint(n.into()));
            prop_assert_eq!(decode(&encode(failure, &ids), &ids), Some(failure));
            let audit = AuditCursor { at: Timestamp::from_micros(time), no: job.0 };
            prop_assert_eq!(decode(&encode(audit, &ids), &ids), Some(audit));
            let dead = DeadCursor { died_at: Timestamp::from_micros(time + 7), key };
            prop_assert_eq!(decode(&encode(dead, &ids), &ids), Some(dead));
            let name = SecretName("a.b".into());
            prop_assert_eq!(decode(&encode(name.clone(), &ids), &ids), Some(name));
            let secret = SecretPosition(TenantNo(n as i32), "a".into());
            prop_assert_eq!(decode(&encode(secret.clone(), &ids), &ids), Some(secret));
            prop_assert_eq!(decode::<DeadCursor>(&encode(key, &ids), &ids), None);
            prop_assert_eq!(decode::<AuditCursor>(&encode(place, &ids), &ids), None);
            prop_assert_eq!(decode::<JobCursor>(&encode(key, &ids), &ids), None);
            prop_assert_eq!(decode::<JobCursor>(&encode(risk, &ids), &ids), None);
            prop_assert_eq!(decode::<AttemptKey>(&encode(place, &ids), &ids), None);
        }

        #[test]
        fn cursor_reader_accepts_any_text(text in any::<String>()) {
            let ids = RunIds::new(b"test");
            prop_assert!(decode::<JobCursor>(&text, &ids).is_none_or(|key| encode(key, &ids) == text));
        }
    }
}
