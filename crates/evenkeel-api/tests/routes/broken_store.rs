//! A store whose functions fail if a test demands it.

use std::any::Any;
use std::sync::Arc;

use evenkeel_store::{Intercept, Intercepted, Store, StoreError, Verb, WaitingAttempt, WaitsFor};
use evenkeel_store_testkit::fixtures::START;
use evenkeel_store_testkit::model::ModelStore;

/// Returns the error with which a call of the named store function fails; `None` lets the call
/// succeed.
type Fault = Box<dyn Fn(&str) -> Option<StoreError> + Send + Sync>;

/// Name that is passed to [`Fault`] when a store call counts the runs ahead in the queue.
pub const QUEUE_POSITION: &str = "queue position";

pub struct BrokenStore {
    inner: Arc<dyn Store>,
    fault: Fault,
}

impl BrokenStore {
    /// Returns a store whose database cannot be reached.
    pub fn down() -> Arc<dyn Store> {
        Self::always(|| StoreError::Unavailable("connection to 10.0.0.7 refused".into()))
    }

    /// Returns a store whose database contains values that cannot be read.
    pub fn corrupt() -> Arc<dyn Store> {
        Self::always(|| StoreError::corrupt("job 7", "definition", "not JSON"))
    }

    /// Returns a store whose functions all fail, except `tenant`.
    fn always(error: fn() -> StoreError) -> Arc<dyn Store> {
        let inner = Arc::new(ModelStore::new(Arc::new(|| START)));
        Self::over(inner, move |_| Some(error()))
    }

    /// Returns a store that calls `inner`, unless `fault` returns an error for the called function.
    pub fn over(
        inner: Arc<dyn Store>,
        fault: impl Fn(&str) -> Option<StoreError> + Send + Sync + 'static,
    ) -> Arc<dyn Store> {
        Arc::new(Intercepted(Self { inner, fault: Box::new(fault) }))
    }

    fn check(&self, verb: &str) -> Result<(), StoreError> {
        (self.fault)(verb).map_or(Ok(()), Err)
    }
}

impl Intercept for BrokenStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Any + Send>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        if verb.name == "tenant" {
            return call.await;
        }
        self.check(verb.name)?;
        let answer = call.await?;
        if has_queue_position(&answer) {
            self.check(QUEUE_POSITION)?;
        }
        Ok(answer)
    }
}

fn has_queue_position(answer: &dyn Any) -> bool {
    let waiting = answer.downcast_ref::<Vec<WaitingAttempt>>();
    waiting
        .into_iter()
        .flatten()
        .any(|attempt| matches!(attempt.waits_for, WaitsFor::Worker { ahead: Some(_), .. }))
}
