//! Answers of the API that pages of several viewers share for half a second.
//!
//! When something changes, all open pages load themselves at once. Without shared answers, each of
//! them would ask the store the same questions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_store::Role;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::backend::Answer;

/// Pages load themselves this long after a change, so that they never show an older answer.
pub(crate) const SHARED_FOR: Duration = Duration::from_millis(500);
/// Maximum number of answers in memory.
const ANSWERS_MAX: usize = 256;

/// The users who get the same answers: a tenant and a role.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Audience {
    pub(crate) tenant: String,
    pub(crate) role: Role,
}

struct Shared {
    asked_at: Instant,
    answer: Arc<OnceCell<Answer>>,
}

#[derive(Default)]
pub(crate) struct SharedAnswers(Mutex<HashMap<(Audience, String), Shared>>);

impl SharedAnswers {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Audience, String), Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer to a question that this audience has asked in the last half second, and
    /// else asks. Questions that are asked at the same time are asked once.
    pub(crate) async fn get(
        &self,
        audience: &Audience,
        path: &str,
        ask: impl Future<Output = Answer>,
    ) -> Answer {
        let cell = self.cell(audience, path, now());
        cell.get_or_init(|| ask).await.clone()
    }

    fn cell(&self, audience: &Audience, path: &str, now: Instant) -> Arc<OnceCell<Answer>> {
        let mut shared = self.lock();
        let is_fresh = |it: &Shared| now.duration_since(it.asked_at) < SHARED_FOR;
        let key = (audience.clone(), path.to_owned());
        if let Some(known) = shared.get(&key).filter(|it| is_fresh(it)) {
            return Arc::clone(&known.answer);
        }
        shared.retain(|_, it| is_fresh(it));
        let answer = Arc::new(OnceCell::new());
        // Answers beyond the limit are not shared; the next half second has room again.
        if shared.len() < ANSWERS_MAX {
            shared.insert(key, Shared { asked_at: now, answer: Arc::clone(&answer) });
        }
        answer
    }

    /// Forgets the answers of a tenant after one of its users has changed something, so that the
    /// user sees the change.
    pub(crate) fn forget(&self, tenant: &str) {
        self.lock().retain(|(audience, _), _| audience.tenant != tenant);
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(tenant: &str, role: Role) -> Audience {
        Audience { tenant: tenant.into(), role }
    }

    async fn ask(answers: &SharedAnswers, audience: &Audience, path: &str, answer: u64) -> u64 {
        let answer = answers.get(audience, path, async { Ok(Arc::new(json!(answer))) }).await;
        answer.unwrap().as_u64().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_shared_within_an_audience_for_half_a_second() {
        let answers = SharedAnswers::default();
        let viewers = of("a", Role::Viewer);
        assert_eq!(ask(&answers, &viewers, "/x", 1).await, 1);
        assert_eq!(ask(&answers, &viewers, "/x", 2).await, 1);
        for (other, path) in
            [(of("b", Role::Viewer), "/x"), (of("a", Role::Admin), "/x"), (viewers.clone(), "/y")]
        {
            assert_eq!(ask(&answers, &other, path, 3).await, 3);
        }
        tokio::time::advance(SHARED_FOR).await;
        assert_eq!(ask(&answers, &viewers, "/x", 4).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn change_is_seen_at_once() {
        let answers = SharedAnswers::default();
        let (own, other) = (of("a", Role::Viewer), of("b", Role::Viewer));
        ask(&answers, &own, "/x", 1).await;
        ask(&answers, &other, "/x", 1).await;
        answers.forget("a");
        assert_eq!(ask(&answers, &own, "/x", 2).await, 2);
        assert_eq!(ask(&answers, &other, "/x", 2).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_answers_is_bounded() {
        let answers = SharedAnswers::default();
        for n in 0..=ANSWERS_MAX {
            ask(&answers, &of("a", Role::Viewer), &format!("/{n}"), 0).await;
        }
        assert_eq!(answers.lock().len(), ANSWERS_MAX);
    }
}
