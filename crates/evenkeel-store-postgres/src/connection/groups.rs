//! Combines concurrent calls of a store method, so that they share one transaction.
//!
//! Registrations of a tenant lock the same row, the counter of job numbers, until they are
//! committed. So they run one after the other, and each waits for the disk. Calls that arrive during
//! a transaction are combined and share the next one. A call that arrives alone does not wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_store::StoreError;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

/// Maximum number of items of several calls that share a transaction.
const ITEMS_MAX: usize = 256;

type Answer<R> = Result<Vec<R>, StoreError>;

/// Acts on the items of one or more calls, and returns one result for each item.
type Act<T, R> = Box<dyn Fn(Vec<T>) -> BoxFuture<'static, Answer<R>> + Send + Sync>;

#[derive(Debug)]
struct Call<T, R> {
    items: Vec<T>,
    caller: oneshot::Sender<Answer<R>>,
}

/// The calls that wait, by key. Only calls with the same key are combined. A key is present as long
/// as a task acts on its calls.
type Waiting<K, T, R> = HashMap<K, Vec<Call<T, R>>>;

#[derive(Debug)]
pub(crate) struct Groups<K, T, R>(Arc<Mutex<Waiting<K, T, R>>>);

impl<K, T, R> Default for Groups<K, T, R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, T, R> Groups<K, T, R>
where
    K: Copy + Eq + Hash + Send + 'static,
    T: Clone + Send + 'static,
    R: Send + 'static,
{
    /// Calls `act` with these items, and perhaps with items of other calls with the same key. If
    /// `act` fails for several calls together, it is called for each of them alone.
    pub(crate) async fn run(&self, key: K, items: Vec<T>, act: Act<T, R>) -> Answer<R> {
        let (caller, answer) = oneshot::channel();
        let call = Call { items, caller };
        let is_first = {
            let mut waiting = lock(&self.0);
            let is_first = !waiting.contains_key(&key);
            waiting.entry(key).or_default().push(call);
            is_first
        };
        if is_first {
            let waiting = Arc::clone(&self.0);
            tokio::spawn(async move {
                while let Some(group) = next_group(&waiting, key) {
                    answer_all(group, &act).await;
                }
            });
        }
        let dropped = |_| StoreError::Unavailable("the call was dropped".into());
        answer.await.map_err(dropped)?
    }
}

/// Takes the next calls that share a transaction, or removes the key if no call waits.
fn next_group<K: Copy + Eq + Hash, T, R>(
    waiting: &Mutex<Waiting<K, T, R>>,
    key: K,
) -> Option<Vec<Call<T, R>>> {
    let mut waiting = lock(waiting);
    let calls = waiting.get_mut(&key).filter(|calls| !calls.is_empty());
    let Some(calls) = calls else {
        waiting.remove(&key);
        return None;
    };
    let mut items = 0;
    let fits = |call: &Call<T, R>| {
        items += call.items.len();
        items <= ITEMS_MAX
    };
    // A single call is never too large.
    let count = calls.iter().map(fits).take_while(|fits| *fits).count().max(1);
    Some(calls.drain(..count).collect())
}

async fn answer_all<T: Clone, R>(group: Vec<Call<T, R>>, act: &Act<T, R>) {
    if group.len() > 1 {
        let items = group.iter().flat_map(|call| call.items.iter().cloned()).collect();
        if let Ok(results) = act(items).await {
            let mut results = results.into_iter();
            for Call { items, caller } in group {
                // Sending fails only if the caller has stopped waiting.
                let _ = caller.send(Ok(results.by_ref().take(items.len()).collect()));
            }
            return;
        }
    }
    for Call { items, caller } in group {
        let _ = caller.send(act(items).await);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batches with which `act` was called.
    type Batches = Arc<Mutex<Vec<Vec<i32>>>>;

    /// Multiplies by ten, and refuses batches that contain 13.
    fn act(batches: &Batches) -> Act<i32, i32> {
        let batches = Arc::clone(batches);
        Box::new(move |items| {
            lock(&batches).push(items.clone());
            Box::pin(async move {
                if items.contains(&13) {
                    return Err(StoreError::Refused("unlucky".into()));
                }
                Ok(items.into_iter().map(|item| item * 10).collect())
            })
        })
    }

    /// Runs calls with these items, all of which begin before the first one is acted on.
    async fn run_all(calls: Vec<Vec<i32>>) -> (Vec<Answer<i32>>, Vec<Vec<i32>>) {
        let (groups, batches) = (Groups::<(), i32, i32>::default(), Batches::default());
        let runs = calls.into_iter().map(|items| groups.run((), items, act(&batches)));
        let answers = futures::future::join_all(runs).await;
        let batches = std::mem::take(&mut *lock(&batches));
        (answers, batches)
    }

    #[tokio::test]
    async fn each_call_gets_the_results_of_its_own_items() {
        let (answers, batches) = run_all(vec![vec![1], vec![2, 3], vec![], vec![4]]).await;
        assert_eq!(batches, [vec![1, 2, 3, 4]]);
        let answers: Vec<Vec<i32>> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, [vec![10], vec![20, 30], vec![], vec![40]]);
    }

    #[tokio::test]
    async fn failure_affects_only_its_own_call() {
        let (answers, batches) = run_all(vec![vec![1], vec![2], vec![13], vec![4]]).await;
        assert_eq!(batches, [vec![1, 2, 13, 4], vec![1], vec![2], vec![13], vec![4]]);
        let failed: Vec<bool> = answers.iter().map(Result::is_err).collect();
        assert_eq!(failed, [false, false, true, false]);
    }

    #[tokio::test]
    async fn call_after_others_have_ended_is_acted_on() {
        let (groups, batches) = (Groups::<(), i32, i32>::default(), Batches::default());
        for item in [1, 2] {
            assert_eq!(groups.run((), vec![item], act(&batches)).await.unwrap(), [item * 10]);
            tokio::task::yield_now().await;
        }
        assert_eq!(*lock(&batches), [[1], [2]]);
        assert!(lock(&groups.0).is_empty());
    }

    #[tokio::test]
    async fn large_calls_are_not_combined() {
        let large: Vec<i32> = (100..100 + ITEMS_MAX as i32).collect();
        let (_, batches) = run_all(vec![vec![1], large.clone(), large.clone()]).await;
        assert_eq!(batches, [vec![1], large.clone(), large]);
    }
}
