//! A store that measures how long each store call takes.

use std::any::Any;
use std::sync::Arc;

use evenkeel_store::{Intercept, Intercepted, Store, StoreError, Verb};

use crate::cluster::node_context::instant_now;
use crate::cluster::store_health::WriteHealth;

/// Measures the duration and the failures of each store call, and reports to [`WriteHealth`]
/// whether the database accepts writes.
pub struct Metered {
    inner: Arc<dyn Store>,
    health: Arc<WriteHealth>,
}

/// Name of a store call that always writes; each node makes this call every few seconds.
const ALWAYS_WRITES: &str = "ping";

impl Metered {
    pub fn wrap(inner: Arc<dyn Store>, health: Arc<WriteHealth>) -> Arc<dyn Store> {
        Arc::new(Intercepted(Self { inner, health }))
    }
}

impl Intercept for Metered {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Any + Send>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let verb = verb.name;
        let began = instant_now();
        let answer = call.await;
        let ended = instant_now();
        self.health.answered(answer.as_ref().err(), verb == ALWAYS_WRITES, ended);
        metrics::histogram!("evenkeel_store_verb_seconds", "verb" => verb)
            .record(ended.duration_since(began));
        if let Err(error) = &answer {
            let kind = if error.is_outage() { "outage" } else { "fault" };
            metrics::counter!("evenkeel_store_errors_total", "verb" => verb, "kind" => kind)
                .increment(1);
        }
        answer
    }
}
