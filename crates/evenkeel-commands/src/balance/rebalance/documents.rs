//! Parses the JSON documents of rebalance previews, rebalances and undos.

use evenkeel_core::balance::PlanBounds;
use evenkeel_store::JobFilter;
use serde_json::Value;
use uuid::Uuid;

use crate::read::{Fields, read_filter_document};
use crate::{Fault, Object};

/// Maximum value of `max_moves`.
const MAX_MOVES_LIMIT: u64 = 1_000_000_000;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct PlanOptions {
    /// Only jobs that match this filter may be moved; `None` allows all jobs.
    pub filter: Option<JobFilter>,
    /// The job filter as the client wrote it.
    pub filter_document: Option<Value>,
    pub wanted: PlanBounds,
}

/// The rebalance plan to execute.
#[derive(Clone, PartialEq, Debug)]
pub enum PlanSource {
    /// The saved rebalance plan with this id.
    Plan(Uuid),
    /// A new rebalance plan with these options.
    Fresh(Box<PlanOptions>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct RebalanceRequest {
    pub source: PlanSource,
    /// True if the request waits until the rebalance has finished.
    pub wait: bool,
}

/// Reads the options of a rebalance preview. A missing document means a preview with the default
/// options.
pub fn read_plan_options(document: Option<&Value>) -> Result<PlanOptions, Vec<Fault>> {
    read(document, |fields| Some(options(fields)))
}

/// Reads a request that starts a rebalance. A missing document means a new rebalance plan with the
/// default options.
pub fn read_rebalance(document: Option<&Value>) -> Result<RebalanceRequest, Vec<Fault>> {
    read(document, |fields| {
        let wait = fields.flag("wait").unwrap_or(true);
        let plan = fields.text("plan_id").map(str::parse::<Uuid>);
        let has_plan = fields.value("plan_id").is_some();
        if matches!(plan, Some(Err(_))) {
            fields.fault("plan_id", "is not the id of a plan; send the id that a preview returned");
        }
        for name in ["filter", "max_moves", "target_score"] {
            if has_plan && fields.value(name).is_some() {
                fields.fault(name, "and plan_id exclude each other: the plan has its own options; leave one of them out");
            }
        }
        let options = options(fields);
        let source = match plan {
            Some(plan) => PlanSource::Plan(plan.ok()?),
            None => PlanSource::Fresh(Box::new(options)),
        };
        Some(RebalanceRequest { source, wait })
    })
}

/// Reads whether the request waits until the undo has finished.
pub fn read_undo(document: Option<&Value>) -> Result<bool, Vec<Fault>> {
    read(document, |fields| Some(fields.flag("wait").unwrap_or(true)))
}

fn read<T>(
    document: Option<&Value>,
    read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let none = Value::Object(Object::new());
    let document = document.filter(|document| !document.is_null()).unwrap_or(&none);
    Fields::read_object(document, "send an object or no body", read)
}

fn options(fields: &mut Fields<'_>) -> PlanOptions {
    let max_moves = fields.number("max_moves", 1..=MAX_MOVES_LIMIT);
    let target_score = fields.fraction("target_score");
    let document = fields.value("filter");
    let filter = document.and_then(|filter| read_filter_document(fields, filter));
    PlanOptions {
        filter,
        filter_document: document.cloned(),
        wanted: PlanBounds { max_moves, target_score },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_documents_mean_the_defaults() {
        for document in [None, Some(json!(null)), Some(json!({}))] {
            let request = read_rebalance(document.as_ref()).unwrap();
            assert_eq!(request.source, PlanSource::Fresh(Box::default()));
            assert!(request.wait);
            assert_eq!(read_plan_options(document.as_ref()).unwrap(), PlanOptions::default());
        }
    }

    #[test]
    fn documents_with_every_option_are_read() {
        let document =
            json!({"filter": {"name_prefix": "news"}, "max_moves": 9, "target_score": 0.9});
        let options = read_plan_options(Some(&document)).unwrap();
        assert_eq!(options.filter.unwrap().name_prefix.unwrap(), "news");
        assert_eq!(options.filter_document, Some(json!({"name_prefix": "news"})));
        assert_eq!(options.wanted, PlanBounds { max_moves: Some(9), target_score: Some(0.9) });
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        let request = read_rebalance(Some(&json!({"plan_id": id, "wait": false}))).unwrap();
        assert_eq!(
            request,
            RebalanceRequest { source: PlanSource::Plan(id.parse().unwrap()), wait: false }
        );
    }

    #[test]
    fn wrong_fields_are_refused_by_name() {
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        for (document, field) in [
            (json!([]), ""),
            (json!({"max_moves": 0}), "max_moves"),
            (json!({"target_score": 1.5}), "target_score"),
            (json!({"target_score": "high"}), "target_score"),
            (json!({"filter": {"status": "dead"}}), "filter.status"),
            (json!({"filter": 7}), "filter"),
            (json!({"plan_id": "x"}), "plan_id"),
            (json!({"plan_id": id, "max_moves": 3}), "max_moves"),
            (json!({"wait": "no"}), "wait"),
            (json!({"max_move": 3}), "max_move"),
        ] {
            let faults = read_rebalance(Some(&document)).unwrap_err();
            assert_eq!(faults[0].field, field, "{document}");
        }
        assert!(read_plan_options(Some(&json!({"plan_id": id}))).is_err());
    }
}
