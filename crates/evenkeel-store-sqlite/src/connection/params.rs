//! The values that statements take as parameters.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::aging::{Rank, Rise};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::balance::LoadProfileKey;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{KeyDigest, LimitKey};
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{
    AttemptKey, AttemptNo, JobId, JobNo, NodeNo, PageId, Sequence, Shard, Slot, Span, TenantNo,
    Timestamp,
};
use evenkeel_store::{JobState, MessageKind, RebalanceState, Role, RunLink, skip_reason_code};
use rusqlite::Statement;
use uuid::Uuid;

/// A Rust value that is bound to one or more parameters of a statement. An attempt key takes four
/// parameters, in the order of the SQL fragment `attempt_key`. A link to a run takes two
/// parameters: scheduled time and sequence.
pub(crate) trait Param {
    /// Binds the value to the parameters from number `first` on. Returns the number of the next
    /// parameter.
    fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize>;
}

pub(crate) type Params<'a> = &'a [&'a dyn Param];

impl Param for [&dyn Param] {
    fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
        self.iter().try_fold(first, |next, param| param.bind(statement, next))
    }
}

impl<P: Param + ?Sized> Param for &P {
    fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
        (**self).bind(statement, first)
    }
}

impl Param for AttemptKey {
    fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
        let columns: Params<'_> =
            &[&self.scheduled_at, &self.job_no, &self.sequence, &self.attempt];
        columns.bind(statement, first)
    }
}

impl Param for Option<RunLink> {
    fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
        let next = self.map(|link| link.scheduled_at).bind(statement, first)?;
        self.map(|link| link.sequence).bind(statement, next)
    }
}

/// Lists the types of single parameters, and how a value of each type is stored.
macro_rules! single_params {
    ($($kind:ty: |$value:ident| $stored:expr;)+) => {$(
        impl Param for $kind {
            fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
                let $value = self;
                statement.raw_bind_parameter(first, $stored)?;
                Ok(first + 1)
            }
        }

        impl Param for Option<$kind> {
            fn bind(&self, statement: &mut Statement<'_>, first: usize) -> rusqlite::Result<usize> {
                statement.raw_bind_parameter(first, self.as_ref().map(|$value| $stored))?;
                Ok(first + 1)
            }
        }
    )+};
}

single_params! {
    bool: |value| value;
    u8: |value| value;
    u16: |value| value;
    u32: |value| value;
    i16: |value| value;
    i32: |value| value;
    i64: |value| value;
    f64: |value| value;
    u64: |number| i64::try_from(*number).unwrap_or(i64::MAX);
    usize: |number| i64::try_from(*number).unwrap_or(i64::MAX);
    String: |text| text;
    &str: |text| text;
    Vec<u8>: |bytes| bytes;
    &[u8]: |bytes| bytes;
    [u8; 16]: |bytes| bytes;
    [u8; 32]: |bytes| bytes;
    Uuid: |id| id.as_bytes();
    JobId: |id| id.0.as_bytes();
    PageId: |id| id.0.as_bytes();
    JobNo: |job| job.0;
    TenantNo: |tenant| tenant.0;
    NodeNo: |node| node.0;
    AttemptNo: |attempt| attempt.0;
    Sequence: |sequence| sequence.bits();
    Fence: |fence| fence.0;
    Shard: |shard| shard.0;
    Slot: |slot| slot.0;
    Timestamp: |time| time.as_micros();
    Span: |span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    AttemptStatus: |status| status.code();
    Outcome: |outcome| AttemptStatus::from(*outcome).code();
    Priority: |priority| priority.get();
    Rank: |rank| rank.0;
    Rise: |rise| rise.0;
    Lane: |lane| *lane as u8;
    Level: |level| *level as u8;
    Reason: |reason| *reason as u8;
    JobState: |state| *state as u8;
    Role: |role| *role as u8;
    SkipReason: |reason| skip_reason_code(*reason);
    DeathReason: |reason| reason.code();
    RebalanceState: |state| *state as u8;
    LimitKey: |key| key.as_bytes();
    KeyDigest: |digest| digest.as_bytes();
    LoadProfileKey: |key| key.0;
    DedupKey: |key| key.to_bytes();
    Fingerprint: |fingerprint| fingerprint.0.cast_signed();
    MessageKind: |kind| *kind as u8;
}
