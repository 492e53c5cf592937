//! Requests with an idempotency key.

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, RequestStore, Scope, StoreError};

use super::ModelStore;

#[derive(Clone, Debug)]
pub(super) struct Request {
    fingerprint: [u8; 32],
    begun_at: Timestamp,
    given_up_at: Timestamp,
    answer: Option<Answered>,
}

#[async_trait]
impl RequestStore for ModelStore {
    async fn begin_request(
        &self,
        scope: &Scope,
        request: &KeyedRequest,
        now: Now,
    ) -> Result<Begun, StoreError> {
        let now = self.resolve(now);
        let mut data = self.lock();
        let place = (scope.tenant, request.key.clone());
        let mut fresh = Request {
            fingerprint: request.fingerprint,
            begun_at: now,
            given_up_at: now.saturating_add(request.patience),
            answer: None,
        };
        if let Some(known) = data.requests.get(&place) {
            if known.fingerprint != request.fingerprint {
                return Ok(Begun::KeyReused);
            }
            if let Some(answer) = &known.answer {
                return Ok(Begun::Ended(answer.clone()));
            }
            if known.given_up_at > now {
                return Ok(Begun::InProgress);
            }
            let later = Timestamp::from_micros(known.begun_at.as_micros() + 1);
            fresh.begun_at = now.max(later);
        }
        let begun_at = fresh.begun_at;
        data.requests.insert(place, fresh);
        Ok(Begun::Fresh(begun_at))
    }

    async fn end_request(
        &self,
        scope: &Scope,
        key: &str,
        begun_at: Timestamp,
        answer: Option<Answered>,
    ) -> Result<(), StoreError> {
        let mut data = self.lock();
        let place = (scope.tenant, key.to_owned());
        let Some(known) = data.requests.get_mut(&place) else { return Ok(()) };
        if known.begun_at == begun_at && known.answer.is_none() {
            match answer {
                Some(answer) => known.answer = Some(answer),
                None => drop(data.requests.remove(&place)),
            }
        }
        Ok(())
    }

    async fn prune_requests(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut data = self.lock();
        let mut old: Vec<_> = data
            .requests
            .iter()
            .filter(|(_, request)| request.begun_at < before)
            .map(|(place, request)| (request.begun_at, place.clone()))
            .collect();
        old.sort_unstable();
        old.truncate(limit as usize);
        for (_, place) in &old {
            data.requests.remove(place);
        }
        Ok(old.len() as u64)
    }
}
