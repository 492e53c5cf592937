//! What goes with the ends of runs that failed for good.

use evenkeel_store::{Finish, Hook};

use crate::columns::KeyColumns;
use crate::error::Tried;
use crate::pool::Connection;

/// For ends that took effect, of each job one, in their transaction. Mostly there is nothing to do,
/// and then nothing is sent.
pub(super) async fn obey(connection: &Connection, done: &[&Finish]) -> Tried<()> {
    let (mut dead, mut reasons) = (KeyColumns::default(), Vec::new());
    let (mut failed, mut pause_after) = (KeyColumns::default(), Vec::new());
    for finish in done {
        match finish.hook {
            Hook::None => {}
            Hook::CountFailure { pause_after: after } => {
                failed.push(finish.key);
                pause_after.push(i32::from(after));
            }
            Hook::DeadLetter(reason) => {
                dead.push(finish.key);
                reasons.push(reason.code());
            }
        }
    }
    if !reasons.is_empty() {
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &dead;
        let sql = sql!("finish_dead");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt, &reasons]).await?;
    }
    if !pause_after.is_empty() {
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &failed;
        let sql = sql!("finish_failing");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt, &pause_after]).await?;
    }
    Ok(())
}
